"""A simulated group of any size in virtual time: its coordinator's events, and their evidence.

Static members join, then each sends heartbeats at its own times. Some heartbeats are replaced by
commits or, if members restart, by static rejoins. The oracle itself computes the responses.
"""

import heapq
import random
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from kafka_protocol.versions import FIRST_WITH_INSTANCE_ID
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.effects import (
    Answer,
    Arm,
    Disarm,
    JoinResponse,
    Persist,
    SyncResponse,
)
from reference_coordinator.classic.events import Choices, Event, RecordWritten, Timer, TimerFired
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import Group
from reference_coordinator.classic.step import step
from reference_coordinator.replay import Evidence, ObservedRequest

GROUP = "simulated"
HEARTBEAT_MS = 3_000.0
JITTER_MS = 50.0
FORMATION_MS = 1_000.0
"""The time in which all members join."""
STEADY = ("HEARTBEAT",) * 8 + ("OFFSET_COMMIT",)
"""The requests of a member, one for each heartbeat interval, in a cycle."""
RESTARTED = (*STEADY, *("HEARTBEAT",) * 8, "JOIN_GROUP")
"""The same for a member that restarts every 54 s; a SyncGroup follows each join."""
EARLY_MS = 5.0
"""How much earlier than logged a request may have arrived, as in evidence from a log."""
WORK_MS = 0.25
"""How long the broker handles a request before, and after, the coordinator acts on it."""
METADATA = "AAMAAAABAAZvcmRlcnMAAAAAAAAAAP////8AAA=="
ASSIGNMENT = "AAAAAAABAAZvcmRlcnMAAAADAAAAAwAAAAQAAAAFAAAAAA=="


@dataclass(slots=True)
class Member:
    """One simulated member."""

    instance: str
    member_id: str = ""
    generation: int = -1
    requests: int = 0
    cycle_position: int = 0


@dataclass(slots=True)
class Simulation:
    """One group on one coordinator. `events` are the inputs of `step`, `answered` the evidence."""

    size: int
    profile: Profile
    cycle: tuple[str, ...] = RESTARTED
    group: Group = field(default_factory=lambda: Group(GROUP))
    events: list[Event] = field(default_factory=list)
    answered: list[ObservedRequest] = field(default_factory=list)
    sent: dict[str, tuple[Member, ObservedRequest]] = field(default_factory=dict)
    timers: dict[Timer, float] = field(default_factory=dict)
    planned: list[tuple[float, int, str, Member]] = field(default_factory=list)
    numbers: "count[int]" = field(default_factory=count)
    dice: random.Random = field(default_factory=lambda: random.Random(0))

    def run(self, requests: int) -> Evidence:
        """Run the group until `requests` are answered; return the evidence."""
        for number in range(self.size):
            self._plan(self.dice.uniform(0, FORMATION_MS), "JOIN_GROUP", Member(f"app-{number}"))
        while len(self.answered) < requests:
            next_ms = self.planned[0][0] if self.planned else float("inf")
            due = min(self.timers, key=self.timers.__getitem__, default=None)
            if due is not None and self.timers[due] <= next_ms:
                self._step(TimerFired(self.timers.pop(due), due))
            else:
                at_ms, _, api, member = heapq.heappop(self.planned)
                self._send(at_ms, api, member)
        return Evidence(GROUP, tuple(sorted(self.answered, key=lambda seen: seen.at_ms)))

    def _plan(self, at_ms: float, api: str, member: Member) -> None:
        heapq.heappush(self.planned, (at_ms, next(self.numbers), api, member))

    def _send(self, at_ms: float, api: str, member: Member) -> None:
        """Send a member's request to the coordinator."""
        number = next(self.numbers)
        member.requests += 1
        seen = ObservedRequest(
            id=str(number),
            broker="1",
            api=api,
            api_version=FIRST_WITH_INSTANCE_ID[api],
            client_id=member.instance,
            connection=member.instance,
            earliest_ms=at_ms - EARLY_MS - WORK_MS,
            at_ms=at_ms,
            latest_ms=at_ms + WORK_MS,
            answered_ms=at_ms + WORK_MS,
            request=self._body(api, member),
            response={},
            serial=member.requests,
        )
        self.sent[seen.id] = member, seen
        choices = Choices(new_member_id=f"{member.instance}-{number:036}")
        self._step(CLASSIC.event_of(seen, at_ms, choices))

    def _body(self, api: str, member: Member) -> dict[str, Any]:
        who = {"groupId": GROUP, "groupInstanceId": member.instance}
        if api == "JOIN_GROUP":
            protocols = [{"name": "range", "metadata": METADATA}]
            times = {"sessionTimeoutMs": 45_000, "rebalanceTimeoutMs": 300_000}
            return {**who, **times, "memberId": "", "protocolType": "consumer",
                    "protocols": protocols}  # fmt: skip
        body = {**who, "memberId": member.member_id, "generationId": member.generation}
        if api == "SYNC_GROUP":
            workers = self.group.members if member.member_id == self.group.leader else ()
            work = [{"memberId": worker, "assignment": ASSIGNMENT} for worker in workers]
            return {**body, "assignments": work}
        if api == "OFFSET_COMMIT":
            partitions = [{"partitionIndex": 0, "committedOffset": member.requests}]
            return {**body, "topics": [{"name": "orders", "partitions": partitions}]}
        return body

    def _step(self, event: Event) -> None:
        self.events.append(event)
        self.group, effects = step(self.group, event, self.profile)
        for effect in effects:
            match effect:
                case Answer():
                    self._answer(event.at_ms, effect)
                case Arm():
                    self.timers[effect.timer] = effect.deadline_ms
                case Disarm():
                    self.timers.pop(effect.timer, None)
                case Persist(request=str(request)):
                    self._step(RecordWritten(event.at_ms, request))

    def _answer(self, at_ms: float, answer: Answer) -> None:
        """Add a response to the evidence, and plan the member's next request."""
        member, seen = self.sent.pop(answer.request)
        response = answer.response
        body: dict[str, Any] = {"errorCode": int(response.error)}
        after_ms, api = HEARTBEAT_MS + self.dice.uniform(-JITTER_MS, JITTER_MS), ""
        if isinstance(response, JoinResponse):
            member.member_id, member.generation = response.member_id, response.generation
            body |= _joined(response)
            after_ms, api = self.dice.uniform(1, JITTER_MS), "SYNC_GROUP"
        elif isinstance(response, SyncResponse):
            body["assignment"] = response.assignment
            after_ms = self.dice.uniform(1, HEARTBEAT_MS)
        elif seen.api == "OFFSET_COMMIT":
            partitions = [{"partitionIndex": 0, **body}]
            body = {"topics": [{"name": "orders", "partitions": partitions}]}
        answered_ms = at_ms + WORK_MS
        self.answered.append(
            replace(seen, latest_ms=answered_ms, answered_ms=answered_ms, response=body)
        )
        self._plan(answered_ms + after_ms, api or self._next(member), member)

    def _next(self, member: Member) -> str:
        member.cycle_position += 1
        api = self.cycle[member.cycle_position % len(self.cycle)]
        leads = member.member_id == self.group.leader  # its rejoin would start a rebalance
        return "HEARTBEAT" if leads and api == "JOIN_GROUP" else api


def _joined(response: JoinResponse) -> dict[str, Any]:
    members = [
        {"memberId": member_id, "groupInstanceId": instance, "metadata": metadata}
        for member_id, instance, metadata in sorted(response.members)
    ]
    return {
        "generationId": response.generation,
        "protocolName": response.protocol or "",
        "leader": response.leader,
        "memberId": response.member_id,
        "members": members,
    }
