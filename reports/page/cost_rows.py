"""The rows of the page's tables of costs: static and dynamic members, each member and rebalance.

They count the impact phase, as the cards do, unless their caption says otherwise.
"""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from reports.judgement.costs import Costs, Holding, Stop, impact, summary
from reports.judgement.run.run_folder import RunFolder
from reports.page import faults
from reports.page.drawn_groups import DrawnGroups, identity
from reports.page.wording import counted

Row = Mapping[str, Any]
Json = dict[str, Any]

CLOCKS_MS = 10.0
"""How much the times of a broker and of a client on the same machine may differ."""


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
        if len(kinds) < 2:
            return [whole]
        return [whole, *({"kind": kind, **self._counts(group, kind)} for kind in kinds)]

    def _counts(self, group: str, kind: str | None = None) -> Json:
        """Count the impact phase for the members of a kind; without a kind, for the whole group."""
        mine, kinds = self.costs.of(group), self._kinds
        known = self.costs.has_history(group)
        hit = [
            fault
            for fault in faults.concerning(group, self.verdict["faults"])
            if fault["injected_at_ms"] is not None
            if kind in (None, self.drawn.kind_at(fault["target"], fault["injected_at_ms"]))
        ]
        rebalances = sum(
            self.run.phase_at(row["started_ms"]) == "impact"
            for row in self._begun(group)
            if kind in (None, self._cause_kind(row))
        )
        stops = [stop for stop in impact(self.run, mine.stops) if kind in (None, stop.kind)]
        evicted = [one for one in mine.evictions if kind in (None, kinds.get(one.subject))]
        fences = mine.fences if kind != "dynamic" else []
        joined = [j for j in self.drawn.joins if j.group == group and kind in (None, j.kind)]
        unowned_ms = sum(given.unowned_ms for given in self._in_impact(mine.handovers))
        nouns = sorted(faults.counted(hit).items())
        return {
            "members": len({identity(join.client_id) for join in joined}),
            "faults": ", ".join(counted(number, noun) for noun, number in nouns) or "0 faults",
            "rebalances": rebalances,
            "each": f"{rebalances / len(hit):.1f}" if hit else "-",
            "stops": _summary(stops) if known else None,
            "unowned_ms": unowned_ms if known else None,
            "evictions": len(self._in_impact(evicted)),
            "fences": len(self._in_impact(fences)),
        }

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
        if row["reason"] == "leave" and not first:
            return "static"
        return self._kinds.get(first)

    def _in_impact(self, things: Iterable[Any]) -> list[Any]:
        return [thing for thing in things if self.run.phase_at(thing.at_ms) == "impact"]

    def members(self, groups: Iterable[str]) -> dict[str, list[Json]]:
        """Summarize the stops of each member that had one; the longest total comes first."""
        of_member: dict[tuple[str, str], list[Stop]] = defaultdict(list)
        for stop in impact(self.run, self.costs.stops):
            of_member[stop.group, stop.member].append(stop)
        rows: dict[str, list[Json]] = {}
        for (group, member), stops in of_member.items():
            row = {"member": member, "kind": stops[-1].kind, **_summary(stops)}
            rows.setdefault(group, []).append(row)
        longest_first = lambda row: (-row["total"], natural(row["member"]))
        return {name: sorted(rows[name], key=longest_first) for name in groups if name in rows}

    def rebalances(self, groups: Iterable[str]) -> list[Json]:
        """List what each rebalance of the run cost, and the stops outside of any rebalance.

        A stop belongs to the rebalance in which it began. Moved partitions belong to the last
        rebalance that began before their assignment.
        """
        return [row for group in groups for row in self._rebalances(group)]

    def _rebalances(self, group: str) -> Iterator[Json]:
        rows, mine, known = self._begun(group), self.costs.of(group), self.costs.has_history(group)
        starts = [row["started_ms"] - CLOCKS_MS for row in rows]
        stops: dict[int | None, list[Stop]] = defaultdict(list)
        moved: Counter[int] = Counter()
        for stop in mine.stops:
            at = bisect_right(starts, stop.from_ms) - 1
            inside = at >= 0 and stop.from_ms <= _ended_ms(rows[at]) + CLOCKS_MS
            stops[at if inside else None].append(stop)
        for handover in mine.handovers:
            moved[bisect_right(starts, handover.at_ms) - 1] += handover.moved
        for at, row in enumerate(rows):
            cost = {"stops": _summary(stops[at]), "moved": moved[at]}
            yield {**row, **(cost if known else dict.fromkeys(cost))}
        if outside := stops[None]:
            yield {
                "group": group, "started_ms": None, "reason": "outside of any rebalance",
                "client_reason": None, "member_id": None, "generation": None,
                "stops": _summary(outside), "moved": "",
            }  # fmt: skip

    def overlaps(self, groups: Iterable[str]) -> list[list[Holding]]:
        """List holdings that overlap an earlier one, by assignment; the longest overlap first."""
        shared: dict[tuple[Any, ...], list[Holding]] = defaultdict(list)
        for one in self.costs.holdings:
            if one.overlaps and one.group in groups:
                shared[one.group, one.overlaps, one.member, one.from_ms].append(one)
        longest_first = lambda held: -max(one.overlap_ms for one in held)
        for held in shared.values():
            held.sort(key=lambda one: natural(one.partition))
        return sorted(shared.values(), key=longest_first)

    def fences(self, groups: Iterable[str]) -> dict[tuple[str, str, str], list[float]]:
        """Return when responses fenced, by group, client and API, over the whole run."""
        times: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for fence in self.costs.fences:
            if fence.group in groups:
                times[fence.group, fence.subject, fence.api].append(fence.at_ms)
        return times


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
