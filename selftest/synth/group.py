"""One group's simulation: its clients, its coordinators, and every line about it.

Clients send, the oracle's `step` decides as the coordinator of the time, and both are printed. The
group's state dies with a broker; the next coordinator loads the record that was written last.
Times are ms since the first broker started.
"""

import heapq
import random
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kafka_protocol.errors import Error
from kafka_protocol.offsets_topic import partition_of
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
    JoinReceived,
    Loaded,
    LoadStarted,
    RecordWritten,
    Timer,
    TimerFired,
)
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Group, Service
from reference_coordinator.classic.step import step
from reference_coordinator.replay.expected_lines import expected_lines
from selftest.mutants.wordings import Wording
from selftest.synth.clients import (
    SUBSCRIPTION,
    TOPIC,
    TOPIC_PARTITIONS,
    Client,
    Software,
)
from selftest.synth.cluster import PARTITIONS, READY_MS, Cluster, Tenure
from selftest.synth.coordinator_lines import CoordinatorLines, Line
from selftest.synth.mix import Mix
from selftest.synth.printing import Delays, Sent, answered, request_body

FORMATION_MS = 400.0
"""The time in which the clients of a group start."""
RETRY_MS = 120.0


@dataclass(frozen=True)
class Setting:
    """What all groups of a run share."""

    mix: Mix
    cluster: Cluster
    profile: Profile
    wording: Wording
    delays: Sequence[Delays]
    end_ms: float

    @property
    def settled_ms(self) -> float:
        """When the last restart or fault is."""
        return self.end_ms - self.mix.settle_ms


Fault = Callable[[float, "Simulation"], None]
"""Takes the time, and the group that it befalls."""
Coordinator = Callable[[Group, Event, Profile], tuple[Group, tuple[Effect, ...]]]


@dataclass(slots=True)
class Simulation:
    """Simulates the group `name` with so many members."""

    name: str
    setting: Setting
    size: int
    static: bool
    software: Software
    dice: random.Random
    coordinator: Coordinator = step
    clients: list[Client] = field(default_factory=list)
    group: Group = field(init=False)
    tenure: Tenure | None = None
    stored: GroupRecord | None = None
    queue: list[tuple[float, int, Any, Any]] = field(default_factory=list)
    timers: dict[Timer, float] = field(default_factory=dict)
    watched: dict[Timer, float] = field(default_factory=dict)
    """The timers that are in the queue, and for when."""
    open: dict[str, Sent] = field(default_factory=dict)
    count: int = 0
    connections: int = 0
    """How many connections the brokers had before."""
    began_ms: float = READY_MS
    ended_ms: float = float("inf")
    """When its members start, and when they end."""
    free_ms: float = 0.0
    """When the coordinator has printed all about its last event."""
    partition: int = 0
    printer: CoordinatorLines = field(init=False)

    def run(self, faults: Iterable[tuple[float, Fault]] = ()) -> list[Line]:
        """Return all lines about the group, in order of time; `faults` befall it at their times."""
        self.group = Group(self.name, service=Service.ABSENT)
        self.partition = partition_of(self.name, PARTITIONS)
        self.printer = CoordinatorLines(
            self.name,
            self.partition,
            self.setting.wording,
            self.dice,
            [],
        )
        tenures = self.setting.cluster.tenures[self.partition]
        for tenure in tenures:
            self.push(tenure.loading_ms, self._load_started, tenure)
            self.push(tenure.loaded_ms, self._loaded, tenure)
            if tenure is not tenures[-1]:
                self.push(tenure.ended_ms, self._killed, tenure)
        began_ms = self.undisturbed(self.began_ms)
        for number in range(self.size):
            starts_ms = began_ms + self.dice.uniform(0, FORMATION_MS)
            self.push(starts_ms, self._start, self._member(number))
        self.push(began_ms - self.began_ms + self.ended_ms, self._end, None)
        for at_ms, fault in faults:
            self.push(self.undisturbed(at_ms), fault, self)
        queue, end_ms = self.queue, self.setting.end_ms
        while queue:
            at_ms, _, act, subject = heapq.heappop(queue)
            if at_ms >= end_ms:
                break
            act(at_ms, subject)
        self.printer.lines.sort(key=lambda line: line.at_ms)
        return self.printer.lines

    def push(self, at_ms: float, act: Any, subject: Any) -> None:
        """Call `act` with a time and its subject when that time comes."""
        self.count += 1
        heapq.heappush(self.queue, (at_ms, self.count, act, subject))

    # clients

    def _member(self, number: int) -> Client:
        client_id = f"{self.name}-{number}"
        return Client(client_id, client_id if self.static else None, self.software)

    def _start(self, at_ms: float, client: Client) -> None:
        self.clients.append(client)
        self._connect(client)
        self._send(at_ms, client, "JOIN_GROUP")

    def start(self, at_ms: float, client: Client) -> None:
        """Start a member's process at a time."""
        again = Client(client.client_id, client.instance, client.software)
        again.committed = client.committed
        at_ms = self.undisturbed(at_ms)
        if at_ms < self.setting.settled_ms:
            self.push(at_ms, self._start, again)

    def undisturbed(self, at_ms: float) -> float:
        """Return a time, or one after the failover if the group must be settled for that.

        What waits while a broker is killed is in no log, and the verdict would be unknown.
        """
        first, *after = self.setting.cluster.tenures[self.partition]
        if after and first.ended_ms - self.setting.mix.settle_ms < at_ms < after[0].loaded_ms:
            return after[0].loaded_ms + self.dice.uniform(100, 3_000)
        return at_ms

    def stop(self, at_ms: float, client: Client) -> None:
        """End a member's process, which leaves the group if it is dynamic."""
        if client.instance is None and client.state == "stable" and client.busy_until_ms <= at_ms:
            self._send(at_ms, client, "LEAVE_GROUP")
        self.kill(at_ms, client)

    def kill(self, _at_ms: float, client: Client) -> None:
        """End a member's process without a word."""
        client.state = "stopped"
        if client in self.clients:
            self.clients.remove(client)

    def _end(self, at_ms: float, _: None) -> None:
        for client in list(self.clients):
            self.stop(at_ms, client)

    def _connect(self, client: Client) -> None:
        self.connections += 1
        broker = self.tenure.broker if self.tenure else "1"
        client.connect(self.dice, broker, self.connections)

    def _send(self, at_ms: float, client: Client, api: str) -> None:
        tenure = self.tenure
        if client.state == "stopped" or tenure is None or at_ms >= tenure.ended_ms:
            return
        self.count += 1
        delays = self.setting.delays
        took = delays[int(self.dice.random() * len(delays))]
        read_ms = at_ms + took.network / 1_000
        handed_ms = read_ms + (took.queue + took.local) / 1_000
        software, mix = client.software, self.setting.mix
        version = {
            "JOIN_GROUP": software.join,
            "SYNC_GROUP": software.sync,
            "HEARTBEAT": software.heartbeat,
            "LEAVE_GROUP": software.leave,
        }.get(api, software.commit)
        place = client.number % TOPIC_PARTITIONS
        body = request_body(client, api, self.name, mix.session_ms, 2 * mix.session_ms, place,
                            SUBSCRIPTION, TOPIC)  # fmt: skip
        client.correlation += 1
        if api == "OFFSET_COMMIT":
            client.committed += 1 + int(self.dice.random() * 90)
        sent = Sent(str(self.count), tenure.broker, api, version, client, body,
                    client.correlation, read_ms, handed_ms, took)  # fmt: skip
        client.sent, client.busy_until_ms = sent.id, float("inf")
        # the event processor may be done with it before its handler is
        after_us = -took.processor if took.processor < took.local else took.processor
        self.push(handed_ms + after_us / 1_000, self._received, sent)

    def _again(self, at_ms: float, who: tuple[Client, str, int]) -> None:
        """Send what a client sends every so often, while the generation is the same."""
        client, api, generation = who
        if client.state != "stable" or client.generation != generation:
            return
        if api == "OFFSET_COMMIT" and client.number >= TOPIC_PARTITIONS:
            return  # it owns no partition
        if client.busy_until_ms > at_ms:
            free_ms = min(at_ms + 5.0, client.busy_until_ms + 0.3)
            self.push(free_ms, self._again, who)
            return
        self._send(at_ms, client, api)
        mix = self.setting.mix
        every_ms = mix.heartbeat_ms if api == "HEARTBEAT" else mix.commit_ms
        self.push(at_ms + every_ms * (0.985 + 0.03 * self.dice.random()), self._again, who)

    def _ask(self, at_ms: float, client: Client) -> None:
        """Send what a client that has no assignment asks next."""
        if client.state in ("joining", "syncing") and client.busy_until_ms <= at_ms:
            self._send(at_ms, client, client.next_request())

    def _take(self, at_ms: float, sent: Sent, response: Response) -> None:
        """Let a client make something of a response."""
        client = sent.client
        client.sent, client.busy_until_ms = "", at_ms
        goes_on = client.take(sent.api, response)
        if client.state == "stopped" and client in self.clients:
            self.clients.remove(client)
        if goes_on:
            elsewhere = int(getattr(response, "error", 0)) and sent.api != "HEARTBEAT"
            wait_ms = RETRY_MS if elsewhere else 0.2
            self.push(at_ms + wait_ms * (0.5 + self.dice.random()), self._ask, client)
        elif client.state == "stable" and sent.api == "SYNC_GROUP":
            mix = self.setting.mix
            for api, every_ms in (
                ("HEARTBEAT", mix.heartbeat_ms),
                ("OFFSET_COMMIT", mix.commit_ms),
            ):
                first_ms = at_ms + every_ms * self.dice.uniform(0.05, 1.0)
                self.push(first_ms, self._again, (client, api, client.generation))

    # coordinators

    def _load_started(self, at_ms: float, tenure: Tenure) -> None:
        self.tenure = tenure
        self.printer.broker = tenure.broker
        self._step(LoadStarted(at_ms))
        for client in self.clients:  # after a failover; some come before it is loaded
            self._connect(client)
            again = self._resumed if client.state == "stable" else self._ask
            self.push(at_ms + self.dice.uniform(0.5, 900.0), again, client)

    def _loaded(self, at_ms: float, tenure: Tenure) -> None:
        self._step(Loaded(at_ms, self.stored))
        if not tenure.epoch or self.stored is None:
            return
        now = tenure.loading_ms + (at_ms - tenure.loading_ms) * self.dice.uniform(0.2, 0.9)
        self.printer.loaded(now, self.group)

    def _resumed(self, at_ms: float, client: Client) -> None:
        for api in ("HEARTBEAT", "OFFSET_COMMIT"):
            self._again(at_ms, (client, api, client.generation))

    def _killed(self, _at_ms: float, _tenure: Tenure) -> None:
        """Lose the coordinator with all that it had not written, and all responses under way."""
        self.tenure = None
        self.open.clear()
        self.timers.clear()
        self.watched.clear()
        for client in self.clients:
            client.busy_until_ms = float("inf")
        if self.clients:
            self.queue[:] = [item for item in self.queue if item[2] != self._again]
            heapq.heapify(self.queue)

    def _received(self, at_ms: float, sent: Sent) -> None:
        if self.tenure is None or sent.broker != self.tenure.broker:
            return
        self.open[sent.id] = sent
        new_id = ""
        if sent.api == "JOIN_GROUP" and not sent.client.member_id:
            drawn = uuid.UUID(int=self.dice.getrandbits(128), version=4)
            new_id = f"{sent.client.instance or sent.client_id}-{drawn}"
        self._step(CLASSIC.event_of(sent, at_ms, Choices(new_id)), sent)

    def _written(self, at_ms: float, write: tuple[str | None, GroupRecord | None, Tenure]) -> None:
        request, record, tenure = write
        if tenure is self.tenure:
            self.stored = record
            if request is not None:
                self._step(RecordWritten(at_ms, request))

    def _expired(self, at_ms: float, timer: Timer) -> None:
        deadline = self.timers.get(timer)
        self.watched.pop(timer, None)
        if deadline is None:
            return
        if deadline > at_ms:
            self._watch(timer, deadline)
            return
        del self.timers[timer]
        pending = timer.member_id in self.group.pending_joins
        self._step(TimerFired(at_ms, timer, of_pending=pending))

    def _watch(self, timer: Timer, deadline: float) -> None:
        self.watched[timer] = deadline
        self.push(deadline + self.dice.uniform(0.2, 2.2), self._expired, timer)

    def _step(self, event: Event, sent: Sent | None = None) -> None:
        """Let the coordinator take an event.

        It takes those of a partition one after the other, each with one of its threads: no line
        about one event stands between lines about another.
        """
        if event.at_ms < self.free_ms:
            event = replace(event, at_ms=self.free_ms)
        self.printer.take_turn()
        before = self.group
        self.group, effects = self.coordinator(before, event, self.setting.profile)
        now = event.at_ms
        if self.group is not before or isinstance(event, TimerFired):
            for line in expected_lines(before, self.group, event, effects):
                now = self.printer.due(now, line)
        for effect in effects:
            now = self._apply(now, effect, sent)
        if isinstance(event, JoinReceived):
            now = self.printer.outlook(now, before, self.group, effects)
        self.free_ms = now

    def _apply(self, now: float, effect: Effect, sent: Sent | None) -> float:
        """Apply an effect; return the time after it."""
        match effect:
            case Answer(request=request, response=response):
                asked = self.open.pop(request)
                fenced = int(getattr(response, "error", 0)) == Error.FENCED_INSTANCE_ID
                if fenced and asked is sent:  # one that waited is refused without a line
                    now = self.printer.fenced(now, self.group, asked)
                self._answer(now, asked, response)
            case Arm(timer=timer, deadline_ms=deadline):
                self.timers[timer] = deadline
                if self.watched.get(timer, float("inf")) > deadline:
                    self._watch(timer, deadline)
            case Disarm(timer=timer):
                self.timers.pop(timer, None)
            case Persist(request=request, record=record):
                took = sent.took.write if sent else 2_500
                self.push(now + took / 1_000, self._written, (request, record, self.tenure))
            case AssignmentReceived():
                return self.printer.assignment(now, effect)
            case Transition():
                return self.printer.transition(now, effect)
        return now

    def _answer(self, now: float, sent: Sent, response: Response) -> None:
        """Print a request's line, unless the broker dies before, and let its client go on."""
        if sent.api == "OFFSET_COMMIT" and not response.error:
            now += sent.took.write / 1_000
        logged_ms, text = answered(sent, response, now, int(self.dice.random() * 3))
        assert self.tenure is not None
        if logged_ms < self.tenure.ended_ms:
            self.printer.lines.append(Line(sent.broker, logged_ms, text))
            self._take(logged_ms, sent, response)
