"""The page's tables of costs: static and dynamic members, each member, rebalance and cause.

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

from reports.judgement.costs import Costs, Stop, impact, summary
from reports.judgement.growth import TopicGrowth
from reports.judgement.run.journal import PHASES
from reports.judgement.run.run_folder import RunFolder
from reports.page import faults
from reports.page.drawn_groups import DrawnGroups, identity
from reports.page.wording import REASONS, counted, offset, seconds

Row = Mapping[str, Any]
Json = dict[str, Any]

ROWS_SHOWN = 200
"""How many rows a table of costs holds; the tables on disk have all."""
CLOCKS_MS = 10.0
"""How much the times of a broker and of a client on the same machine may differ."""


@dataclass(frozen=True)
class CostRows:
    """Builds the tables of one run; `observed` are all rebalances in order of time."""

    run: RunFolder
    verdict: Json
    observed: Sequence[Row]
    drawn: DrawnGroups
    costs: Costs

    def beside(self, groups: Sequence[str]) -> list[Json]:
        """List the groups: a row for each, and one for each kind of member if it has both."""
        return [row for group in groups for row in self._of_group(group)]

    def _of_group(self, group: str) -> list[Json]:
        about = self.verdict["groups"][group]
        kinds = sorted({j.kind for j in self.drawn.joins if j.group == group}, reverse=True)
        given = self._in_impact(self.costs.of(group).handovers)
        known = self.costs.has_history(group)
        whole = {
            "group": group,
            "kind": " and ".join(kinds) or "-",
            **self._counts(group),
            "moved": about["partitions_moved"]["impact"] if known else None,
            "unowned": seconds(sum(handover.unowned_ms for handover in given)) if known else None,
            "responses": about["responses_checked"],
        }
        if len(kinds) < 2:
            return [whole]
        apart = {"group": None, "moved": "", "unowned": "", "responses": ""}
        return [whole, *({**apart, "kind": kind, **self._counts(group, kind)} for kind in kinds)]

    def _counts(self, group: str, kind: str | None = None) -> Json:
        """Count the impact phase for the members of a kind; without a kind, for the whole group."""
        mine, kinds = self.costs.of(group), self._kinds
        hit = [
            fault
            for fault in faults.concerning(group, self.verdict["faults"])
            if fault["injected_at_ms"] is not None
            if kind in (None, self.drawn.kind_at(fault["target"], fault["injected_at_ms"]))
        ]
        rebalances = [
            row
            for row in self._begun(group)
            if self.run.phase_at(row["started_ms"]) == "impact"
            if kind in (None, self._cause_kind(row))
        ]
        stops = [stop for stop in impact(self.run, mine.stops) if kind in (None, stop.kind)]
        evicted = [one for one in mine.evictions if kind in (None, kinds.get(one.subject))]
        fences = mine.fences if kind != "dynamic" else []
        joined = [j for j in self.drawn.joins if j.group == group and kind in (None, j.kind)]
        return {
            "members": len({identity(join.client) for join in joined}),
            "faults": _in_words(hit),
            "rebalances": len(rebalances),
            "each": f"{len(rebalances) / len(hit):.1f}" if hit else "-",
            **_stopped(stops if self.costs.has_history(group) else None, 2),
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

    def causes(self, groups: Sequence[str]) -> dict[str, list[Json]]:
        """Count each group's rebalances by cause and phase, over the whole run."""
        tables = {}
        for group in groups:
            counts = self.verdict["groups"][group]["by_cause"]
            reasons = sorted({reason for phase in PHASES for reason in counts[phase]})
            tables[group] = [
                {
                    "cause": reason,
                    "why": REASONS.get(reason, ""),
                    "counts": [counts[phase].get(reason, 0) for phase in PHASES],
                }
                for reason in reasons
            ]
        return tables

    def members(self, groups: Sequence[str]) -> dict[str, list[Json]]:
        """Summarize the stops of each member that had one; the longest total comes first."""
        tables = {}
        for group in groups:
            by_member: dict[str, list[Stop]] = defaultdict(list)
            for stop in impact(self.run, self.costs.of(group).stops):
                by_member[stop.member].append(stop)
            rows = [
                {"member": member, "kind": stops[-1].kind, **_stopped(stops)}
                | {"ms": summary(stop.stopped_ms for stop in stops)["total"]}
                for member, stops in by_member.items()
            ]
            tables[group] = sorted(rows, key=lambda row: (-row["ms"], natural(row["member"])))
        return {group: rows for group, rows in tables.items() if rows}

    def rebalances(self, groups: Sequence[str], zero_ms: float) -> list[Json]:
        """List what each rebalance of the run cost, and the stops outside of any rebalance.

        A stop belongs to the rebalance in which it began. Moved partitions belong to the last
        rebalance that began before their assignment.
        """
        return [row for group in groups for row in self._rebalances(group, zero_ms)]

    def _rebalances(self, group: str, zero_ms: float) -> Iterator[Json]:
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
        clients = self.drawn.clients()
        for at, row in enumerate(rows):
            member = (row["member_id"] or "").strip(", ")
            yield {
                "group": group,
                "at": offset(row["started_ms"], zero_ms),
                "phase": self.run.phase_at(row["started_ms"]),
                "cause": row["reason"] or "-",
                "client_reason": row["client_reason"] or "",
                "member": clients.get(member, member),
                "generation": row["generation"],
                **_stopped(stops[at] if known else None),
                "moved": moved[at] if known else None,
            }
        if outside := stops[None]:
            yield {
                "group": group, "at": "", "phase": "", "cause": "outside of any rebalance",
                "client_reason": "", "member": "", "generation": None, **_stopped(outside),
                "moved": "",
            }  # fmt: skip

    def growth(self, found: Sequence[TopicGrowth], zero_ms: float) -> list[Json]:
        """List when each group assigned the partitions that were added to its topics."""
        clients = self.drawn.clients()
        rows = []
        for one in found:
            row = one.rebalance or {}
            member = row.get("member_id") or ""
            rows.append({
                "group": one.group,
                "topic": one.topic,
                "at": offset(one.at_ms, zero_ms),
                "rebalance": offset(row.get("started_ms"), zero_ms),
                "delay": seconds(one.delay_ms, 3),
                "member": clients.get(member, member),
                "client_reason": row.get("client_reason") or "",
                "rebalanced": one.rebalance is not None,
            })  # fmt: skip
        return rows

    def overlaps(self, groups: Sequence[str], zero_ms: float) -> list[Json]:
        """List when partitions had two owners: one row an assignment, the longest overlap first."""
        shared: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
        for holding in self.costs.holdings:
            if holding.overlaps and holding.group in groups:
                key = (holding.group, holding.overlaps, holding.member, holding.from_ms)
                shared[key].append(holding)
        longest = {key: max(h.overlap_ms for h in held) for key, held in shared.items()}
        return [
            {
                "group": group,
                "at": offset(from_ms, zero_ms),
                "older": older,
                "newer": newer,
                "partitions": sorted((h.partition for h in shared[key]), key=natural),
                "lasted": seconds(longest[key], 3),
            }
            for key in sorted(shared, key=lambda key: -longest[key])
            for group, older, newer, from_ms in [key]
        ]

    def evictions(self, groups: Sequence[str], zero_ms: float) -> list[Json]:
        """List the evicted members of the whole run."""
        clients = self.drawn.clients()
        return [
            {
                "group": eviction.group,
                "at": offset(eviction.at_ms, zero_ms),
                "phase": self.run.phase_at(eviction.at_ms),
                "member": clients.get(eviction.subject, eviction.subject),
                "member_id": eviction.subject,
            }
            for eviction in self.costs.evictions
            if eviction.group in groups
        ]

    def fences(self, groups: Sequence[str], zero_ms: float) -> list[Json]:
        """Count the responses that fence, by client and API, over the whole run."""
        counts: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for fence in self.costs.fences:
            if fence.group in groups:
                counts[fence.group, fence.subject, fence.api].append(fence.at_ms)
        return [
            {
                "group": group,
                "member": client,
                "api": api,
                "responses": len(times),
                "first": offset(times[0], zero_ms),
            }
            for (group, client, api), times in counts.items()
        ]


def natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that orders names by the numbers in them."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)
    ]


def _ended_ms(row: Row) -> float:
    duration: float | None = row["duration_ms"]
    return inf if duration is None else float(row["started_ms"] + duration)


def _in_words(hit: Sequence[faults.Fault]) -> str:
    """Write counts of faults, as in "1 broker kill, 2 restarts"."""
    counts = sorted(faults.counted(hit).items())
    return ", ".join(counted(number, noun) for noun, number in counts) or "0 faults"


def _stopped(stops: Sequence[Stop] | None, digits: int = 3) -> Json:
    """Return the cells about stops, in seconds; None without a client history."""
    if stops is None:
        return dict.fromkeys(("stops", "p50", "p99", "longest", "stopped"))
    of = summary(stop.stopped_ms for stop in stops)
    return {
        "stops": of["stops"],
        "p50": seconds(of["p50"], digits),
        "p99": seconds(of["p99"], digits),
        "longest": seconds(of["max"], digits),
        "stopped": seconds(of["total"], digits),
    }
