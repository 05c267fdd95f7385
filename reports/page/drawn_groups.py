"""What the page draws of each member: when it was in its group, and in which generation.

The members' own logged requests tell it: a member that is down shows as a gap, and a generation
that no response gave it does not colour its lane.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from math import inf
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from reports.judgement.digest import Digest

Row = Mapping[str, Any]
T = TypeVar("T")
K = TypeVar("K")

GROUPS_DRAWN = 12
"""How many groups a page draws: those with differences first, then those with most rebalances."""


def identity(client: str) -> str:
    """Return the member of a client: a second process has the member's name with a suffix."""
    return client.removesuffix(".duplicate")


def grouped(things: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return things by a key of theirs, in the order in which they come."""
    found: dict[K, list[T]] = defaultdict(list)
    for thing in things:
        found[key(thing)].append(thing)
    return found


@dataclass(frozen=True, slots=True)
class Join:
    """A JoinGroup answered NONE, as a row of the table `joins`.

    From `answered_ms` on the client is `member_id` in `generation`.
    """

    group: str
    client_id: str
    member_id: str
    generation: int
    answered_ms: float
    static: bool = False

    @property
    def kind(self) -> str:
        """`static` or `dynamic`."""
        return "static" if self.static else "dynamic"


@dataclass(frozen=True, slots=True)
class DrawnGroups:
    """The groups to draw, their joins in order of time, and each member id's last response.

    `last_ms` maps (group, member id) to the time of the last response that accepted the id.
    """

    groups: tuple[str, ...]
    joins: tuple[Join, ...]
    last_ms: Mapping[tuple[str, str], float]

    def clients(self) -> dict[str, str]:
        """Return the client of each member id."""
        return {join.member_id: join.client_id for join in self.joins}

    def kinds(self) -> dict[str, str]:
        """Return the kind of each member id: `static` or `dynamic`."""
        return {join.member_id: join.kind for join in self.joins}

    def kind_at(self, client: str, at_ms: float) -> str | None:
        """Return the kind a client had at its last join before a time; it may change (KIP-345)."""
        mine = (join for join in reversed(self.joins) if join.client_id == client)
        return next((join.kind for join in mine if join.answered_ms <= at_ms), None)


@dataclass(frozen=True, slots=True)
class Membership:
    """The time of a client in one generation of its group."""

    client: str
    member_id: str
    generation: int
    start_ms: float
    end_ms: float


@dataclass(frozen=True, slots=True)
class Period:
    """A time in which a group rebalances, or is stable in a generation."""

    rebalancing: bool
    generation: int | None
    start_ms: float
    end_ms: float
    row: Row


def chosen(digests: Mapping[str, Digest]) -> tuple[str, ...]:
    """Choose the groups to draw, of those with rebalances."""
    counts = ((-of.different, -of.rows["comparison"], group) for group, of in digests.items())
    first = nsmallest(GROUPS_DRAWN, (count for count in counts if count[1]))
    return tuple(group for _, _, group in first)


def collected(groups: Sequence[str], joins: Iterable[Row], heard: Iterable[Row]) -> DrawnGroups:
    """Return what is drawn of some groups: their rows of the tables `joins` and `heard`."""
    last_ms = {(row["group"], row["member_id"]): row["last_ms"] for row in heard}
    found = (Join(**row) for row in joins)
    in_order = sorted(found, key=attrgetter("answered_ms", "group", "member_id"))
    return DrawnGroups(tuple(groups), tuple(in_order), last_ms)


def memberships(drawn: DrawnGroups, group: str) -> list[Membership]:
    """List when each client was in the group: until its next join, or its last response."""
    mine = (join for join in drawn.joins if join.group == group)
    found = []
    for client, joins in grouped(mine, attrgetter("client_id")).items():
        nexts = [*(join.answered_ms for join in joins[1:]), inf]
        for join, next_ms in zip(joins, nexts, strict=True):
            last_ms = drawn.last_ms.get((group, join.member_id), join.answered_ms)
            time = join.answered_ms, min(last_ms, next_ms)
            found.append(Membership(client, join.member_id, join.generation, *time))
    return found


def periods(rows: Iterable[Row], side: str, end_ms: float) -> list[Period]:
    """Split a group's time into rebalances and stable periods.

    `rows` are the group's rows of the comparison, `side` is `observed` or `expected`. A rebalance
    lasts from its start to its assignment, or to the end of its join phase if the group is empty.
    """
    starts = ((row[f"{side}_started_ms"] or row[f"{side}_joined_ms"], row) for row in rows)
    begun = sorted((start for start in starts if start[0]), key=itemgetter(0))
    ends = [*(start_ms for start_ms, _ in begun[1:]), end_ms][: len(begun)]
    found = []
    for (start_ms, row), next_ms in zip(begun, ends, strict=True):
        empty = row[f"{side}_ended_as"] == "empty"
        joined_ms = row[f"{side}_joined_ms"] if empty else None
        stands_ms = row[f"{side}_assigned_ms"] or joined_ms or next_ms
        generation = row[f"{side}_generation"]
        found.append(Period(True, generation, start_ms, stands_ms, row))
        if not empty and stands_ms < next_ms:
            found.append(Period(False, generation, stands_ms, next_ms, row))
    return found
