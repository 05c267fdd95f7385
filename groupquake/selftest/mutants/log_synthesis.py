"""Tells a recorded group's story anew, as brokers with another coordinator would have logged it.

The requests that real brokers received are run through `step` or a mutant of it, at their recorded
times; answers and lines are printed in the brokers' own words, agreeing with each other. A broker
that was killed forgets, one that takes over loads what this coordinator stored.
"""

import heapq
import itertools
import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from groupquake.selftest.mutants.wordings import WORDINGS, Wording, body
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
from reference_coordinator.classic.mutants import Step
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Group, Service, State
from reference_coordinator.replay import EpochEvent, ObservedRequest
from reference_coordinator.replay.expected_lines import expected_lines
from reference_coordinator.replay.hints import Hints, hinted
from reference_coordinator.replay.wire import event_of
from reports.judgement.parsing import COMPLETED, EARLY_MS
from reports.judgement.recording import Line, Recording

WRITE_MS = 2.0
"""How long these brokers take to store a record."""
SENT_MS = 0.15
"""How long they take to send an answer."""


@dataclass(frozen=True, order=True)
class Told:
    """A line told anew, without the time and number before it; `life` is that of its broker."""

    broker: str
    life: int
    at_ms: float
    text: str


@dataclass(frozen=True)
class Asked:
    """A request, and when the broker reads it: not before it answered the one before it."""

    seen: ObservedRequest
    taken_ms: float

    @property
    def connection(self) -> str:
        """Where it came from."""
        return self.seen.connection


@dataclass
class Office:
    """What one broker knows in one life."""

    group: Group
    life: int
    timers: dict[Timer, float] = field(default_factory=dict)
    open: dict[str, Asked] = field(default_factory=dict)
    waiting: dict[str, list[Asked]] = field(default_factory=lambda: defaultdict(list))


@dataclass
class Storyteller:
    """Tells the story of `group` under the name `name`, with the rules of `coordinator`."""

    recording: Recording
    group: str
    name: str
    coordinator: Step
    offices: dict[str, Office] = field(default_factory=dict)
    lives: Counter[str] = field(default_factory=Counter)
    stored: GroupRecord | None = None
    queue: list[tuple[float, int, str, Any]] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    lines: dict[str, Line] = field(default_factory=dict)
    count: Iterator[int] = field(default_factory=itertools.count)

    def tell(self) -> list[Told]:
        """Return all lines about the group."""
        self._read()
        while self.queue:
            at_ms, _, broker, item = heapq.heappop(self.queue)
            if item is None:
                del self.offices[broker]
            elif isinstance(item, EpochEvent):
                self._turn(broker, item)
            else:
                for event in self._events(broker, item, at_ms):
                    self._step(broker, event)
        return self.told

    def _read(self) -> None:
        """Queue what the brokers were asked, and their coming and going."""
        evidence = self.recording.evidence(self.group)
        for seen in hinted(evidence.requests, Hints.of(evidence.hints)):
            self._push(seen.at_ms, seen.broker, Asked(seen, seen.earliest_ms + EARLY_MS))
        for serving in evidence.epoch_events:
            self._push(serving.at_ms, serving.broker, serving)
        for line in self.recording.lines:
            if line.group == self.group and line.request is not None:
                self.lines[f"{line.broker}:{line.number}"] = line
        for broker, process in self.recording.processes:
            if process.last_ms is not None:
                self._push(process.last_ms, broker, None)

    @property
    def _partition(self) -> int:
        return self.recording.partitions[self.group]

    @property
    def _words(self) -> Wording:
        return WORDINGS[self.recording.environment["coordinator"]]

    def _push(self, at_ms: float, broker: str, item: Any) -> None:
        heapq.heappush(self.queue, (at_ms, next(self.count), broker, item))

    def _turn(self, broker: str, serving: EpochEvent) -> None:
        """Let a broker come up, or begin or end to serve the group."""
        match serving.kind:
            case "started":
                self.lives[broker] += 1
                absent = Group(self.name, service=Service.ABSENT)
                self.offices[broker] = Office(absent, self.lives[broker])
            case "loading":
                self._step(broker, LoadStarted(serving.at_ms))
            case "loaded":
                self._step(broker, Loaded(serving.at_ms, self.stored))
            case "unloaded":
                self._step(broker, Unloaded(serving.at_ms))

    def _events(self, broker: str, item: Any, at_ms: float) -> Iterator[Event]:
        office = self.offices.get(broker)
        if office is None:
            return
        if isinstance(item, Asked):
            if any(other.connection == item.connection for other in office.open.values()):
                office.waiting[item.connection].append(item)
                return
            office.open[item.seen.id] = item
            yield event_of(item.seen, at_ms, self._choices(office, item.seen))
        elif isinstance(item, Timer):
            if office.timers.get(item) == at_ms:
                del office.timers[item]
                yield TimerFired(at_ms, item, self._choices(office))
        elif item in office.open:
            yield RecordWritten(at_ms, item, choices=self._choices(office))

    def _choices(self, office: Office, seen: ObservedRequest | None = None) -> Choices:
        """Choose as the recorded broker did where it can be known."""
        leader = protocol = new_id = ""
        for other in office.open.values():
            if other.seen.api == "JOIN_GROUP":
                leader = leader or other.seen.response_fields.get("leader", "")
                protocol = protocol or other.seen.response_fields.get("protocolName") or ""
        if seen is not None and seen.api == "JOIN_GROUP" and not seen.request["memberId"]:
            prefix = f"{seen.request.get('groupInstanceId') or seen.client_id}-"
            new_id = seen.response_fields.get("memberId") or ""
            if not new_id.startswith(prefix) or new_id in office.group.members:
                new_id = f"{prefix}{uuid.uuid5(uuid.NAMESPACE_OID, seen.id)}"
        return Choices(new_id, leader, protocol)

    def _step(self, broker: str, event: Event) -> None:
        office = self.offices[broker]
        before = office.group
        office.group, effects = self.coordinator(before, event, self.recording.profile)
        for what, subject in expected_lines(before, office.group, event):
            self._say_of_member(broker, before, what, subject, event.at_ms)
        for effect in effects:
            self._act(broker, event.at_ms, effect)

    def _say_of_member(
        self, broker: str, before: Group, what: str, subject: str, now: float
    ) -> None:
        after = self.offices[broker].group
        if what == "static_replaced":
            words = {"instance": subject, "member": before.static_ids[subject]}
        else:
            member = after.members.get(subject) or before.members.get(subject)
            words = self._named(subject, member.group_instance_id if member else None)
        self._say(broker, now, what, state=before.state, **words)

    def _named(self, member_id: str, instance: str | None) -> dict[str, str]:
        option = self._words.option(instance)
        return {"member": member_id, "instance": instance or "null", "option": option}

    def _say(self, broker: str, at_ms: float, what: str, **words: object) -> None:
        words |= {"group": self.name, "partition": self._partition}
        text = self._words.line(broker, what, words)
        self.told.append(Told(broker, self.offices[broker].life, at_ms, text))

    def _act(self, broker: str, now: float, effect: Effect) -> None:
        office = self.offices[broker]
        match effect:
            case Answer(request=request, response=response):
                self._answer(broker, request, response, now)
            case Arm(timer=timer, deadline_ms=deadline):
                office.timers[timer] = deadline
                self._push(deadline, broker, timer)
            case Disarm(timer=timer):
                office.timers.pop(timer, None)
            case Persist(request=request, record=record):
                self.stored = record
                if request is not None:
                    self._push(now + WRITE_MS, broker, request)
            case AssignmentReceived():
                self._say(
                    broker,
                    now,
                    "assignment",
                    member=effect.leader,
                    generation=effect.generation,
                    members=effect.members,
                    static_members=effect.static_members,
                )
            case Transition():
                self._say_transition(broker, now, effect)

    def _say_transition(self, broker: str, now: float, moved: Transition) -> None:
        what = {
            State.PREPARING_REBALANCE: "preparing",
            State.COMPLETING_REBALANCE: "stabilized",
            State.EMPTY: "empty",
        }.get(moved.after)
        if what is None:
            return
        static_ids = self.offices[broker].group.static_ids
        instance = next((i for i, m in static_ids.items() if m == moved.member_id), None)
        reason = ""
        if moved.reason is not None:
            words = self._named(moved.member_id, instance)
            reason = self._words.reasons[moved.reason].format(**words)
        self._say(
            broker,
            now,
            what,
            generation=moved.generation,
            members=moved.members,
            reason=reason,
        )

    def _answer(self, broker: str, request: str, response: Response, now: float) -> None:
        """Print a request's line as of the moment its answer is sent."""
        office = self.offices[broker]
        asked = office.open.pop(request)
        line = self.lines[request]
        assert line.request is not None
        told = self._renamed(line.request, body(response, asked.seen))
        remote = max(0.0, now - asked.taken_ms - told["localTimeMs"])
        total = told["requestQueueTimeMs"] + told["localTimeMs"] + remote + SENT_MS
        told |= {
            "remoteTimeMs": round(remote, 3),
            "responseQueueTimeMs": 0.05,
            "sendTimeMs": 0.1,
            "totalTimeMs": round(total, 3),
        }
        sent = asked.taken_ms - told["requestQueueTimeMs"] + total
        head, tail = line.text.partition(COMPLETED)[0], line.text.rpartition(" (")[2]
        text = f"{head}{COMPLETED}{json.dumps(told, separators=(',', ':'))} ({tail}"
        self.told.append(Told(broker, office.life, sent, text))
        if waiting := office.waiting.get(asked.connection):
            following = waiting.pop(0)
            self._push(sent, broker, replace(following, taken_ms=sent))

    def _renamed(self, line: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
        """Give the group its other name; the connections of another group are others."""
        return {
            **line,
            "request": {**line["request"], "groupId": self.name},
            "response": answer,
            "connection": f"{line['connection']}-{self.name}",
        }
