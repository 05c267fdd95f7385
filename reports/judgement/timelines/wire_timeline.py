"""The observed timeline of a group at level `wire`: one row per generation that answers tell of.

A JoinGroup answer tells the generation that a rebalance led to, and the leader's its members. When
and why the rebalance began no answer tells, so the row does not, either; nor is there a row of a
rebalance that leads to no member's answer, as when the last member leaves. Such a rebalance follows
from the replay alone, whose answers are compared one by one.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Reason
from reference_coordinator.replay import ObservedRequest
from reports.judgement.timelines.line_fields import UUID
from reports.judgement.timelines.timeline import NOTHING

Row = dict[str, Any]
Place = tuple[int, int]  # incarnation and generation
BY_TIMERS = (Reason.SESSION_EXPIRED, Reason.PENDING_SYNC)
"""The reasons of rebalances that no request begins."""
LED, REJOIN = "led", "rejoin"
Cause = tuple[float, float, str, tuple[str, str]]
"""The window of a request that may begin a rebalance, in ms, what kind of request it is, and of a
rejoin who sent it with which metadata."""


@dataclass(slots=True)
class Generations:
    """The generations of a group, as its answers come in.

    `incarnation` returns the number of the load that a broker (id) last finished before a time, ms.
    """

    group: str
    incarnation: Callable[[str, float], int]
    _known: set[str] = field(default_factory=set)
    """The member ids of requests, and those that JoinGroup gave."""
    _inside: set[str | None] = field(default_factory=set)
    """The instances and, without one, member ids that joined, and did not leave."""
    _named: set[str] = field(default_factory=set)
    """The member ids that JoinGroup answers name as those of members."""
    _unanswered: list[str] = field(default_factory=list)
    """The instances or, without one, clients of JoinGroups without a member id or an answer."""
    _causes: list[Cause] = field(default_factory=list)
    _said_ms: list[float] = field(default_factory=list)
    """When answers said that a rebalance is under way."""
    _first: dict[Place, dict[str, ObservedRequest]] = field(default_factory=dict)
    """The first answers of each generation, by API; LED is that which tells who is in the group."""

    def add_unanswered(self, requests: Iterable[ObservedRequest]) -> None:
        """Take requests of which the tap saw no answer."""
        for seen in requests:
            member = seen.request.get("memberId") or ""
            self._known.add(member)
            if seen.api == "JOIN_GROUP" and not member:
                self._unanswered.append(seen.request.get("groupInstanceId") or seen.client_id)

    def add(self, requests: Iterable[ObservedRequest]) -> None:
        """Take requests, in the order of time."""
        for seen in requests:
            response = seen.response_fields
            self._known.add(seen.request.get("memberId") or "")
            if response.get("errorCode") == Error.REBALANCE_IN_PROGRESS:
                self._said_ms.append(seen.answered_ms)
            if (kind := self._kind(seen)) is not None:
                who = seen.request.get("memberId") or "", str(seen.request.get("protocols"))
                self._causes.append((seen.earliest_ms, seen.latest_ms, kind, who))
            if seen.api == "JOIN_GROUP":
                self._known.add(response["memberId"])
                members = (member["memberId"] for member in response["members"])
                self._named |= {response["leader"] or "", *members}
            if response.get("errorCode") == Error.NONE and seen.api in ("JOIN_GROUP", "SYNC_GROUP"):
                naming = response if seen.api == "JOIN_GROUP" else seen.request
                place = self.incarnation(seen.broker, seen.answered_ms), naming["generationId"]
                first = self._first.setdefault(place, {})
                for what in (seen.api, LED) if response.get("members") else (seen.api,):
                    if what not in first or seen.answered_ms < first[what].answered_ms:
                        first[what] = seen

    def _kind(self, seen: ObservedRequest) -> str | None:
        """Return what kind of cause a request may be; None if it begins no rebalance."""
        request, response = seen.request, seen.response_fields
        error = response.get("errorCode")
        if seen.api == "LEAVE_GROUP":
            for one in response.get("members") or ({**request, **response},):
                if one["errorCode"] == Error.NONE:
                    self._inside -= {one.get("groupInstanceId"), one.get("memberId")}
            return "leave" if error == Error.NONE else None
        if seen.api != "JOIN_GROUP" or error not in (Error.NONE, Error.REBALANCE_IN_PROGRESS):
            return None
        who = request.get("groupInstanceId") or response["memberId"]
        before = who in self._inside
        self._inside.add(who)
        return (REJOIN if request["memberId"] else "return") if before else "join"

    def forced(self, expected: Iterable[Row]) -> list[Row]:
        """Leave out the reasons of rebalances that may have begun for another one.

        Where requests of several kinds may have come before any answer says that there is one,
        answers do not tell which of them the coordinator took first. Nor do they tell whether a
        request came before a timer expired.
        """
        self._said_ms.sort()
        return [row if self._is_forced(row) else {**row, "reason": None} for row in expected]

    def _is_forced(self, row: Mapping[str, Any]) -> bool:
        after = bisect_left(self._said_ms, row["earliest_ms"])
        by_ms = min([row["latest_ms"], *self._said_ms[after : after + 1]])
        causes = {
            (kind, who)
            for earliest_ms, latest_ms, kind, who in self._causes
            if earliest_ms <= by_ms and latest_ms >= row["earliest_ms"]
        }
        kinds = {kind for kind, _ in causes}
        # a member that rejoins twice may have changed its metadata the second time alone
        rejoins = [member for kind, (member, _) in causes if kind == REJOIN]
        twice = len(rejoins) > len({*rejoins})
        return not twice and len(kinds) <= (0 if row["reason"] in BY_TIMERS else 1)

    @property
    def unseen_members(self) -> int:
        """How many members there are of which no request passed the tap.

        A JoinGroup without an answer may have made one new id, which other answers name.
        """
        unknown = self._named - self._known
        for name in self._unanswered:
            made = (one for one in unknown if UUID.fullmatch(one.removeprefix(f"{name}-")))
            unknown.discard(next(made, ""))
        return len(unknown)

    def rows(self) -> Iterator[Row]:
        """Yield rows of `timeline.OBSERVED`."""
        joined = {place: of for place, of in self._first.items() if "JOIN_GROUP" in of}
        for row, place in enumerate(sorted(joined), 1):
            first, synced = joined[place]["JOIN_GROUP"], joined[place].get("SYNC_GROUP")
            found = {
                **NOTHING,
                "group": self.group,
                "incarnation": place[0],
                "row": row,
                "joined_ms": first.answered_ms,
                "generation": place[1],
                "leader": first.response_fields["leader"],
                "assignments": int(synced is not None),
                "broker": first.broker,
                "joined_line": _line(first),
            }
            if led := joined[place].get(LED):
                members = led.response_fields["members"]
                statics = sum(one.get("groupInstanceId") is not None for one in members)
                found |= {"members": len(members), "static_members": statics}
            if synced is not None:
                found |= {
                    "assigned_generation": place[1],
                    "assigned_ms": synced.answered_ms,
                    "ended_as": "assigned",
                    "assigned_line": _line(synced),
                }
            yield found


def new(observed: Iterable[Row], expected: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Leave out the generations with which a coordinator goes on, by the replay: none began."""
    known = {(row["incarnation"], row["generation"]) for row in expected}
    found: list[Row] = []
    for row in observed:
        before = any(one["generation"] == row["generation"] for one in found)
        if not before or (row["incarnation"], row["generation"]) in known:
            found.append(row)
    return found


def _line(seen: ObservedRequest) -> int:
    return int(seen.id.rpartition(":")[2])
