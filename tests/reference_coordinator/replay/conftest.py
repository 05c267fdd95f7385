"""A short scenario, written down as the request log of one broker would have it.

Two static members, `a` (the leader) and `b`, form generation 1 and send heartbeats; a test changes
one thing and looks at what the replay makes of it. Times are ms after the start.
"""

import json
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from kafka_protocol.errors import Error
from reference_coordinator.classic.profiles import Profile, Settings
from reference_coordinator.classic.releases import NEWEST, PROFILES, promised_by
from reference_coordinator.replay import (
    EpochEvent,
    Evidence,
    Hint,
    ObservedRequest,
    Outage,
    Parting,
    Replay,
    Stall,
    Tolerance,
)
from reference_coordinator.replay import replay as run_replay

START = 1_000_000.0
PROFILE = NEWEST.with_settings(
    Settings(initial_rebalance_delay_ms=500, min_session_timeout_ms=1_000)
)
SESSION_MS, REBALANCE_MS = 3_000, 8_000
IDS = {name: f"{name}-0000" for name in "abc"}
SHARES = {name: f"share{name}==" for name in "abc"}
LOADS = [EpochEvent(START - 200, "1", "loading"), EpochEvent(START - 100, "1", "loaded")]
"""Broker 1 is the coordinator, and its lines are known."""
Body = dict[str, Any]
JOINS: Body = {
    "sessionTimeoutMs": SESSION_MS,
    "rebalanceTimeoutMs": REBALANCE_MS,
    "protocolType": "consumer",
    "protocols": [{"name": "range", "metadata": "bQ=="}],
}
REFUSED: Body = {
    "generationId": -1, "protocolName": "", "leader": "", "memberId": "", "members": [],
}  # fmt: skip
"""What a JoinGroup that fails is answered with, beside its error."""


def listed(*names: str) -> list[Body]:
    """Return members as the leader's response has them."""
    return [{"memberId": IDS[n], "groupInstanceId": n, "metadata": "bQ=="} for n in names]


@dataclass
class Scenario:
    """Requests with their answers, in any order, and all else that an evidence has."""

    requests: list[ObservedRequest] = field(default_factory=list)
    hints: list[Hint] = field(default_factory=list)
    epoch_events: list[EpochEvent] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    partings: list[Parting] = field(default_factory=list)

    def ask(
        self,
        api: str,
        who: str,
        at: float,
        request: Body,
        response: Body,
        *,
        answered: float | None = None,
        before: float = 5.0,
        latest: float | None = None,
        broker: str = "1",
        connection: str = "",
    ) -> str:
        """Write down one request; returns its id. `latest` is the end of its window."""
        done = at + 1.0 if answered is None else answered
        named = {} if "members" in request else {"memberId": IDS[who], "groupInstanceId": who}
        seen = ObservedRequest(
            id=f"{api}:{who}:{at:g}",
            broker=broker,
            api=api,
            api_version=5 if api == "JOIN_GROUP" else 3,
            client_id=who,
            connection=connection or f"{who}@{broker}",
            earliest_ms=START + at - before,
            at_ms=START + at,
            latest_ms=START + (min(done, at + 50.0) if latest is None else latest),
            answered_ms=START + done,
            request={"groupId": "g", **named, **request},
            response={"throttleTimeMs": 0, "errorCode": 0, **response},
        )
        self.requests.append(seen)
        return seen.id

    def join(
        self,
        who: str,
        at: float,
        answered: float,
        *,
        generation: int = 1,
        known: str = "",
        members: str = "",
        error: int = 0,
        **where: Any,
    ) -> str:
        """A JoinGroup of a static member; `members` are in the leader's list."""
        joined = {
            "generationId": generation,
            "protocolName": "range",
            "leader": IDS["a"],
            "memberId": IDS[who],
            "members": listed(*members),
        }
        response = {**(REFUSED if error else joined), "errorCode": error}
        request = {**JOINS, "memberId": known}
        return self.ask("JOIN_GROUP", who, at, request, response, answered=answered, **where)

    def newcomer(self, member_id: str, at: float, **where: Any) -> str:
        """The first JoinGroup of a dynamic member, which is given its id."""
        request = {**JOINS, "memberId": "", "groupInstanceId": None}
        response = {**REFUSED, "errorCode": Error.MEMBER_ID_REQUIRED, "memberId": member_id}
        return self.ask("JOIN_GROUP", "c", at, request, response, **where, broker=member_id)

    def sync(
        self,
        who: str,
        at: float,
        answered: float,
        *,
        generation: int = 1,
        gives: str = "",
        error: int = 0,
        **where: Any,
    ) -> str:
        """A SyncGroup; the leader `gives` its members their shares."""
        shares = [{"memberId": IDS[n], "assignment": SHARES[n]} for n in gives]
        request = {"generationId": generation, "assignments": shares}
        response = {"assignment": "" if error else SHARES[who], "errorCode": error}
        return self.ask("SYNC_GROUP", who, at, request, response, answered=answered, **where)

    def heartbeat(
        self, who: str, at: float, error: int = 0, *, generation: int = 1, **where: Any
    ) -> str:
        """A Heartbeat."""
        request = {"generationId": generation}
        return self.ask("HEARTBEAT", who, at, request, {"errorCode": error}, **where)

    def commit(self, who: str, at: float, error: int = 0, **where: Any) -> str:
        """An OffsetCommit of one partition in generation 1."""
        topics = lambda partition: {"topics": [{"name": "orders", "partitions": [partition]}]}
        request = {"generationIdOrMemberEpoch": 1, **topics({"partitionIndex": 0})}
        response = topics({"partitionIndex": 0, "errorCode": error})
        return self.ask("OFFSET_COMMIT", who, at, request, response, **where)

    def leave(self, who: str, at: float, **where: Any) -> str:
        """A LeaveGroup of one member by its instance id."""
        named = {"memberId": IDS[who], "groupInstanceId": who}
        response = {"members": [{**named, "errorCode": 0}]}
        return self.ask("LEAVE_GROUP", who, at, {"members": [named]}, response, **where)

    def heartbeats(
        self, who: str, first: float, last: float, error: int = 0, *,
        every: int = 500, error_from: float = -inf, **where: Any,
    ) -> None:  # fmt: skip
        """Heartbeats at equal distances, those from some time on with an error."""
        for index in range(int((last - first) // every) + 1):
            at = first + every * index
            self.heartbeat(who, at, error if at >= error_from else 0, **where)

    def place(self, request: str) -> int:
        """Find a request by its id."""
        return next(i for i, seen in enumerate(self.requests) if seen.id == request)

    def change(self, request: str, **response: Any) -> None:
        """Alter an answer that was written down."""
        seen = self.requests[self.place(request)]
        self.alter(request, response={**seen.response_fields, **response})

    def alter(self, request_id: str, /, **fields: Any) -> None:
        """Alter a request that was written down."""
        place = self.place(request_id)
        self.requests[place] = replace(self.requests[place], **fields)

    def alter_last(self, **fields: Any) -> None:
        """Alter the request that was written down last."""
        self.requests[-1] = replace(self.requests[-1], **fields)

    def set_in_joins(self, **body: Any) -> None:
        """Set fields in the body of every JoinGroup."""
        for place, seen in enumerate(self.requests):
            if seen.api == "JOIN_GROUP":
                self.requests[place] = replace(seen, request={**seen.request, **body})

    def evidence(self) -> Evidence:
        """Return what was written down, in order."""
        return Evidence(
            "g",
            tuple(sorted(self.requests, key=lambda seen: seen.at_ms)),
            tuple(sorted(self.hints, key=lambda hint: hint.at_ms)),
            tuple(self.epoch_events),
            tuple(self.stalls),
            tuple(self.outages),
            partings=tuple(self.partings),
        )

    def replay(
        self,
        tolerance: Tolerance | None = None,
        *,
        promised: bool = False,
        rules: Profile | str = PROFILE,
    ) -> Replay:
        """Replay it by the newest rules, those of a release, or what KIP-345 promises of them."""
        if isinstance(rules, str):
            rules = PROFILES[rules].with_settings(PROFILE.settings)
        return run_replay(self.evidence(), promised_by(rules) if promised else rules, tolerance)


def stable() -> Scenario:
    """Two members in generation 1, stable from 1018 ms on."""
    scenario = Scenario()
    scenario.join("a", 0, 1_001, members="ab")
    scenario.join("b", 20, 1_001)
    scenario.sync("b", 1_010, 1_018)
    scenario.sync("a", 1_015, 1_018, gives="ab")
    return scenario


def beating(until: float, error: int = 0, **options: Any) -> Scenario:
    """The stable group, whose members send heartbeats until some time."""
    scenario = stable()
    scenario.heartbeats("a", 1_500, until, error, **options)
    scenario.heartbeats("b", 1_510, until + 10, error, **options)
    return scenario


def both_join(scenario: Scenario, at: float, generation: int, **where: Any) -> None:
    """Both members send JoinGroups with their ids, and get another generation."""
    again: Body = {"answered": at + 42, "generation": generation, **where}
    scenario.join("a", at, known=IDS["a"], members="ab", **again)
    scenario.join("b", at + 40, known=IDS["b"], **again)


def rejoin(scenario: Scenario, at: float, generation: int) -> None:
    """Both members rejoin, and the leader gives them their shares."""
    both_join(scenario, at, generation)
    scenario.sync("b", at + 60, at + 68, generation=generation)
    scenario.sync("a", at + 65, at + 68, generation=generation, gives="ab")


def wrong(outcome: Replay) -> list[str]:
    """Return the requests whose answers stand as violations."""
    return [violation.request for violation in outcome.violations]


def unexplained(outcome: Replay) -> list[str]:
    """Return the requests whose answers nothing explains."""
    return [checked.request for checked in outcome.checked if not checked.explained]


def renamed(seen: ObservedRequest, old: str, new: str) -> ObservedRequest:
    """Put another text in the place of one in both bodies of a request."""
    bodies = json.dumps([seen.request, seen.response]).replace(old, new)
    request, response = json.loads(bodies)
    return replace(seen, request=request, response=response)
