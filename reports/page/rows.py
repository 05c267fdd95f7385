"""The rows of the page's tables: costs of groups, members and rebalances; the comparison.

Costs count the impact phase, as the cards do, unless their caption says otherwise.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from reports.judgement.costs import Costs, Holding, Stop, summary
from reports.judgement.findings import began_ms
from reports.judgement.run.run_folder import RunFolder
from reports.page import faults
from reports.page.drawn_groups import DrawnGroups, grouped, identity
from reports.page.wording import counted, offset, seconds

Row = Mapping[str, Any]
Json = dict[str, Any]

CLOCKS_MS = 10.0
"""How much the times of a broker and of a client on the same machine may differ."""
CELLS = ("started", "reason", "generation", "members", "leader", "took")
TIMES = ("started", "took")
"""Cells that may differ by some milliseconds without being a difference."""
ROWS_SHOWN = 400
"""How many rows of the comparison are shown, differences first; `tables/comparison` has all."""


@dataclass(frozen=True)
class CostRows:
    """Builds the rows of one run; `observed` are all rebalances in order of time.

    Stops are given as `costs.summary` does; None without a client history.
    """

    run: RunFolder
    verdict: Json
    observed: Sequence[Row]
    drawn: DrawnGroups
    costs: Costs

    def beside(self, group: str) -> list[Json]:
        """Count a group: as a whole, and each kind of member if it has both."""
        kinds = sorted({j.kind for j in self.drawn.joins if j.group == group}, reverse=True)
        whole = {"kind": " and ".join(kinds) or "-", **self._counts(group)}
        each = ({"kind": kind, **self._counts(group, kind)} for kind in kinds)
        return [whole, *(each if len(kinds) > 1 else ())]

    def _counts(self, group: str, kind: str | None = None) -> Json:
        """Count the impact phase for the members of a kind; without a kind, for the whole group."""
        mine, known, kinds = self._impact.of(group), self.costs.has_history(group), self._kinds
        counts = lambda other: kind is None or other == kind
        hit = [
            fault
            for fault in faults.concerning(group, self.verdict["faults"])
            if (at_ms := fault["injected_at_ms"]) is not None
            if counts(self.drawn.kind_at(fault["target"], at_ms))
        ]
        begun = [row for row in self._begun(group) if self._in_impact(row["started_ms"])]
        rebalances = sum(counts(self._cause_kind(row)) for row in begun)
        joined = (join for join in self.drawn.joins if join.group == group and counts(join.kind))
        nouns = sorted(faults.counted(hit).items())
        return {
            "members": len({identity(join.client_id) for join in joined}),
            "faults": ", ".join(counted(number, noun) for noun, number in nouns) or "0 faults",
            "rebalances": rebalances,
            "each": f"{rebalances / len(hit):.1f}" if hit else "-",
            "stops": _summary(stop for stop in mine.stops if counts(stop.kind)) if known else None,
            "unowned_ms": sum(one.unowned_ms for one in mine.handovers) if known else None,
            "evictions": sum(counts(kinds.get(one.subject)) for one in mine.evictions),
            "fences": len(mine.fences) if counts("static") else 0,
        }

    @cached_property
    def _impact(self) -> Costs:
        """The costs of the impact phase."""
        return Costs(
            stops=[one for one in self.costs.stops if self._in_impact(one.from_ms)],
            handovers=[one for one in self.costs.handovers if self._in_impact(one.at_ms)],
            expulsions=[one for one in self.costs.expulsions if self._in_impact(one.at_ms)],
        )

    def _in_impact(self, at_ms: float) -> bool:
        return self.run.phase_at(at_ms) == "impact"

    @cached_property
    def _kinds(self) -> dict[str, str]:
        return self.drawn.kinds()

    def _begun(self, group: str) -> list[Row]:
        return [
            row for row in self.observed if row["group"] == group and row["started_ms"] is not None
        ]

    def _cause_kind(self, row: Row) -> str | None:
        """Return the kind of the member that caused a rebalance; of several that left, the first.

        The broker's line has no member id for members that were removed by their instance ids.
        """
        first = (row["member_id"] or "").partition(",")[0]
        return "static" if row["reason"] == "leave" and not first else self._kinds.get(first)

    def rebalancing_ms(self, group: str) -> float:
        """Return for how long a group rebalanced, of the rebalances that began in the impact."""
        begun = (row for row in self._begun(group) if self._in_impact(row["started_ms"]))
        return sum(row["duration_ms"] or 0.0 for row in begun)

    def members(self, groups: Iterable[str]) -> dict[str, list[Json]]:
        """Summarize the stops of each member that had one; the longest total comes first."""
        rows: dict[str, list[Json]] = {}
        for group in groups:
            of_member = grouped(self._impact.of(group).stops, lambda stop: stop.member)
            found = [
                {"member": member, "kind": stops[-1].kind, **_summary(stops)}
                for member, stops in of_member.items()
            ]
            if found:
                rows[group] = sorted(found, key=lambda row: (-row["total"], natural(row["member"])))
        return rows

    def rebalances(self, groups: Iterable[str]) -> list[Json]:
        """List what each rebalance of the run cost, and the stops outside of any rebalance.

        A stop belongs to the rebalance in which it began. Moved partitions belong to the last
        rebalance that began before their assignment.
        """
        return [row for group in groups for row in self._rebalances(group)]

    def _rebalances(self, group: str) -> Iterator[Json]:
        rows, mine, known = self._begun(group), self.costs.of(group), self.costs.has_history(group)
        starts = [row["started_ms"] - CLOCKS_MS for row in rows]
        moved: Counter[int] = Counter()
        for handover in mine.handovers:
            moved[bisect_right(starts, handover.at_ms) - 1] += handover.moved

        def began_in(stop: Stop) -> int | None:
            at = bisect_right(starts, stop.from_ms) - 1
            inside = at >= 0 and stop.from_ms <= _ended_ms(rows[at]) + CLOCKS_MS
            return at if inside else None

        stops = grouped(mine.stops, began_in)
        for at, row in enumerate(rows):
            cost = {"stops": _summary(stops.get(at, ())), "moved": moved[at]}
            yield {**row, **(cost if known else dict.fromkeys(cost))}
        if None in stops:
            yield {
                "group": group, "started_ms": None, "reason": "outside of any rebalance",
                "client_reason": None, "member_id": None, "generation": None,
                "stops": _summary(stops[None]), "moved": "",
            }  # fmt: skip

    def overlaps(self, groups: Iterable[str]) -> list[list[Holding]]:
        """List holdings that overlap an earlier one, by assignment; the longest overlap first."""
        every = (one for one in self.costs.holdings if one.overlaps and one.group in groups)
        shared = grouped(every, lambda one: (one.group, one.overlaps, one.member, one.from_ms))
        for held in shared.values():
            held.sort(key=lambda one: natural(one.partition))
        return sorted(shared.values(), key=lambda held: -max(one.overlap_ms for one in held))

    def fences(self, groups: Iterable[str]) -> dict[tuple[str, str, str], list[float]]:
        """Return when responses fenced, by group, client and API, over the whole run."""
        fences = (fence for fence in self.costs.fences if fence.group in groups)
        by_client = grouped(fences, lambda fence: (fence.group, fence.subject, fence.api))
        return {key: [fence.at_ms for fence in found] for key, found in by_client.items()}


def natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that orders names by the numbers in them."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)
    ]


def _ended_ms(row: Row) -> float:
    duration: float | None = row["duration_ms"]
    return inf if duration is None else float(row["started_ms"] + duration)


def _summary(stops: Iterable[Stop]) -> Json:
    return summary(stop.stopped_ms for stop in stops)


def comparison_rows(
    comparison: Iterable[Row], groups: Sequence[str], clients: Mapping[str, str], zero_ms: float
) -> dict[str, list[Json]]:
    """Return the rows to show of each of `groups`, with the cells of both sides.

    `sides` are the cells of the observed and of the expected rebalance, None where there is none.
    """
    mine = sorted((row for row in comparison if row["group"] in groups), key=began_ms)
    kept = sorted(range(len(mine)), key=lambda at: mine[at]["outcome"] == "match")[:ROWS_SHOWN]
    rows: dict[str, list[Json]] = {group: [] for group in groups}
    for row in (mine[at] for at in sorted(kept)):
        sides = [_side(row, side, clients, zero_ms) for side in ("observed", "expected")]
        shown = {"sides": sides, "differing": _differing(row, *sides)}
        rows[row["group"]].append({**row, **shown})
    return rows


def _differing(row: Row, observed: Json | None, expected: Json | None) -> set[str]:
    differing = {"started"} if row["off_by_ms"] else set()
    if observed and expected:
        differing |= {n for n in CELLS if n not in TIMES and observed[n] != expected[n]}
        if row["outcome"] == "match":  # before 3.0 no line names the leader, before 2.8 the members
            differing -= {n for n in ("members", "leader") if row[f"observed_{n}"] is None}
            if row["observed_started_ms"] is None:  # no answer tells when a rebalance began, or why
                differing -= {"reason", "generation"}
    return differing


def _side(row: Row, side: str, clients: Mapping[str, str], zero_ms: float) -> Json | None:
    """Return the cells of one side; None where that side has no such rebalance."""
    of = lambda name: row[f"{side}_{name}"]
    started_ms, joined_ms, ended_as = of("started_ms"), of("joined_ms"), of("ended_as")
    if started_ms is None and joined_ms is None:
        return None
    ended_ms = of("assigned_ms") or (joined_ms if ended_as == "empty" else None)
    static = of("static_members")
    return {
        "started": offset(started_ms, zero_ms),
        "reason": of("reason") or "-",
        "generation": f"{_or_dash(of('old_generation'))} → {_or_dash(of('generation'))}"
        + ("" if ended_as == "assigned" else f", {ended_as}"),
        "members": _or_dash(of("members")) + (f", {static} static" if static else ""),
        "leader": clients.get(of("leader"), of("leader")) or "-",
        "took": seconds(ended_ms - started_ms if ended_ms and started_ms else None, 3),
    }


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
