"""What the page draws of groups: which ones, who was in them when, and in which generation.

The members' own logged requests tell it: a member that is down shows as a gap, and a generation
that no response gave it does not colour its lane.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

import pandas as pd

from reports.judgement.digest import Digest
from reports.page.costs import identity, natural
from reports.page.faults import Fault, declared

Row = Mapping[str, Any]

GROUPS_DRAWN = 50
"""How many groups a page draws: those with differences first, then those with findings about
clients, then those with most rebalances."""
LANES_DRAWN = 500
"""How many members of a group get a lane."""
BARS = 12_000
"""How many memberships a page draws one by one, to stay small; of more, short ones are joined."""
WHOLE_GROUP = "the group"
"""The lane of faults that have no single member as their target."""


class Membership(NamedTuple):
    """The time of a client in one generation of its group."""

    client: str
    member_id: str
    generation: int
    start_ms: float
    end_ms: float


class Period(NamedTuple):
    """A time in which a group rebalances, or is stable in a generation."""

    rebalancing: bool
    generation: int | None
    start_ms: float
    end_ms: float
    row: Row


@dataclass(frozen=True)
class DrawnGroup:
    """What figures show of one group; faults and findings have the form of the verdict.

    `planned` are the members of the experiment, `title` says in words how many they are, `total`
    counts its partitions. Of its `timelines` the first also shows as bands. `ownership` and
    `stops`, those of the impact phase, are empty without a client history.
    """

    group: str
    title: str = ""
    planned: Sequence[str] = ()
    memberships: Sequence[Membership] = ()
    timelines: Mapping[str, Sequence[Period]] = field(default_factory=dict)
    faults: Sequence[Fault] = ()
    findings: Sequence[Mapping[str, Any]] = ()
    clients: Mapping[str, str] = field(default_factory=dict)
    remarks: Mapping[float, str] = field(default_factory=dict)
    """Further text about observed rebalances, by the time they began."""
    records: Sequence[Row] = ()
    """What became of records, of `wording.RECORDS`."""
    requests: Sequence[Row] = ()
    """What scripted members asked, as rows of the table `requests`."""
    coordinators: Sequence[Row] = ()
    """Which broker coordinated it, `since_ms` and `until_ms`, which may be None."""
    bars: int = BARS
    """How many memberships are drawn one by one."""
    total: int = 0
    ownership: pd.DataFrame = field(default_factory=pd.DataFrame)
    stops: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def periods(self) -> Sequence[Period]:
        """The first of its timelines."""
        return next(iter(self.timelines.values()), ())

    @cached_property
    def everyone(self) -> list[str]:
        """Who may get a lane: those planned, those who joined or asked, and targets of faults."""
        clients = [one.client for one in self.memberships]
        clients += [row["client_id"] for row in self.requests]
        return list(dict.fromkeys([*self.planned, *clients, *map(lane, self.faults)]))

    @cached_property
    def lanes(self) -> list[str]:
        """The lanes to draw, in their order; lanes with faults are preferred."""
        targets = {lane(fault) for fault in self.faults}
        chosen = {*sorted(self.everyone, key=lambda name: name not in targets)[:LANES_DRAWN]}
        return [name for name in self.everyone if name in chosen]

    @cached_property
    def members(self) -> list[str]:
        """Who may own partitions; their positions give them their colours."""
        seen = [*self.ownership.get("member", ()), *self.stops.get("member", ())]
        return list(dict.fromkeys([*self.planned, *map(identity, seen)]))

    @cached_property
    def partitions(self) -> list[str]:
        """The partitions that had an owner, in order."""
        return sorted({*self.ownership.get("partition", ())}, key=natural)

    @property
    def second_processes(self) -> bool:
        """Whether a second process of a member owned a partition."""
        return any(identity(owner) != owner for owner in self.ownership.get("member", ()))


def lane(fault: Fault) -> str:
    """Return the name of the lane that a fault is drawn in; some name no member."""
    whole = declared(fault).hits in ("group", "topic")
    return WHOLE_GROUP if whole else str(fault["target"])


def chosen(digests: Mapping[str, Digest]) -> tuple[str, ...]:
    """Choose the groups to draw, of those with rebalances or findings."""
    counts = (
        (-of.different, -of.rows["client_findings"], -of.rows["comparison"], group)
        for group, of in digests.items()
        if of.rows["comparison"] or of.rows["client_findings"]
    )
    return tuple(group for *_, group in nsmallest(GROUPS_DRAWN, counts))


def memberships(joins: pd.DataFrame, heard: Iterable[Row]) -> list[Membership]:
    """List when each client was in a group: until its next join, or its last response.

    `joins` are those of the group; `heard` tells the last response that accepted each member id.
    """
    last_ms = {(row["group"], row["member_id"]): row["last_ms"] for row in heard}
    found = []
    for client, mine in joins.groupby("client_id", sort=False):
        nexts = [*mine["answered_ms"][1:], inf]
        for join, next_ms in zip(mine.itertuples(), nexts, strict=True):
            start_ms = join.answered_ms
            end_ms = min(last_ms.get((join.group, join.member_id), start_ms), next_ms)
            found.append(Membership(client, join.member_id, join.generation, start_ms, end_ms))
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
