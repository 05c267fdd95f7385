"""Log synthesis: the log that brokers with another coordinator would have written of a group.

`step`, or a mutant of it, gets the recorded requests at their recorded times. Its responses and
coordinator lines are printed in the brokers' format, and agree with each other. A killed broker
loses its state; the next coordinator loads the records that this coordinator stored.
"""

import heapq
import itertools
import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from kafka_protocol.errors import Error
from kafka_protocol.request_log import COMPLETED, printed
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.effects import (
    Answer,
    Arm,
    AssignmentReceived,
    Disarm,
    Effect,
    Persist,
    Response,
    Transition,
)
from reference_coordinator.classic.events import (
    Choices,
    Event,
    Loaded,
    LoadStarted,
    RecordWritten,
    Timer,
    TimerFired,
    Unloaded,
)
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Group, Service, State
from reference_coordinator.replay import EpochEvent, ObservedRequest
from reference_coordinator.replay.expected_lines import DueLine, expected_lines
from reference_coordinator.replay.hints import Hints, hinted
from reports.judgement.recording import Line, Recording
from reports.judgement.timelines.fenced_lines import fencings
from reports.judgement.timelines.line_fields import OPERATIONS
from reports.timing import ARRIVAL_ERROR_MS
from selftest.broken_rules import Step
from selftest.mutants.wordings import Wording, body

WRITE_MS = 2.0
"""How long a synthesized broker takes to store a record."""
SENT_MS = 0.15
"""How long a synthesized broker takes to send a response."""


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

    @property
    def connection(self) -> str:
        """The connection of the request."""
        return self.seen.connection


@dataclass
class BrokerProcess:
    """The state of one process of a broker; `number` counts its starts."""

    group: Group
    number: int
    timers: dict[Timer, float] = field(default_factory=dict)
    open: dict[str, ReceivedRequest] = field(default_factory=dict)
    waiting: dict[str, list[ReceivedRequest]] = field(default_factory=lambda: defaultdict(list))


@dataclass
class LogSynthesis:
    """Synthesizes the log of `group`, under the name `name`, by the rules of `coordinator`."""

    recording: Recording
    group: str
    name: str
    coordinator: Step
    processes: dict[str, BrokerProcess] = field(default_factory=dict)
    starts: Counter[str] = field(default_factory=Counter)
    stored: GroupRecord | None = None
    queue: list[tuple[float, int, str, Any]] = field(default_factory=list)
    result: list[SynthesizedLine] = field(default_factory=list)
    lines: dict[str, Line] = field(default_factory=dict)
    count: Iterator[int] = field(default_factory=itertools.count)
    begun: DueLine | None = None
    """What the line of the rebalance says that the last step began, if it began one."""

    def run(self) -> list[SynthesizedLine]:
        """Return all lines about the group."""
        self._read()
        while self.queue:
            at_ms, _, broker, item = heapq.heappop(self.queue)
            if item is None:
                del self.processes[broker]
            elif isinstance(item, EpochEvent):
                self._apply_epoch_event(broker, item)
            else:
                for event in self._events(broker, item, at_ms):
                    self._step(broker, event)
        return self.result

    def _read(self) -> None:
        """Queue what the brokers were received, and their coming and going."""
        evidence = self.recording.evidence(self.group)
        for seen in hinted(evidence.requests, Hints.of(evidence.hints)):
            self._push(
                seen.at_ms, seen.broker, ReceivedRequest(seen, seen.earliest_ms + ARRIVAL_ERROR_MS)
            )
        for epoch_event in evidence.epoch_events:
            self._push(epoch_event.at_ms, epoch_event.broker, epoch_event)
        for line in self.recording.lines:
            if line.group == self.group and line.request is not None:
                self.lines[f"{line.broker}:{line.number}"] = line
        for process in self.recording.logs.merged.processes:
            if process["last_ms"] is not None:
                self._push(process["last_ms"], process["broker"], None)

    @property
    def _partition(self) -> int:
        return self.recording.partitions[self.group]

    @cached_property
    def _printed_lines(self) -> Collection[str]:
        """The lines that this coordinator writes of what it does."""
        grammar = self.recording.run.grammar
        never = {name for name, other in grammar.lines_instead.items() if other is None}
        return {template.name for template in grammar.templates} - never

    @cached_property
    def _wording(self) -> Wording:
        return Wording(self.recording.run.grammar)

    def _push(self, at_ms: float, broker: str, item: Any) -> None:
        heapq.heappush(self.queue, (at_ms, next(self.count), broker, item))

    def _apply_epoch_event(self, broker: str, epoch_event: EpochEvent) -> None:
        """Start a broker, or let it load or unload the group."""
        match epoch_event.kind:
            case "started":
                self.starts[broker] += 1
                absent = Group(self.name, service=Service.ABSENT)
                self.processes[broker] = BrokerProcess(absent, self.starts[broker])
            case "loading":
                self._step(broker, LoadStarted(epoch_event.at_ms))
            case "loaded":
                self._step(broker, Loaded(epoch_event.at_ms, self.stored))
            case "unloaded":
                self._step(broker, Unloaded(epoch_event.at_ms))

    def _events(self, broker: str, item: Any, at_ms: float) -> Iterator[Event]:
        process = self.processes.get(broker)
        if process is None:
            return
        if isinstance(item, ReceivedRequest):
            if any(other.connection == item.connection for other in process.open.values()):
                process.waiting[item.connection].append(item)
                return
            process.open[item.seen.id] = item
            yield CLASSIC.event_of(item.seen, at_ms, self._choices(process, item.seen))
        elif isinstance(item, Timer):
            if process.timers.get(item) == at_ms:
                del process.timers[item]
                yield TimerFired(at_ms, item, self._choices(process))
        elif item in process.open:
            yield RecordWritten(at_ms, item, choices=self._choices(process))

    def _choices(self, process: BrokerProcess, seen: ObservedRequest | None = None) -> Choices:
        """Choose as the recorded broker did, as far as its responses show it."""
        leader = protocol = new_id = ""
        for other in process.open.values():
            if other.seen.api == "JOIN_GROUP":
                leader = leader or other.seen.response_fields.get("leader", "")
                protocol = protocol or other.seen.response_fields.get("protocolName") or ""
        if seen is not None and seen.api == "JOIN_GROUP" and not seen.request["memberId"]:
            prefix = f"{seen.request.get('groupInstanceId') or seen.client_id}-"
            new_id = seen.response_fields.get("memberId") or ""
            if not new_id.startswith(prefix) or new_id in process.group.members:
                new_id = f"{prefix}{uuid.uuid5(uuid.NAMESPACE_OID, seen.id)}"
        return Choices(new_id, leader, protocol)

    def _step(self, broker: str, event: Event) -> None:
        process = self.processes[broker]
        before = process.group
        process.group, effects = self.coordinator(before, event, self.recording.profile)
        due = list(expected_lines(before, process.group, event, effects))
        self.begun = next((line for line in due if line.line == "preparing"), None)
        for line in due:
            if line is not self.begun and line.line in self._printed_lines:
                self._print_line(broker, event.at_ms, line.line, **self._wording.about(line))
        for effect in effects:
            if isinstance(effect, Answer) and effect.request == getattr(event, "request", None):
                self._print_fenced(broker, event.at_ms, effect)  # one that waited leaves no line
            self._apply(broker, event.at_ms, effect)

    def _print_fenced(self, broker: str, at_ms: float, answer: Answer) -> None:
        """Print whom an answer fences."""
        process = self.processes[broker]
        seen = process.open[answer.request].seen
        if answer.response.error is not Error.FENCED_INSTANCE_ID and seen.api != "LEAVE_GROUP":
            return
        for due in fencings(replace(seen, response=body(answer.response, seen))):
            instance = dict(due.says)["instance"]
            self._print_line(
                broker,
                at_ms,
                "fenced",
                member=due.subject,
                instance=instance,
                holder=process.group.static_ids.get(instance, ""),
                operation=OPERATIONS[seen.api][0],
            )

    def _print_line(self, broker: str, at_ms: float, what: str, **words: object) -> None:
        words |= {"group": self.name, "partition": self._partition}
        text = self._wording.line(broker, what, words)
        self.result.append(SynthesizedLine(broker, self.processes[broker].number, at_ms, text))

    def _apply(self, broker: str, now: float, effect: Effect) -> None:
        process = self.processes[broker]
        match effect:
            case Answer(request=request, response=response):
                self._answer(broker, request, response, now)
            case Arm(timer=timer, deadline_ms=deadline):
                process.timers[timer] = deadline
                self._push(deadline, broker, timer)
            case Disarm(timer=timer):
                process.timers.pop(timer, None)
            case Persist(request=request, record=record):
                self.stored = record
                if request is not None:
                    self._push(now + WRITE_MS, broker, request)
            case AssignmentReceived():
                self._print_line(
                    broker,
                    now,
                    "assignment",
                    member=effect.leader,
                    generation=effect.generation,
                    members=effect.members,
                    static_members=effect.static_members,
                )
            case Transition():
                self._print_transition(broker, now, effect)

    def _print_transition(self, broker: str, now: float, moved: Transition) -> None:
        what = {
            State.PREPARING_REBALANCE: "preparing",
            State.COMPLETING_REBALANCE: "stabilized",
            State.EMPTY: "empty",
        }.get(moved.after)
        if what is None:
            return
        begun = self.begun if moved.reason is not None else None
        reason = self._wording.reason(begun) if begun is not None else ""
        self._print_line(
            broker,
            now,
            what,
            generation=moved.generation,
            members=moved.members,
            reason=reason,
        )

    def _answer(self, broker: str, request: str, response: Response, now: float) -> None:
        """Print a request's log line, at the time of its response."""
        process = self.processes[broker]
        received = process.open.pop(request)
        line = self.lines[request]
        assert line.request is not None
        content = self._with_group_name(line.request, body(response, received.seen))
        remote = max(0.0, now - received.read_ms - content["localTimeMs"])
        total = content["requestQueueTimeMs"] + content["localTimeMs"] + remote + SENT_MS
        content |= {
            "remoteTimeMs": round(remote, 3),
            "responseQueueTimeMs": 0.05,
            "sendTimeMs": 0.1,
            "totalTimeMs": round(total, 3),
        }
        sent = received.read_ms - content["requestQueueTimeMs"] + total
        head, tail = line.text.partition(COMPLETED)[0], line.text.rpartition(" (")[2]
        text = f"{head}{printed(content)} ({tail}"
        self.result.append(SynthesizedLine(broker, process.number, sent, text))
        if waiting := process.waiting.get(received.connection):
            following = waiting.pop(0)
            self._push(sent, broker, replace(following, read_ms=sent))

    def _with_group_name(
        self, line: Mapping[str, Any], answer: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Put the other group name in; connections get it as a suffix."""
        return {
            **line,
            "request": {**line["request"], "groupId": self.name},
            "response": answer,
            "connection": f"{line['connection']}-{self.name}",
        }
