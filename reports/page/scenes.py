"""What the page draws of each member: when it was in its group, and in which generation.

Told by the members' own requests as the brokers logged them, so a member that is down shows as a
gap, and a generation that it never heard of does not colour its lane.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")
RowsOf = Callable[[str, Sequence[str]], Iterable[Mapping[str, Any]]]
"""Gives the rows of a table, by its name, that are about some groups."""

GROUPS_DRAWN = 12
"""How many groups a page draws: those with differences first, then those that rebalanced most."""


def identity(client: str) -> str:
    """Name the member that a client is: its second process goes by its name, with an ending."""
    return client.removesuffix(".duplicate")


@dataclass(frozen=True, slots=True)
class Join:
    """A JOIN answered NONE: from `at_ms` on the client is `member_id` in `generation`."""

    group: str
    client: str
    member_id: str
    generation: int
    at_ms: float
    static: bool = False

    @property
    def kind(self) -> str:
        """What kind of member it is."""
        return "static" if self.static else "dynamic"


@dataclass(frozen=True, slots=True)
class Scenes:
    """The groups to draw, the joins in order of time, and when each member id was last heard of.

    `last_ms` maps (group, member id) to the last answer that took it for a member.
    """

    groups: tuple[str, ...]
    joins: tuple[Join, ...]
    last_ms: Mapping[tuple[str, str], float]

    def clients(self) -> dict[str, str]:
        """Name the client behind each member id."""
        return {join.member_id: join.client for join in self.joins}

    def kinds(self) -> dict[str, str]:
        """Say of each member id whether it joined with an instance id: `static`, or `dynamic`."""
        return {join.member_id: join.kind for join in self.joins}

    def kind_at(self, client: str, at_ms: float) -> str | None:
        """Say what a client was when it last joined before a time; some change (KIP-345)."""
        kinds = [j.kind for j in self.joins if j.client == client and j.at_ms <= at_ms]
        return kinds[-1] if kinds else None


@dataclass(frozen=True, slots=True)
class Stretch:
    """A client in one generation of its group, without a break."""

    client: str
    member_id: str
    generation: int
    start_ms: float
    end_ms: float


@dataclass(frozen=True, slots=True)
class Period:
    """A part of a group's life: rebalancing, or standing in a generation."""

    rebalancing: bool
    generation: int | None
    start_ms: float
    end_ms: float
    row: Mapping[str, Any]


def drawn_groups(comparison: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Choose the groups to draw by the rows of the table `comparison`."""
    different: Counter[str] = Counter()
    rebalances: Counter[str] = Counter()
    for row in comparison:
        rebalances[row["group"]] += 1
        different[row["group"]] += row["outcome"] != "match"
    order = sorted(rebalances, key=lambda group: (-different[group], -rebalances[group], group))
    return tuple(order[:GROUPS_DRAWN])


def collect(comparison: Iterable[Mapping[str, Any]], rows_of: RowsOf) -> Scenes:
    """Read the few rows that the page draws; `comparison` has the rows of that table."""
    groups = drawn_groups(comparison)
    joins = [
        Join(
            row["group"],
            row["client_id"],
            row["member_id"],
            row["generation"],
            row["answered_ms"],
            row["static"],
        )
        for row in rows_of("joins", groups)
    ]
    heard = {(r["group"], r["member_id"]): r["last_ms"] for r in rows_of("heard", groups)}
    in_order = sorted(joins, key=attrgetter("at_ms", "group", "member_id"))
    return Scenes(groups, tuple(in_order), heard)


def stretches(scenes: Scenes, group: str) -> list[Stretch]:
    """List when each client was in the group: until its next join, or its last word."""
    by_client: dict[str, list[Join]] = defaultdict(list)
    for join in scenes.joins:
        if join.group == group:
            by_client[join.client].append(join)
    found = []
    for joins in by_client.values():
        for join, following in _with_next(joins):
            end_ms = scenes.last_ms.get((group, join.member_id), join.at_ms)
            if following is not None:
                end_ms = min(end_ms, following.at_ms)
            found.append(Stretch(join.client, join.member_id, join.generation, join.at_ms, end_ms))
    return found


def periods(rows: Sequence[Mapping[str, Any]], side: str, end_ms: float) -> list[Period]:
    """Cut a group's time into rebalances and what stands between them.

    `rows` are the group's rows of the comparison, `side` is `observed` or `expected`. A rebalance
    reaches from its start to its assignment; to the end of its join phase where it leaves nobody.
    """

    def at(row: Mapping[str, Any], name: str) -> float | None:
        value: float | None = row[f"{side}_{name}_ms"]
        return value

    here = [(at(row, "started") or at(row, "joined"), row) for row in rows]
    begun = sorted(((at_ms, row) for at_ms, row in here if at_ms), key=lambda pair: pair[0])
    found = []
    for (start_ms, row), following in _with_next(begun):
        next_ms = following[0] if following else end_ms
        empty = row[f"{side}_ended_as"] == "empty"
        stands_ms = at(row, "assigned") or (at(row, "joined") if empty else None) or next_ms
        generation = row[f"{side}_generation"]
        found.append(Period(True, generation, start_ms, stands_ms, row))
        if not empty and stands_ms < next_ms:
            found.append(Period(False, generation, stands_ms, next_ms, row))
    return found


def _with_next(items: Sequence[T]) -> Iterator[tuple[T, T | None]]:
    following: list[T | None] = [*items[1:], None]
    return zip(items, following[: len(items)], strict=True)
