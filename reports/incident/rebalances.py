"""The lines about one group in; its rebalances out, each with who came and went.

A rebalance begins with "Preparing to rebalance", which names the generation that it leads away
from. It ends with the leader's assignment or with the group becoming empty, which name the next
generation, or where its coordinator gives the group up. Only lines of its own generation and its
own coordinator count as its own, so that no rebalance lasts across what is not in the logs. Members
that come or go while it goes on have no such line of their own.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_protocol.coordinator_lines.member_ids import client_of
from reports.incident.chain import Chain
from reports.incident.lines.reader import Line
from reports.incident.timing import NEAR_MS

DEPARTURES = {
    "left": "left", "leave": "left", "session_expired": "expired", "pending_sync": "did not sync",
    "absent_dynamic_removed": "did not rejoin", "unsynced_removed": "did not sync",
}  # fmt: skip
"""The templates, and the classes of reasons, that take members out of a group; how."""
ARRIVALS = ("static_added", "dynamic_given_id", "dynamic_added", "member_added", "pending_joins")
"""The templates of members that come. Some are of level DEBUG in some releases."""
CAME = "came"
ASSIGNED, EMPTY, AGAIN = "assigned", "the group became empty", "the next one began"
GIVEN_UP = "the coordinator gave the group up"
OPEN, UNASSIGNED = "no end in the logs", "its assignment is not in the logs"
UNENDED = (OPEN, UNASSIGNED)
"""How a rebalance stands that may still go on; `UNASSIGNED` is one whose join phase is over."""
BEFORE, IN_GAP = "began before the logs", "began in a gap of the logs"
"""The reasons of rebalances whose "Preparing" is not in the logs."""
_PHASES = {"stabilized": UNASSIGNED, "assignment": ASSIGNED, "empty": EMPTY}
"""The templates of lines that name the generation that a rebalance leads to; how it then stands."""
_GONE = ("group_loaded", "group_unloaded", "group_expired", "group_removed")
"""The templates of lines behind which no rebalance goes on."""
_STATES = {"static_replaced": "CompletingRebalance", "leader_rejoin": "Stable"}
"""In which state a group is as a rebalance begins, by its reason."""
_KINDS = {"static": True, "dynamic": False, "pending": False}
"""How the names of templates begin that tell whether their member is static."""
_BY_NEIGHBOURS = ("leave", "")
"""The reasons that may not name who began the rebalance, though somebody did: a LeaveGroup may give
instance ids alone, and the oldest releases write no reason."""

_SET = re.compile(r"(?:Hash)?Set\((.*)\)")
_NO_INSTANCE = ("", "None", "null")


class Change(NamedTuple):
    """A member that came (`how` is `CAME`) or went."""

    at_ms: float
    how: str
    member: str

    @property
    def client(self) -> str:
        """The member's client id, or its instance id where it is static."""
        return client_of(self.member)


class Began(NamedTuple):
    """So many rebalances began after one time, if it is known, and not after another."""

    after_ms: float | None
    until_ms: float
    rebalances: int = 1


@dataclass
class Rebalance:
    """One rebalance. `members` are named by its reason; the coordinator is that of `broker`.

    It leads away from `generation`. One that `is_begun` began at `at_ms`; another one after
    `after_ms`, if that is known, and before `at_ms`, when the first of its lines was written.
    """

    at_ms: float
    broker: str
    reason: str
    line: str
    members: list[str]
    client_reason: str
    generation: int
    changes: list[Change]
    is_begun: bool = True
    after_ms: float | None = None
    stabilized_ms: float | None = None
    ended_ms: float | None = None
    size: int | None = None
    ending: str = OPEN
    spared: bool = False
    """Whether static members would have spared it, by the estimate."""

    @property
    def took_ms(self) -> float | None:
        """How long it took; None where the logs do not have its beginning or its end."""
        return self.ended_ms - self.at_ms if self.is_begun and self.ended_ms is not None else None

    @property
    def clients(self) -> list[str]:
        """Whose doing it was: whom the reason names, or who went as it began; else nobody."""
        named = [client_of(member) for member in self.members]
        if not named and self.reason in _BY_NEIGHBOURS:
            until_ms = self.at_ms + NEAR_MS
            named = [change.client for change in self.changes if change.at_ms <= until_ms]
        return list(dict.fromkeys(named))


@dataclass
class Rebalances:
    """What the lines about a group tell, which are taken in the order of their times.

    `changes` are all members that came and went: an id does each once, whatever lines tell it.
    `kinds` are ids of members, clients and instances of which lines tell whether they are static.
    """

    found: list[Rebalance] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    kinds: dict[str, bool] = field(default_factory=dict)
    chain: Chain = field(default_factory=Chain)
    _joined: tuple[list[str], str] = ([], "")
    """The members of the last line that is no phase's, and in which state they joined by it."""
    _is_held: bool = False
    """Whether the coordinator of the last rebalance still has the group."""
    _noted: set[tuple[str, bool]] = field(default_factory=set)
    _before: list[Change] = field(default_factory=list)
    """The changes of late that are of no rebalance yet."""
    _uniform: dict[int, bool] = field(default_factory=dict)
    """The last generation of which a line tells that all members are static, or none is."""

    def take(self, line: Line) -> None:
        """Take the next line."""
        if self.chain.is_former(line):
            return
        self._is_held &= not self.chain.moves(line)
        generation = _count(line.fields.get("generation"))
        if line.template == "preparing":
            self._begin(line, generation or 0)
        elif line.template in _PHASES and generation is not None:
            self._enter(line, generation)
        elif line.template in _GONE:
            self._move(line, generation)
        else:
            members = _members(line.fields.get("member") or line.fields.get("removed", ""))
            given = line.template == "dynamic_given_id"  # it joins when it comes again
            self._joined = members, "" if given else line.fields.get("state", "")
            self._tell([*members, *_members(line.fields.get("new_member", ""))], line)
            how = CAME if line.template in ARRIVALS else DEPARTURES.get(line.template)
            self._note(line.at_ms, members, how)

    def forget(self, most: int) -> list[Rebalance]:
        """Keep no more than the last `most` of each kind; return the other rebalances.

        So a follower's memory is bounded. Who came or went before may count once more.
        """
        gone, self.found = self.found[:-most], self.found[-most:]
        self.changes, self._before = self.changes[-most:], self._before[-most:]
        for of_chain in (self.chain.missing, self.chain.resets, self.chain.coordinators):
            del of_chain[:-most]
        self._noted = {(one.member, one.how == CAME) for one in self.changes}
        kept = {name for one in self.changes for name in (one.member, one.client)}
        self.kinds = {name: static for name, static in self.kinds.items() if name in kept}
        return gone

    def static(self, member: str) -> bool | None:
        """Tell whether a member or client is static; None where no line tells it."""
        return self.kinds.get(member, self.kinds.get(client_of(member)))

    def beginnings(self) -> list[Began]:
        """Return when rebalances began, those not in the logs too, in the order of that."""
        seen = [Began(one.at_ms if one.is_begun else one.after_ms, one.at_ms) for one in self.found]
        lacking = [Began(one.after_ms, one.before_ms, one.rebalances) for one in self.chain.missing]
        return sorted([*seen, *lacking], key=lambda one: (one.after_ms or 0.0, one.until_ms))

    def _going_on(self) -> Rebalance | None:
        """Return the last rebalance, if lines to come may be of it."""
        return self.found[-1] if self.found and self._is_held else None

    def _begin(self, line: Line, generation: int) -> None:
        last, reason = self._going_on(), line.fields.get("reason", "")
        if last is not None and (last.ending, last.generation + 1) == (UNASSIGNED, generation):
            state = self._state(line)
            last.ending = UNASSIGNED if state == "Stable" else AGAIN
            last.ended_ms = line.at_ms if state == "CompletingRebalance" else None
        self.chain.reach(generation, line)
        members = _members(line.fields.get("member", ""))
        self._tell(members, line)
        self._add(line, generation, reason, members)
        how = CAME if reason == "new_member" else DEPARTURES.get(reason)
        self._note(line.at_ms, members, how)

    def _state(self, line: Line) -> str:
        """Return in which state the group was as a rebalance began, if a line tells it."""
        reason, (members, state) = line.fields.get("reason", ""), self._joined
        is_of_joined = reason == "new_member" and members == _members(line.fields["member"])
        return _STATES.get(reason, state if is_of_joined else line.fields.get("state", ""))

    def _enter(self, line: Line, generation: int) -> None:
        """Take a phase of the rebalance that leads to a generation, and may begin out of sight."""
        one, ending = self._going_on(), _PHASES[line.template]
        if one is None or one.generation + 1 != generation or _are_two(one.ending, ending):
            after_ms = self.chain.known_ms
            self.chain.reach(generation - 1, line)
            one = self._add(line, generation - 1, BEFORE if after_ms is None else IN_GAP)
            one.is_begun, one.after_ms = False, after_ms
        self.chain.reach(generation, line)
        size, static = (_count(line.fields.get(name)) for name in ("members", "static_members"))
        if static is not None and static in (0, size):
            self._uniform = {generation: static > 0}
            for member in _members(line.fields.get("member", "")):
                self._know(member, static > 0)
        if one.ending not in UNENDED:
            return
        one.ending = ending
        one.size = one.size if size is None else size
        if ending == UNASSIGNED:
            one.stabilized_ms = line.at_ms
        else:
            one.ended_ms = line.at_ms

    def _move(self, line: Line, generation: int | None) -> None:
        last, is_known = self._going_on(), generation in (None, self.chain.generation)
        ending = {"group_unloaded": GIVEN_UP, "group_removed": EMPTY}.get(line.template)
        if ending and is_known and last is not None and last.ending in UNENDED:
            last.ending, last.ended_ms = ending, line.at_ms
        if generation is not None:
            self.chain.reach(generation, line)
            self.chain.begun = None
        self._is_held = False

    def _add(
        self, line: Line, generation: int, reason: str, members: Sequence[str] = ()
    ) -> Rebalance:
        near = [one for one in self._before if one.at_ms >= line.at_ms - NEAR_MS]
        given = line.fields.get("client_reason", "")
        one = Rebalance(
            line.at_ms, line.broker, reason, line.text, [*members], given, generation, near
        )
        self.found.append(one)
        self.chain.begun = generation
        self._before.clear()
        self._is_held = True
        return one

    def _tell(self, members: Iterable[str], line: Line) -> None:
        """Take what a line tells of the kind of members."""
        instance = line.fields.get("instance", "").removeprefix("Some(").removesuffix(")")
        static = _KINDS.get(line.template.partition("_")[0])
        if static is None and "instance" in line.fields:
            static = instance not in _NO_INSTANCE
        if static is not None:
            for name in (*members, *([instance] if static and instance else [])):
                self._know(name, static)

    def _know(self, member: str, static: bool) -> None:
        for name in (member, client_of(member)):
            self.kinds[name] = static or self.kinds.get(name, False)

    def _note(self, at_ms: float, members: Iterable[str], how: str | None) -> None:
        last = self._going_on()
        changes = last.changes if last is not None and _takes(last, at_ms) else self._before
        uniform = self._uniform.get(self.chain.generation or 0)
        for member in members:
            if how is not None and (member, how == CAME) not in self._noted:
                self._noted.add((member, how == CAME))
                change = Change(at_ms, how, member)
                self.changes.append(change)
                changes.append(change)
                if how != CAME and uniform is not None and self.static(member) is None:
                    self._know(member, uniform)


def _are_two(ending: str, further: str) -> bool:
    """Tell whether a generation of two groups of one name has both ends: it is empty, or is not."""
    return ending not in (OPEN, further) and EMPTY in (ending, further)


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
