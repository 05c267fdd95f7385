"""The lines about one group in; its rebalances out, each with who came and went.

A rebalance begins with "Preparing to rebalance" and ends with the leader's assignment, with the
group becoming empty, or where its coordinator gives the group up. Members that come or go while it
goes on have no such line of their own.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from reports.incident.lines.reader import Line
from reports.incident.timing import NEAR_MS

DEPARTURES = {
    "left": "left", "session_expired": "expired", "pending_sync": "did not sync",
    "absent_dynamic_removed": "did not rejoin", "unsynced_removed": "did not sync",
}  # fmt: skip
"""The templates, and the class of reasons, that take members out of a group; how."""
ARRIVALS = ("static_added", "dynamic_given_id", "dynamic_added", "member_added", "pending_joins")
"""The templates of members that come. Some are of level DEBUG in some releases."""
CAME = "came"
EMPTY, AGAIN, OPEN = "the group became empty", "the next one began", "no end in the logs"
_GIVEN_UP = "the coordinator gave the group up"
ENDS = {
    "assignment": "assigned", "empty": EMPTY,
    "group_unloaded": _GIVEN_UP, "group_loaded": _GIVEN_UP,
}  # fmt: skip
"""The templates that end a rebalance; how."""

_ID = re.compile(r"(.*)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SET = re.compile(r"(?:Hash)?Set\((.*)\)")
_NO_INSTANCE = ("", "None", "null")


class Change(NamedTuple):
    """A member that came (`how` is `CAME`) or went."""

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
    line: str
    members: list[str]
    client_reason: str
    generation: int
    changes: list[Change]
    stabilized_ms: float | None = None
    ended_ms: float | None = None
    size: int | None = None
    ending: str = OPEN
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


@dataclass
class Rebalances:
    """What the lines about a group tell, which are taken in the order of their times.

    `statics` are ids of members that are known to be static; `changes` are all members that came
    and went: an id does each once, whatever lines tell it.
    """

    found: list[Rebalance] = field(default_factory=list)
    statics: set[str] = field(default_factory=set)
    changes: list[Change] = field(default_factory=list)
    _noted: set[tuple[str, bool]] = field(default_factory=set)
    _before: list[Change] = field(default_factory=list)
    """The changes since the last rebalance."""

    def take(self, line: Line) -> None:
        """Take the next line."""
        going_on = self.found[-1] if self.found and self.found[-1].ending == OPEN else None
        begins = line.template == "preparing"
        if going_on is not None and (begins or line.template in ENDS):
            going_on.ending = ENDS.get(line.template, AGAIN)
            going_on.ended_ms = line.at_ms
        if begins:
            self._begin(line)
        elif line.template == "stabilized" and going_on is not None:
            going_on.stabilized_ms = line.at_ms
            going_on.size = _count(line.fields.get("members"))
        elif line.template not in ENDS:
            self._change(line)

    def forget(self, most: int) -> list[Rebalance]:
        """Keep no more than the last `most` rebalances and changes; return the other rebalances.

        So a follower's memory is bounded. Who came or went before may count once more.
        """
        gone, self.found = self.found[:-most], self.found[-most:]
        self.changes, self._before = self.changes[-most:], self._before[-most:]
        self._noted = {(one.member, one.how == CAME) for one in self.changes}
        self.statics &= {one.member for one in self.changes}
        return gone

    def _begin(self, line: Line) -> None:
        fields, at_ms = line.fields, line.at_ms
        reason, members = fields.get("reason", ""), _members(fields.get("member", ""))
        self.found.append(
            Rebalance(
                at_ms,
                line.broker,
                reason,
                line.text,
                members,
                fields.get("client_reason", ""),
                _count(fields.get("generation")) or 0,
                [one for one in self._before if one.at_ms >= at_ms - NEAR_MS],
            )
        )
        self._before.clear()
        static = fields.get("instance", "").removeprefix("Some(") not in _NO_INSTANCE
        self.statics.update(members if static else ())
        self._note(at_ms, members, CAME if reason == "new_member" else DEPARTURES.get(reason))

    def _change(self, line: Line) -> None:
        fields, name = line.fields, line.template
        members = _members(fields.get("member") or fields.get("removed", ""))
        if name in ("static_added", "static_replaced"):
            self.statics.update([*members, *_members(fields.get("new_member", ""))])
        self._note(line.at_ms, members, CAME if name in ARRIVALS else DEPARTURES.get(name))

    def _note(self, at_ms: float, members: Iterable[str], how: str | None) -> None:
        last = self.found[-1] if self.found else None
        changes = last.changes if last is not None and _takes(last, at_ms) else self._before
        for member in members:
            if how is not None and (member, how == CAME) not in self._noted:
                self._noted.add((member, how == CAME))
                change = Change(at_ms, how, member, member in self.statics)
                self.changes.append(change)
                changes.append(change)


def _takes(last: Rebalance, at_ms: float) -> bool:
    """Tell whether a change belongs to the last rebalance, also after it has emptied its group.

    Scala logs who left after that.
    """
    if last.ending == EMPTY and last.ended_ms is not None:
        return at_ms <= last.ended_ms + NEAR_MS
    return last.ending == OPEN


def _members(text: str) -> list[str]:
    """Return the member ids of a field: one, or a set as Scala or Java prints it."""
    match = _SET.fullmatch(text)
    return [member for member in (match[1] if match else text).split(", ") if member]


def _count(text: str | None) -> int | None:
    digits = (text or "").removeprefix("-")
    if not digits.isdecimal() or len(digits) > 18:
        return None
    return int(text or "0")
