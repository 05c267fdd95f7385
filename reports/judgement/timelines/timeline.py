"""The observed timeline of a group: one row per rebalance, from coordinator lines alone.

A partition is handled by one thread, so a group's lines stand in the order of its transitions. A
rebalance starts with its "Preparing" line and has all lines up to the next one.

At level `wire` it has one row per generation that answers tell of. A JoinGroup answer tells the
generation that a rebalance led to, and the leader's its members. When and why the rebalance began
no answer tells, so the row does not, either; nor is there a row of a rebalance that leads to no
member's answer, as when the last member leaves. Such a rebalance follows from the replay alone,
whose answers are compared one by one.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from kafka_protocol.coordinator_lines import Grammar
from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import REJOINS, Reason
from reference_coordinator.replay import Hint, HintKind, ObservedRequest
from reports.judgement.rows import Json

Line = Mapping[str, Any]  # a row of the table `transitions`

UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Stands behind the client's id, or the instance's, in a member id."""
OBSERVED = """
    group STRING, incarnation INT, old_generation INT, row LONG, started_ms DOUBLE, reason STRING,
    client_reason STRING, member_id STRING, joined_ms DOUBLE, generation INT, members INT,
    assigned_members INT, static_members INT, leader STRING, assigned_generation INT,
    assignments LONG, assigned_ms DOUBLE, ended_as STRING, duration_ms DOUBLE, broker STRING,
    started_line LONG, joined_line LONG, assigned_line LONG
"""
NOTHING: Json = dict.fromkeys(column.split()[0] for column in OBSERVED.split(","))
"""A row of a rebalance of which nothing is known."""
STEPS = ("preparing", "stabilized", "assignment", "empty")
"""Templates of the lines that a rebalance writes."""
HINTS = {
    "preparing": HintKind.PREPARING,
    "session_expired": HintKind.SESSION_EXPIRED,
    "pending_expired": HintKind.SESSION_EXPIRED,
    "stabilized": HintKind.JOIN_PHASE_ENDED,
    "empty": HintKind.JOIN_PHASE_ENDED,
    "nobody_rejoined": HintKind.NOBODY_REJOINED,
    "static_added": HintKind.JOINED,
    "dynamic_given_id": HintKind.JOINED,
    "dynamic_added": HintKind.JOINED,
    "member_added": HintKind.JOINED,
    "pending_joins": HintKind.PENDING_JOINED,
    "static_replaced": HintKind.REPLACED,
    "left": HintKind.LEFT,
    "pending_left": HintKind.LEFT,
    "assignment": HintKind.ASSIGNED,
    "persist_failed": HintKind.PERSIST_FAILED,
}  # templates of lines that mark an instant, and the oracle's name of that instant
Place = tuple[int, int]  # incarnation and generation
BY_TIMERS = (Reason.SESSION_EXPIRED, Reason.PENDING_SYNC)
"""The reasons of rebalances that no request begins."""
LED, REJOIN = "led", "rejoin"
Cause = tuple[float, float, str, tuple[str, str]]
"""The window of a request that may begin a rebalance, in ms, what kind of request it is, and of a
rejoin who sent it with which metadata."""


def hints(lines: Iterable[Line], grammar: Grammar) -> list[Hint]:
    """List the lines that mark when a timer fired, or when a request was handled."""
    found = []
    alone = grammar.lines_instead.get("pending_joins", "pending_joins") is None
    for line in lines:
        about = line["instance" if line["template"] == "static_replaced" else "member"] or ""
        marks = [(HINTS[line["template"]], about)] if line["template"] in HINTS else []
        if line["template"] == "preparing":
            why, member = reason(line, grammar)
            if why == "pending_sync":
                marks.append((HintKind.SYNC_EXPIRED, about))
            elif why == "new_member" and member and alone:  # no other line of one that joins
                marks.append((HintKind.PENDING_JOINED, member))
            elif why in REJOINS:
                marks.append((HintKind.REJOINED, member))
        generation = -1 if line["generation"] is None else line["generation"]
        found += [
            Hint(line["at_ms"], kind, named, generation, line["broker"]) for kind, named in marks
        ]
    return found


def reason(line: Line, grammar: Grammar) -> tuple[str | None, str]:
    """Return the class of the reason in a "Preparing" line, and the member id in it.

    Text that matches no class is returned as it is, with an empty member id.
    """
    text = line["reason"]
    return (grammar.classed(text) if text else None) or (text, "")


def client_reason(line: Line) -> str | None:
    """Return the reason that the client gave (KIP-800, from 3.2 on), or None.

    The coordinator writes `not provided` if the client gave none.
    """
    _, _, given = (line["reason"] or "").partition("; client reason: ")
    return given if given not in ("", "not provided") else None


def observed(
    group: str, lines: Iterable[Line], grammar: Grammar, incarnation: Callable[[str, float], int]
) -> list[Json]:
    """Build the timeline of a group; the column `row` numbers the rebalances of an incarnation.

    `incarnation` returns the number of the load that a broker (id) last finished before a time, in
    ms. The end of a join phase without a "Preparing" line gets a row of its own.
    """
    placed: dict[int, list[Line]] = defaultdict(list)
    for line in lines:
        if line["template"] in STEPS:
            placed[incarnation(line["broker"], line["at_ms"])].append(line)
    found: list[Json] = []
    for number in sorted(placed):
        rows: list[Json] = [
            {"group": group, "incarnation": number, "row": row} | _rebalance(mine, grammar)
            for row, mine in _rebalances(placed[number])
        ]
        for row, after in zip_longest(rows, rows[1:], fillvalue={"started_ms": None}):
            _end(row, after["started_ms"])
        found += rows
    return found


def _rebalances(lines: Iterable[Line]) -> Iterable[tuple[int, list[Line]]]:
    """Split the lines of an incarnation into rebalances; lines before the first have number 0."""
    rows: dict[int, list[Line]] = defaultdict(list)
    row, before = 0, "none"
    for line in sorted(lines, key=lambda line: (line["at_ms"], line["line"])):
        template = line["template"]
        ends = template in ("stabilized", "empty") and before != "preparing"
        row += template == "preparing" or ends
        rows[row].append(line)
        before = template
    return rows.items()


def _rebalance(lines: Sequence[Line], grammar: Grammar) -> Json:
    of = lambda *templates: (line for line in lines if line["template"] in templates)
    began: Line = next(of("preparing"), {})
    joined: Line = next(of("stabilized", "empty"), {})
    assigned = list(of("assignment"))
    least = lambda name: min((one[name] for one in assigned if one[name] is not None), default=None)
    is_empty, generation = joined.get("template") == "empty", joined.get("generation")
    before = None if generation is None else generation - 1
    why, member = reason(began, grammar) if began else (None, None)
    return {
        "old_generation": _first(began.get("generation"), before),
        "started_ms": began.get("at_ms"),
        "reason": why,
        "client_reason": client_reason(began) if began else None,
        "member_id": member,
        "joined_ms": joined.get("at_ms"),
        "generation": generation,
        "members": 0 if is_empty else joined.get("members"),
        "assigned_members": least("members"),
        "static_members": least("static_members"),
        "leader": least("member"),
        "assigned_generation": least("generation"),
        "assignments": len(assigned),
        "assigned_ms": least("at_ms"),
        "ended_as": "assigned" if assigned else "empty" if is_empty else None,
        "broker": lines[0]["broker"],
        "started_line": began.get("line"),
        "joined_line": joined.get("line"),
        "assigned_line": least("line"),
    }


def _end(row: Json, next_ms: float | None) -> None:
    """Set in its row how and when a rebalance ended."""
    ended_ms = _first(row["assigned_ms"], row["joined_ms"] if row["ended_as"] == "empty" else None)
    ended_ms = _first(ended_ms, next_ms)
    began_ms = _first(row["started_ms"], row["joined_ms"])
    row["ended_as"] = row["ended_as"] or ("open" if next_ms is None else "superseded")
    both = ended_ms is not None and began_ms is not None
    row["duration_ms"] = ended_ms - began_ms if both else None


def _first(value: Any, other: Any) -> Any:
    return other if value is None else value


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

    def forced(self, expected: Iterable[Json]) -> list[Json]:
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

    def rows(self) -> Iterator[Json]:
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


def new(observed: Iterable[Json], expected: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Leave out the generations with which a coordinator goes on, by the replay: none began."""
    known = {(row["incarnation"], row["generation"]) for row in expected}
    found: list[Json] = []
    for row in observed:
        before = any(one["generation"] == row["generation"] for one in found)
        if not before or (row["incarnation"], row["generation"]) in known:
            found.append(row)
    return found


def _line(seen: ObservedRequest) -> int:
    return int(seen.id.rpartition(":")[2])
