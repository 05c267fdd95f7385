"""Small groups that are steady most of the time, made at random, with what may end a steady run.

Members are static or dynamic and have sessions of their own. They send heartbeats and commits, now
and then after a pause about as long as their session, so that some sessions end and the group
rebalances. The broker may stand still. Then a few responses are altered. The oracle itself gives
the responses, so what is not altered is right.
"""

import heapq
import random
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from kafka_protocol.errors import Error
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.effects import (
    Answer,
    Arm,
    Disarm,
    Effect,
    JoinResponse,
    Persist,
    Response,
    SyncResponse,
    Transition,
)
from reference_coordinator.classic.events import (
    Choices,
    Event,
    RecordWritten,
    Timer,
    TimerFired,
    TimerKind,
)
from reference_coordinator.classic.profiles import Profile, Settings
from reference_coordinator.classic.releases import NEWEST, profile_for
from reference_coordinator.classic.state import Group, State
from reference_coordinator.replay import (
    EpochEvent,
    Evidence,
    Hint,
    HintKind,
    ObservedRequest,
    Stall,
)

START_MS = 1_763_800_000_000.0
SETTINGS = Settings(initial_rebalance_delay_ms=500, min_session_timeout_ms=1_000)
RELEASES = (NEWEST, profile_for("3.9.1", "scala"), profile_for("2.4.1", "scala"))
SESSIONS_MS = (3_000, 6_000, 10_000)
NEAR_MS = (-700.0, -520.0, -30.0, -12.0, -10.5, -9.5, -1.0, -0.001, 0.0, 0.5, 9.0, 16.0, 600.0)
"""How much longer than the session a pause is."""
VERSIONS = {"JOIN_GROUP": 5, "SYNC_GROUP": 3, "HEARTBEAT": 3, "OFFSET_COMMIT": 8}
METADATA = "AAMAAAABAAZvcmRlcnMAAAAAAAAAAP////8AAA=="
Body = dict[str, Any]


@dataclass
class Member:
    """One member; its instance id is None if it is dynamic."""

    name: str
    instance: str | None
    session_ms: int
    member_id: str = ""
    generation: int = -1
    serial: int = 0


@dataclass
class SteadyGroup:
    """A group of one broker in virtual time."""

    dice: random.Random
    profile: Profile
    lasts_ms: float
    requests_in_session: int
    group: Group = field(default_factory=lambda: Group("g"))
    stalls: list[Stall] = field(default_factory=list)
    hints: list[Hint] = field(default_factory=list)
    timers: dict[Timer, tuple[float, float]] = field(default_factory=dict)
    planned: list[tuple[float, int, str, Member]] = field(default_factory=list)
    sent: dict[str, tuple[Member, ObservedRequest]] = field(default_factory=dict)
    answered: list[ObservedRequest] = field(default_factory=list)
    numbers: "count[int]" = field(default_factory=count)

    def run(self) -> list[ObservedRequest]:
        """Run it; return its requests in order of time."""
        dice, end_ms = self.dice, START_MS + self.lasts_ms
        for number in range(dice.randint(1, 5)):
            instance = f"i-{number}" if dice.random() < 0.6 else None
            member = Member(f"m-{number}", instance, dice.choice(SESSIONS_MS))
            self._plan(START_MS + dice.uniform(1, 400), "JOIN_GROUP", member)
        for _ in range(dice.choice((0, 0, 1, 2))):
            from_ms = START_MS + dice.uniform(3_000, self.lasts_ms)
            stall = Stall("1", from_ms, from_ms + dice.uniform(300, 4_000), dice.random() < 0.7)
            self.stalls.append(stall)
        while True:
            timer = min(self.timers, key=lambda timer: self.timers[timer][1], default=None)
            expires_ms = self._later(self.timers[timer][1]) if timer else end_ms
            next_ms = self._later(self.planned[0][0]) if self.planned else end_ms
            if min(expires_ms, next_ms) >= end_ms:
                break
            if timer and expires_ms <= next_ms:
                del self.timers[timer]
                if timer.kind is TimerKind.SESSION:
                    self.hints.append(Hint(expires_ms, HintKind.SESSION_EXPIRED, timer.member_id))
                self._step(TimerFired(expires_ms, timer))
            else:
                _, _, api, member = heapq.heappop(self.planned)
                self._send(next_ms, api, member)
        return sorted(self.answered, key=lambda seen: seen.at_ms)

    def _later(self, at_ms: float) -> float:
        """Return when the broker does what is due at a time."""
        for stall in sorted(self.stalls, key=lambda stall: stall.from_ms):
            if stall.from_ms <= at_ms < stall.until_ms:
                at_ms = stall.until_ms
        return at_ms

    def _plan(self, at_ms: float, api: str, member: Member) -> None:
        heapq.heappush(self.planned, (at_ms, next(self.numbers), api, member))

    def _send(self, at_ms: float, api: str, member: Member) -> None:
        number, dice = next(self.numbers), self.dice
        member.serial += 1
        seen = ObservedRequest(
            id=str(number),
            broker="1",
            api=api,
            api_version=VERSIONS[api],
            client_id=member.name,
            connection=member.name,
            earliest_ms=at_ms - dice.choice((0.3, 5.0, 5.0, 40.0)),
            at_ms=at_ms,
            latest_ms=at_ms + dice.choice((0.1, 0.5, 0.5, 30.0)),
            answered_ms=at_ms,
            request=self._body(api, member),
            response={},
            serial=member.serial,
        )
        self.sent[seen.id] = member, seen
        choices = Choices(new_member_id=f"{member.instance or member.name}-{number:036}")
        self._step(CLASSIC.event_of(seen, at_ms, choices))

    def _body(self, api: str, member: Member) -> Body:
        who = {"groupId": "g", "memberId": member.member_id, "groupInstanceId": member.instance}
        if api == "JOIN_GROUP":
            protocols = [{"name": "range", "metadata": METADATA}]
            times = {"sessionTimeoutMs": member.session_ms, "rebalanceTimeoutMs": 4_000}
            return who | times | {"protocolType": "consumer", "protocols": protocols}
        body = who | {"generationId": member.generation - (self.dice.random() < 0.003)}
        if api == "SYNC_GROUP":
            workers = self.group.members if member.member_id == self.group.leader else ()
            return body | {
                "assignments": [{"memberId": w, "assignment": "d29yaw=="} for w in workers]
            }
        if api == "OFFSET_COMMIT":
            partitions = [{"partitionIndex": p, "committedOffset": member.serial} for p in (0, 1)]
            return body | {"topics": [{"name": "orders", "partitions": partitions}]}
        return body

    def _step(self, event: Event) -> None:
        self.group, effects = CLASSIC.step(self.group, event, self.profile)
        for effect in effects:
            self._absorb(event.at_ms, effect)

    def _absorb(self, at_ms: float, effect: Effect) -> None:
        match effect:
            case Answer():
                self._answer(at_ms, effect.request, effect.response)
            case Arm():
                due_ms = effect.deadline_ms
                self.timers[effect.timer] = due_ms, due_ms + self.dice.choice((0.0, 0.4, 15.0))
            case Disarm():
                self.timers.pop(effect.timer, None)
            case Transition() if effect.after is State.COMPLETING_REBALANCE:
                kind = HintKind.JOIN_PHASE_ENDED
                self.hints.append(Hint(at_ms, kind, generation=effect.generation))
            case Persist(request=str(request)):
                self._step(RecordWritten(at_ms, request))

    def _answer(self, at_ms: float, request: str, response: Response) -> None:
        """Add a response to the evidence, and plan what the member does then."""
        member, seen = self.sent.pop(request)
        body: Body = {"errorCode": int(response.error)}
        if isinstance(response, JoinResponse):
            member.member_id, member.generation = response.member_id, response.generation
            listed = [
                {"memberId": member_id, "groupInstanceId": instance, "metadata": metadata}
                for member_id, instance, metadata in sorted(response.members)
            ]
            body |= {
                "generationId": response.generation,
                "protocolName": response.protocol or "",
                "leader": response.leader,
                "memberId": response.member_id,
                "members": listed,
            }
        elif isinstance(response, SyncResponse):
            body["assignment"] = response.assignment
        elif seen.api == "OFFSET_COMMIT":
            partitions = [{"partitionIndex": part} | body for part in (0, 1)]
            body = {"topics": [{"name": "orders", "partitions": partitions}]}
        answered_ms = at_ms + self.dice.uniform(0.1, 2)
        latest_ms = min(answered_ms, max(seen.latest_ms, at_ms + 0.1))
        self.answered.append(
            replace(seen, latest_ms=latest_ms, answered_ms=answered_ms, response=body)
        )
        after_ms, api = self._next(member, seen.api, response)
        self._plan(answered_ms + after_ms, api, member)

    def _next(self, member: Member, api: str, response: Response) -> tuple[float, str]:
        """Return after how long a member sends its next request, and which."""
        dice, error = self.dice, response.error
        if error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
            member.member_id = ""
        if error == Error.NONE and api == "JOIN_GROUP":
            return dice.uniform(1, 60), "SYNC_GROUP"
        if error != Error.NONE:
            return dice.uniform(1, 300), "JOIN_GROUP"
        api = "OFFSET_COMMIT" if dice.random() < 0.3 else "HEARTBEAT"
        if dice.random() < 0.015:
            return member.session_ms + dice.choice(NEAR_MS), api
        return member.session_ms / self.requests_in_session + dice.uniform(-60, 60), api


def _altered(seen: ObservedRequest, dice: random.Random) -> ObservedRequest:
    """Return a request with something wrong about its response, or with none."""
    error = int(dice.choice((Error.NONE, Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS,
                             Error.FENCED_INSTANCE_ID, Error.REQUEST_TIMED_OUT)))  # fmt: skip
    what = 0 if seen.response is None else dice.randrange(4)
    if what == 0:
        return replace(seen, answered_ms=seen.answered_ms + dice.choice((900, 990, 1_010, 3_000)))
    if what == 1 and dice.random() < 0.5:
        return replace(seen, response=None, answered_ms=float("inf"))
    if seen.api != "OFFSET_COMMIT":
        return replace(seen, response={**seen.response_fields, "errorCode": error})
    partitions = [
        {"partitionIndex": part, "errorCode": error} for part in range(dice.choice((1, 2, 2)))
    ]
    if dice.random() < 0.3:
        partitions[-1]["errorCode"] = 0
    return replace(seen, response={"topics": [{"name": "orders", "partitions": partitions}]})


def steady_group(seed: int) -> tuple[Evidence, Profile]:
    """Return the evidence of a group, and the rules of its coordinator."""
    dice = random.Random(seed)
    profile = dice.choice(RELEASES).with_settings(SETTINGS)
    often = dice.choice((3, 3, 12))
    simulated = SteadyGroup(dice, profile, dice.uniform(30_000, 270_000) / often, often)
    requests = simulated.run()
    for _ in range(dice.choice((0, 0, 1, 1, 2, 5)) if requests else 0):
        place = dice.randrange(len(requests))
        requests[place] = _altered(requests[place], dice)
    hints, events = simulated.hints if dice.random() < 0.4 else [], []
    if dice.random() < 0.4:
        events = [
            EpochEvent(START_MS - 200, "1", "loading"),
            EpochEvent(START_MS - 100, "1", "loaded"),
        ]
    stalls = simulated.stalls if dice.random() < 0.8 else []
    return Evidence("g", tuple(requests), tuple(hints), tuple(events), tuple(stalls)), profile
