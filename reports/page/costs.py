"""What rebalances cost the groups of a page: rows of tables in, as frames; rows to show out.

Costs count the impact phase, as the cards do, unless their caption says otherwise.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
import pandas as pd

from reports.judgement.costs import summary
from reports.judgement.run.run_folder import RunFolder
from reports.page import faults
from reports.page.wording import counted

Row = Mapping[str, Any]
Json = dict[str, Any]

COLUMNS = {
    "stops": ["from_ms", "group", "member", "kind", "stopped_ms"],
    "handovers": ["at_ms", "group", "moved", "unowned_ms"],
    "ownership": ["from_ms", "group", "member", "partition", "until_ms", "ended_as", "overlap_ms",
                  "overlaps"],
    "expulsions": ["at_ms", "group", "subject", "api"],
    "joins": ["answered_ms", "group", "member_id", "client_id", "generation", "static"],
}  # fmt: skip
"""The columns that a page reads of tables: first the time of a row, then what orders rows of one
time. A handover is what members of a group were assigned at one instant; an expulsion without an
`api` is an eviction, with one a response that fences."""
ORDERED_BY = 4
CLOCKS_MS = 10.0
"""How much the times of a broker and of a client on the same machine may differ."""
OUTSIDE = -1
"""The place of stops that lie in no rebalance."""


def identity(client: str) -> str:
    """Return the member of a client: a second process has the member's name with a suffix."""
    return client.removesuffix(".duplicate")


@dataclass(frozen=True)
class Costs:
    """The costs of one run: `rows` by table, `observed` are all rebalances in order of time.

    Stops are given as `summary` does; None without a client history.
    """

    run: RunFolder
    verdict: Json
    observed: Sequence[Row]
    rows: Mapping[str, Sequence[Row]]

    @cached_property
    def frames(self) -> Mapping[str, pd.DataFrame]:
        """The tables in order of time, each row with its phase, and with a kind of member."""
        found = {}
        for name, columns in COLUMNS.items():
            frame = pd.DataFrame(self.rows.get(name, ()), columns=columns)
            times = {column: float for column in columns if column.endswith("_ms")}
            ordered = frame.astype(times).sort_values(columns[:ORDERED_BY], ignore_index=True)
            found[name] = ordered.assign(phase=ordered[columns[0]].map(self.run.phase_at))
        joins, expelled = found["joins"], found["expulsions"]
        joins["kind"] = np.where(joins["static"], "static", "dynamic")
        expelled["fenced"] = expelled["api"].astype(bool)
        evicted = expelled["subject"].map(_by_member(joins, "kind"))
        expelled["kind"] = evicted.where(~expelled["fenced"], "static")
        return found

    def of(self, name: str, group: str, phase: str | None = None) -> pd.DataFrame:
        """Return the rows of a table about a group, in a phase or the whole run."""
        frame = self.frames[name]
        mine = frame["group"] == group
        return frame[mine if phase is None else mine & (frame["phase"] == phase)]

    def has_history(self, group: str) -> bool:
        """Whether the client history has assignments of a group."""
        return not self.of("handovers", group).empty

    @cached_property
    def clients(self) -> dict[str, str]:
        """The client of each member id."""
        return _by_member(self.frames["joins"], "client_id")

    @cached_property
    def _kinds(self) -> dict[str, str]:
        return _by_member(self.frames["joins"], "kind")

    def kind_at(self, client: str, at_ms: float) -> str | None:
        """Return the kind a client had at its last join before a time; it may change (KIP-345)."""
        joins = self.frames["joins"]
        mine = joins[(joins["client_id"] == client) & (joins["answered_ms"] <= at_ms)]
        return None if mine.empty else mine["kind"].iloc[-1]

    def beside(self, group: str) -> list[Json]:
        """Count a group: as a whole, and each kind of member if it has both."""
        kinds = sorted(self.of("joins", group)["kind"].unique(), reverse=True)
        whole = {"kind": " and ".join(kinds) or "-", **self._counts(group)}
        each = ({"kind": kind, **self._counts(group, kind)} for kind in kinds)
        return [whole, *(each if len(kinds) > 1 else ())]

    def _counts(self, group: str, kind: str | None = None) -> Json:
        """Count the impact phase for the members of a kind; without a kind, for the whole group."""

        def mine(name: str, phase: str | None = "impact") -> pd.DataFrame:
            rows = self.of(name, group, phase)
            return rows if kind is None else rows[rows["kind"] == kind]

        hit = [
            fault
            for fault in faults.concerning(group, self.verdict["faults"])
            if (at_ms := fault["injected_at_ms"]) is not None
            and kind in (None, self.kind_at(fault["target"], at_ms))
        ]
        rebalances = sum(
            kind in (None, self._cause_kind(row))
            for row in self._begun(group)
            if self.run.phase_at(row["started_ms"]) == "impact"
        )
        nouns = sorted(faults.counted(hit).items())
        known, expelled = self.has_history(group), mine("expulsions")
        unowned_ms = self.of("handovers", group, "impact")["unowned_ms"].sum()
        return {
            "members": mine("joins", None)["client_id"].map(identity).nunique(),
            "faults": ", ".join(counted(number, noun) for noun, number in nouns) or "0 faults",
            "rebalances": rebalances,
            "each": f"{rebalances / len(hit):.1f}" if hit else "-",
            "stops": summary(mine("stops")["stopped_ms"]) if known else None,
            "unowned_ms": unowned_ms if known else None,
            "evictions": (~expelled["fenced"]).sum(),
            "fences": expelled["fenced"].sum(),
        }

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

    def spared(self, group: str) -> int:
        """Count the rebalances that static members of a group spared at least, in the impact phase.

        A member with a new member id in a generation that was there already is a static one that
        came back (KIP-345). As a dynamic member it would have begun a rebalance.
        """
        joins = self.of("joins", group)
        before = joins["generation"].cummax().shift()
        had = joins.groupby("client_id")["member_id"].shift()
        back = had.notna() & (had != joins["member_id"]) & (joins["generation"] <= before)
        return int((back & joins["static"].astype(bool) & (joins["phase"] == "impact")).sum())

    def members(self, groups: Iterable[str]) -> dict[str, list[Json]]:
        """Summarize the stops of each member that had one; the longest total comes first."""
        rows = {}
        for group in groups:
            found = [
                {"member": name, "kind": mine["kind"].iloc[-1], **summary(mine["stopped_ms"])}
                for name, mine in self.of("stops", group, "impact").groupby("member")
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
        rows, known = self._begun(group), self.has_history(group)
        handovers, stops = self.of("handovers", group), self.of("stops", group)
        starts = [row["started_ms"] - CLOCKS_MS for row in rows]
        last_of = lambda times: np.searchsorted(starts, times, side="right") - 1
        moved = handovers.groupby(last_of(handovers["at_ms"]))["moved"].sum()
        ends = np.array([*map(_ended_ms, rows), -inf])  # the last one is that of OUTSIDE
        last = last_of(stops["from_ms"])
        at = np.where(stops["from_ms"] > ends[last] + CLOCKS_MS, OUTSIDE, last)
        stopped_ms = dict(iter(stops.groupby(at)["stopped_ms"]))
        for number, row in enumerate(rows):
            cost = {"stops": summary(stopped_ms.get(number, ())), "moved": moved.get(number, 0)}
            yield {**row, **(cost if known else dict.fromkeys(cost))}
        if OUTSIDE in stopped_ms:
            yield {
                "group": group, "started_ms": None, "reason": "outside of any rebalance",
                "client_reason": None, "member_id": None, "generation": None,
                "stops": summary(stopped_ms[OUTSIDE]), "moved": "",
            }  # fmt: skip

    def overlaps(self, groups: Sequence[str]) -> list[Json]:
        """List when members owned partitions of another one, too; the longest overlap first."""
        held = self.frames["ownership"]
        shared = held[held["overlaps"].notna() & held["group"].isin(groups)]
        names = ["group", "overlaps", "member", "from_ms"]
        found = [
            {
                **dict(zip(names, key, strict=True)),
                "overlap_ms": mine["overlap_ms"].max(),
                "partitions": sorted(mine["partition"], key=natural),
            }
            for key, mine in shared.groupby(names, sort=False)
        ]
        return sorted(found, key=lambda row: -row["overlap_ms"])

    def evictions(self, groups: Sequence[str]) -> list[Json]:
        """List the members of groups whose session expired, over the whole run."""
        expelled = self.frames["expulsions"]
        mine = expelled[~expelled["fenced"] & expelled["group"].isin(groups)]
        found: list[Json] = mine.to_dict("records")
        return found

    def fences(self, groups: Sequence[str]) -> dict[tuple[str, str, str], list[float]]:
        """Return when responses fenced, by group, client and API, over the whole run."""
        expelled = self.frames["expulsions"]
        mine = expelled[expelled["fenced"] & expelled["group"].isin(groups)]
        by_client = mine.groupby(["group", "subject", "api"], sort=False)["at_ms"]
        return {key: list(times) for key, times in by_client}


def _by_member(joins: pd.DataFrame, column: str) -> dict[str, str]:
    """Return a column of the last join of each member id."""
    return dict(zip(joins["member_id"], joins[column], strict=True))


def natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that orders names by the numbers in them."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)
    ]


def _ended_ms(row: Row) -> float:
    duration: float | None = row["duration_ms"]
    return inf if duration is None else float(row["started_ms"] + duration)
