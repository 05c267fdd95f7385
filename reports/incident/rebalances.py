"""The lines about one group in; its rebalances out, each with who came and went.

A rebalance begins with "Preparing to rebalance" and ends with the leader's assignment, with the
group becoming empty, or where its coordinator gives the group up. Members that come or go while it
goes on have no such line of their own.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from reports.incident.stock_lines import Line

NEAR_MS = 1_000.0
"""How long before "Preparing" the line of its member may stand: releases write the two in either
order (Java, and Scala before 3.0: the member's first). Seen on idle brokers: 0 to 2 ms."""
DEPARTURES = {
    "left": "left", "session_expired": "expired", "pending_sync": "did not sync",
    "absent_dynamic_removed": "did not rejoin", "unsynced_removed": "did not sync",
}  # fmt: skip
"""The templates, and the class of reasons, that take members out of a group; how."""
ARRIVALS = ("static_added", "dynamic_given_id", "dynamic_added", "member_added", "pending_joins")
"""The templates of members that come. Some are of level DEBUG in some releases."""

_ID = re.compile(r"(.*)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SET = re.compile(r"(?:Hash)?Set\((.*)\)")
_NO_INSTANCE = ("", "None", "null")


class Ending(StrEnum):
    """How a rebalance ended."""

    ASSIGNED = "assigned"
    EMPTY = "the group became empty"
    AGAIN = "the next one began"
    MOVED = "the coordinator gave the group up"
    OPEN = "no end in the logs"


ENDS = {
    "assignment": Ending.ASSIGNED, "empty": Ending.EMPTY,
    "group_unloaded": Ending.MOVED, "group_loaded": Ending.MOVED,
}  # fmt: skip
"""The templates that end a rebalance; how."""


class Change(NamedTuple):
    """A member that came (`how` is `came`) or went."""

    at_ms: float
    how: str
    member: str
    static: bool = False

    @property
    def client(self) -> str:
        """The member's client id, or its instance id where it is static."""
        return client_of(self.member)


@dataclass
class Rebalance:
    """One rebalance. `members` are named by its reason; the coordinator is that of `broker`."""

    at_ms: float
    broker: str
    reason: str
    text: str
    members: list[str]
    client_reason: str
    generation: int
    stabilized_ms: float | None = None
    ended_ms: float | None = None
    size: int | None = None
    ending: Ending = Ending.OPEN
    changes: list[Change] = field(default_factory=list)
    spared: bool = False
    """Whether static members would have spared it, by the estimate."""

    @property
    def took_ms(self) -> float | None:
        """How long it took; None where the logs do not have its end."""
        return None if self.ended_ms is None else self.ended_ms - self.at_ms

    @property
    def clients(self) -> list[str]:
        """Whose doing it was: whom the reason names, else who came and went as it began."""
        named = [client_of(member) for member in self.members]
        near = (change.client for change in self.changes if change.at_ms <= self.at_ms + NEAR_MS)
        return list(dict.fromkeys(named or near))


def client_of(member: str) -> str:
    """Return the client id, or the instance id of a static member, that a member id begins with."""
    match = _ID.fullmatch(member)
    return match[1] if match else member


class Rebalances:
    """Takes the lines about a group in the order of their times."""

    def __init__(self) -> None:
        self.found: list[Rebalance] = []
        self.statics: set[str] = set()
        """Ids of members that are known to be static."""
        self.changes: list[Change] = []
        """All members that came and went; a member comes once, whatever lines tell it."""
        self._came: set[str] = set()
        self._open: Rebalance | None = None

    def take(self, line: Line) -> None:
        """Take the next line."""
        if line.template == "preparing":
            self._begin(line)
        elif line.template in ENDS:
            self._end(ENDS[line.template], line.at_ms)
        elif line.template == "stabilized" and self._open is not None:
            self._open.stabilized_ms = line.at_ms
            self._open.size = _count(line.fields.get("members"))
        else:
            self._change(line)

    def _begin(self, line: Line) -> None:
        self._end(Ending.AGAIN, line.at_ms)
        fields = line.fields
        reason = fields.get("reason", "")
        members = _members(fields.get("member", ""))
        self._open = Rebalance(
            line.at_ms,
            line.broker,
            reason,
            line.text,
            members,
            fields.get("client_reason", ""),
            _count(fields.get("generation")) or 0,
        )
        self.found.append(self._open)
        static = fields.get("instance", "").removeprefix("Some(") not in _NO_INSTANCE
        if static:
            self.statics.update(members)
        near = [change for change in self.changes[-100:] if change.at_ms >= line.at_ms - NEAR_MS]
        earlier = self.found[-2].changes if len(self.found) > 1 else []
        self._open.changes += (change for change in near if change not in earlier)
        if reason == "new_member":
            self._came_in(line.at_ms, members, static=static)
        elif reason in DEPARTURES:
            self._gone(line.at_ms, members, DEPARTURES[reason])

    def _end(self, ending: Ending, at_ms: float) -> None:
        if self._open is not None:
            self._open.ending, self._open.ended_ms = ending, at_ms
            self._open = None

    def _change(self, line: Line) -> None:
        fields, name = line.fields, line.template
        members = _members(fields.get("member") or fields.get("removed", ""))
        if name == "static_replaced":
            self.statics.update([*members, *_members(fields.get("new_member", ""))])
        elif name in ARRIVALS:
            static = name == "static_added"
            self.statics.update(members if static else ())
            self._came_in(line.at_ms, members, static=static)
        elif name in DEPARTURES:
            self._gone(line.at_ms, members, DEPARTURES[name])

    def _came_in(self, at_ms: float, members: Iterable[str], *, static: bool) -> None:
        for member in members:
            if member not in self._came:
                self._came.add(member)
                self._add(Change(at_ms, "came", member, static))

    def _gone(self, at_ms: float, members: Iterable[str], how: str) -> None:
        """Note members that went; of lines that tell it twice, the first counts."""
        recent = {
            change.member
            for change in self.changes[-100:]
            if change.how != "came" and change.at_ms >= at_ms - NEAR_MS
        }
        for member in members:
            if member not in recent:
                self._add(Change(at_ms, how, member, member in self.statics))

    def _add(self, change: Change) -> None:
        self.changes.append(change)
        last = self.found[-1] if self.found else None
        if last is not None and (self._open is not None or _has_just_emptied(last, change.at_ms)):
            last.changes.append(change)


def _has_just_emptied(last: Rebalance, at_ms: float) -> bool:
    """Tell whether a group has just become empty: Scala logs who left after that."""
    ended = last.ended_ms
    return last.ending is Ending.EMPTY and ended is not None and at_ms <= ended + NEAR_MS


def _members(text: str) -> list[str]:
    """Return the member ids of a field: one, or a set as Scala or Java prints it."""
    match = _SET.fullmatch(text)
    return [member for member in (match[1] if match else text).split(", ") if member]


def _count(text: str | None) -> int | None:
    digits = (text or "").removeprefix("-")
    if not digits.isdecimal() or len(digits) > 18:
        return None
    return int(text or "0")
