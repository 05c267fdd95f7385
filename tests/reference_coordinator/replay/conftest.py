"""A short scenario, written down as the request log of one broker would have it.

Two static members, `a` (the leader) and `b`, form generation 1 and send heartbeats; a test changes
one thing and looks at what the replay makes of it. Times are ms after the start.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from kafka_protocol.errors import Error
from reference_coordinator.classic.profiles import Profile, Settings
from reference_coordinator.classic.releases import NEWEST, promised_by
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
Body = dict[str, Any]


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
        broker: str = "1",
    ) -> str:
        """Write down one request; returns its id."""
        done = START + (at + 1.0 if answered is None else answered)
        named = {} if "members" in request else {"memberId": IDS[who], "groupInstanceId": who}
        seen = ObservedRequest(
            id=f"{api}:{who}:{at:g}",
            broker=broker,
            api=api,
            api_version=5 if api == "JOIN_GROUP" else 3,
            client_id=who,
            connection=f"{who}@{broker}",
            earliest_ms=START + at - before,
            at_ms=START + at,
            latest_ms=min(done, START + at + 50.0),
            answered_ms=done,
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
        broker: str = "1",
    ) -> str:
        """A JoinGroup of a static member; `members` are in the leader's list."""
        fine = error == 0
        request = {
            "memberId": known,
            "sessionTimeoutMs": SESSION_MS,
            "rebalanceTimeoutMs": REBALANCE_MS,
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": "bQ=="}],
        }
        response = {
            "errorCode": error,
            "generationId": generation if fine else -1,
            "protocolName": "range" if fine else "",
            "leader": IDS["a"] if fine else "",
            "memberId": IDS[who] if fine else "",
            "members": [
                {"memberId": IDS[name], "groupInstanceId": name, "metadata": "bQ=="}
                for name in members
            ],
        }
        return self.ask("JOIN_GROUP", who, at, request, response, answered=answered, broker=broker)

    def newcomer(self, member_id: str, at: float, **where: Any) -> str:
        """The first JoinGroup of a dynamic member, which is given its id."""
        request = {
            "memberId": "",
            "groupInstanceId": None,
            "sessionTimeoutMs": SESSION_MS,
            "rebalanceTimeoutMs": REBALANCE_MS,
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": "bQ=="}],
        }
        response = {
            "errorCode": Error.MEMBER_ID_REQUIRED,
            "generationId": -1,
            "protocolName": "",
            "leader": "",
            "memberId": member_id,
            "members": [],
        }
        return self.ask("JOIN_GROUP", "c", at, request, response, **where, broker=member_id)

    def sync(
        self, who: str, at: float, answered: float, *, generation: int = 1, gives: str = ""
    ) -> str:
        """A SyncGroup; the leader `gives` its members their shares."""
        shares = [{"memberId": IDS[n], "assignment": SHARES[n]} for n in gives]
        request = {"generationId": generation, "assignments": shares}
        response = {"assignment": SHARES[who]}
        return self.ask("SYNC_GROUP", who, at, request, response, answered=answered)

    def heartbeat(self, who: str, at: float, error: int = 0, **where: Any) -> str:
        """A Heartbeat in generation 1."""
        return self.ask("HEARTBEAT", who, at, {"generationId": 1}, {"errorCode": error}, **where)

    def leave(self, who: str, at: float, **where: Any) -> str:
        """A LeaveGroup of one member by its instance id."""
        named = {"memberId": IDS[who], "groupInstanceId": who}
        response = {"members": [{**named, "errorCode": 0}]}
        return self.ask("LEAVE_GROUP", who, at, {"members": [named]}, response, **where)

    def heartbeats(self, who: str, first: float, last: float, error: int = 0) -> None:
        """Heartbeats every 500 ms."""
        for index in range(int((last - first) // 500) + 1):
            self.heartbeat(who, first + 500 * index, error)

    def change(self, request: str, **response: Any) -> None:
        """Alter an answer that was written down."""
        place = next(i for i, seen in enumerate(self.requests) if seen.id == request)
        seen = self.requests[place]
        self.requests[place] = replace(seen, response={**seen.response, **response})

    def alter_last(self, **fields: Any) -> None:
        """Alter the request that was written down last."""
        self.requests[-1] = replace(self.requests[-1], **fields)

    def replay(
        self,
        tolerance: Tolerance | None = None,
        *,
        promised: bool = False,
        rules: Profile = PROFILE,
    ) -> Replay:
        """Replay what was written down, by the newest rules or by what KIP-345 promises of them."""
        ordered = sorted(self.requests, key=lambda seen: seen.at_ms)
        hints = sorted(self.hints, key=lambda hint: hint.at_ms)
        evidence = Evidence(
            "g",
            tuple(ordered),
            tuple(hints),
            tuple(self.epoch_events),
            tuple(self.stalls),
            tuple(self.outages),
            partings=tuple(self.partings),
        )
        return run_replay(evidence, promised_by(rules) if promised else rules, tolerance)


def stable() -> Scenario:
    """Two members in generation 1, stable from 1018 ms on."""
    scenario = Scenario()
    scenario.join("a", 0, 1_001, members="ab")
    scenario.join("b", 20, 1_001)
    scenario.sync("b", 1_010, 1_018)
    scenario.sync("a", 1_015, 1_018, gives="ab")
    return scenario


def rejoin(
    scenario: Scenario, at: float, generation: int, *, first: str = "a", then: str = "b"
) -> None:
    """Both members rejoin with their ids and get another generation."""
    for who, when in ((first, at), (then, at + 40)):
        scenario.join(
            who,
            when,
            at + 42,
            generation=generation,
            known=IDS[who],
            members="ab" if who == "a" else "",
        )
    scenario.sync("b", at + 60, at + 68, generation=generation)
    scenario.sync("a", at + 65, at + 68, generation=generation, gives="ab")


def wrong(outcome: Replay) -> list[str]:
    """Return the requests whose answers stand as violations."""
    return [violation.request for violation in outcome.violations]


def unexplained(outcome: Replay) -> list[str]:
    """Return the requests whose answers nothing explains."""
    return [checked.request for checked in outcome.checked if not checked.explained]
