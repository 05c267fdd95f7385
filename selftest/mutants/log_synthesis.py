"""Log synthesis: the log that brokers with another coordinator would have written of a group.

`step`, or a mutant of it, gets the recorded requests at their recorded times. Its responses and
coordinator lines are printed in the brokers' format, and agree with each other. A killed broker
loses its state; the next coordinator loads the records that this coordinator stored.
"""

import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from kafka_protocol.errors import Error
from kafka_protocol.request_log import COMPLETED, printed
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.effects import Answer, Effect
from reference_coordinator.classic.events import Choices, Loaded, LoadStarted, Unloaded
from reference_coordinator.classic.state import Group, Service
from reference_coordinator.classic.step import Step
from reference_coordinator.driving.bodies import response_body
from reference_coordinator.driving.driver import Agenda, Write
from reference_coordinator.driving.logged_driver import LoggedDriver
from reference_coordinator.driving.wording import Wording
from reference_coordinator.protocol import Observed
from reference_coordinator.replay import EpochEvent, ObservedRequest
from reference_coordinator.replay.hints import Hints, hinted
from reports.judgement.recording import Line, Recording
from reports.timing import ARRIVAL_ERROR_MS
from selftest.timing import SENT_MS, WRITE_MS


@dataclass(frozen=True, order=True)
class SynthesizedLine:
    """A synthesized log line, without the time and number in front.

    `process` is the number of the broker's process, 1 at the first start.
    """

    broker: str
    process: int
    at_ms: float
    text: str


@dataclass(frozen=True)
class ReceivedRequest:
    """A request, and when the broker reads it: after the response to the one before it."""

    seen: ObservedRequest
    read_ms: float


class BrokerProcess(LoggedDriver):
    """The coordinator of one process of a broker; `number` counts its starts."""

    def __init__(self, synthesis: "LogSynthesis", broker: str, number: int) -> None:
        recording = synthesis.recording
        group = Group(synthesis.name, service=Service.ABSENT)
        super().__init__(group, recording.profile, synthesis.coordinator, synthesis.agenda)
        self.synthesis, self.broker, self.number = synthesis, broker, number
        self.wording = synthesis.wording
        self.partition = recording.partitions[synthesis.group]
        self.open: dict[str, ReceivedRequest] = {}
        self.waiting: dict[str, list[ReceivedRequest]] = defaultdict(list)

    def receive(self, received: ReceivedRequest) -> None:
        """Take a request, once the one before it on its connection is answered."""
        seen = received.seen
        if any(other.seen.connection == seen.connection for other in self.open.values()):
            self.waiting[seen.connection].append(received)
            return
        self.open[seen.id] = received
        now_ms = self.synthesis.agenda.now_ms
        self.take(CLASSIC.event_of(seen, now_ms, self.picks(self._new_id(seen))))

    def _new_id(self, seen: ObservedRequest) -> str:
        """Return the member id that the recorded broker gave, if it is one for this group."""
        if seen.api != "JOIN_GROUP" or seen.request["memberId"]:
            return ""
        prefix = f"{seen.request.get('groupInstanceId') or seen.client_id}-"
        given = str(seen.response_fields.get("memberId") or "")
        if given.startswith(prefix) and given not in self.group.members:
            return given
        return f"{prefix}{uuid.uuid5(uuid.NAMESPACE_OID, seen.id)}"

    def picks(self, new_member_id: str = "") -> Choices:
        """Choose as the recorded broker did, as far as its responses show it."""
        leader = protocol = ""
        for other in self.open.values():
            if other.seen.api == "JOIN_GROUP":
                leader = leader or other.seen.response_fields.get("leader", "")
                protocol = protocol or other.seen.response_fields.get("protocolName") or ""
        return Choices(new_member_id, leader, protocol)

    def write_ms(self) -> float:
        """Let a write take some time."""
        return WRITE_MS

    def outcome(self, write: Write) -> tuple[Error, bool]:
        """Ask the synthesis, since the log is not the broker's alone."""
        return self.synthesis.outcome(self.broker, write)

    def asked(self, request: str) -> Observed:
        """Return a request that is not answered yet."""
        return self.open[request].seen

    def write_line(self, text: str) -> None:
        """Take a line of the coordinator."""
        line = SynthesizedLine(self.broker, self.number, self.now_ms, text)
        self.synthesis.result.append(line)

    def absorb(self, effect: Effect) -> None:
        """Print an answer."""
        super().absorb(effect)
        if isinstance(effect, Answer):
            self._answer(effect)

    def _answer(self, answer: Answer) -> None:
        """Print a request's log line, at the time of its response."""
        received = self.open.pop(answer.request)
        line = self.synthesis.lines[answer.request]
        assert line.request is not None
        content = {
            **line.request,
            "request": {**line.request["request"], "groupId": self.synthesis.name},
            "response": response_body(answer.response, received.seen),
            "connection": f"{line.request['connection']}-{self.synthesis.name}",
        }
        remote = max(0.0, self.now_ms - received.read_ms - content["localTimeMs"])
        total = content["requestQueueTimeMs"] + content["localTimeMs"] + remote + SENT_MS
        content |= {
            "remoteTimeMs": round(remote, 3),
            "responseQueueTimeMs": 0.05,
            "sendTimeMs": 0.1,
            "totalTimeMs": round(total, 3),
        }
        sent_ms = received.read_ms - content["requestQueueTimeMs"] + total
        head, tail = line.text.partition(COMPLETED)[0], line.text.rpartition(" (")[2]
        text = f"{head}{printed(content)} ({tail}"
        self.synthesis.result.append(SynthesizedLine(self.broker, self.number, sent_ms, text))
        if waiting := self.waiting.get(received.seen.connection):
            following = replace(waiting.pop(0), read_ms=sent_ms)
            self.synthesis.agenda.at(sent_ms, partial(self.receive, following))


@dataclass
class LogSynthesis:
    """Synthesizes the log of `group`, under the name `name`, by the rules of `coordinator`."""

    recording: Recording
    group: str
    name: str
    coordinator: Step
    agenda: Agenda = field(default_factory=Agenda)
    processes: dict[str, BrokerProcess] = field(default_factory=dict)
    starts: Counter[str] = field(default_factory=Counter)
    last: BrokerProcess | None = None
    """The last that has loaded the group."""
    result: list[SynthesizedLine] = field(default_factory=list)
    lines: dict[str, Line] = field(default_factory=dict)

    @cached_property
    def wording(self) -> Wording:
        """How the brokers of the release word their lines."""
        return Wording(self.recording.run.grammar)

    def outcome(self, _broker: str, _write: Write) -> tuple[Error, bool]:
        """Return how a write ends: with which error, and whether the log has it."""
        return Error.NONE, True

    def run(self) -> list[SynthesizedLine]:
        """Return all lines about the group."""
        self.read()
        self.agenda.run()
        return self.result

    def read(self) -> None:
        """Plan what the brokers received, and their coming and going."""
        evidence = self.recording.evidence(self.group)
        for seen in hinted(evidence.requests, Hints.of(evidence.hints)):
            received = ReceivedRequest(seen, seen.earliest_ms + ARRIVAL_ERROR_MS)
            self.agenda.at(seen.at_ms, partial(self._receive, received))
        for epoch_event in evidence.epoch_events:
            self.plan(epoch_event)
        for line in self.recording.lines:
            if line.group == self.group and line.request is not None:
                self.lines[f"{line.broker}:{line.number}"] = line
        for process in self.recording.logs.merged.processes:
            if process["last_ms"] is not None:
                self.agenda.at(process["last_ms"], partial(self._end, process["broker"]))

    def plan(self, epoch_event: EpochEvent) -> None:
        """Let a broker start, or load or unload the group."""
        self.agenda.at(epoch_event.at_ms, partial(self._apply_epoch_event, epoch_event))

    def _receive(self, received: ReceivedRequest) -> None:
        if process := self.processes.get(received.seen.broker):
            process.receive(received)

    def _end(self, broker: str) -> None:
        self.processes.pop(broker).die()

    def _apply_epoch_event(self, epoch_event: EpochEvent) -> None:
        broker, at_ms = epoch_event.broker, epoch_event.at_ms
        match epoch_event.kind:
            case "started":
                self.starts[broker] += 1
                self.processes[broker] = BrokerProcess(self, broker, self.starts[broker])
            case "loading":
                self.processes[broker].take(LoadStarted(at_ms))
            case "loaded":
                process, before = self.processes[broker], self.last or self.processes[broker]
                process.stored, self.last = before.stored, process
                process.take(Loaded(at_ms, process.stored_record))
            case "unloaded":
                self.processes[broker].take(Unloaded(at_ms))
