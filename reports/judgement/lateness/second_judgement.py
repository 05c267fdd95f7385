"""The second judgement: whether what nothing disproves explains what is proven wrong.

A group in which something is proven wrong is judged again as if its brokers had stood still
whenever nothing shows that they worked. If no finding of that judgement is proven (missing evidence
counts as in the first one), the group is a doubt, and no reason for a `fail`. The same goes if
writes may have failed because a broker stood still for long, or lost the group's partition without
a fault.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from reference_coordinator.replay import Outage, Parting, Stall
from reports.judgement import findings
from reports.judgement.coordinators.unplanned_elections import Election, unplanned_elections
from reports.judgement.findings import Finding, MissingEvidence
from reports.judgement.group import Judge
from reports.judgement.lateness import broker_activity
from reports.judgement.missing import overtaken_joins
from reports.judgement.missing.silent_tails import silent_tails
from reports.judgement.run.disturbance import CATCHING_UP_MS
from reports.judgement.run.machine_log import Busy, Standstill, thread_waits_ms
from reports.judgement.run.run_folder import RunFolder
from reports.judgement.timelines.member_lines import WRITES_FAIL_MS

Row = Mapping[str, Any]


def findings_of(
    rows: Sequence[Row], tables: Mapping[str, Sequence[dict[str, Any]]], missing: MissingEvidence
) -> list[Finding]:
    """List the findings about a group; `rows` are its logged rows, `tables` those of its judgement.

    The rows of `tables` have the column `group`.
    """
    lines = [row for row in rows if row["template"] is not None]
    before = lambda _, at_ms: [line for line in lines if line["at_ms"] <= at_ms]
    located = lambda name, due: [findings.located(row, due, before) for row in tables.get(name, ())]
    return missing.findings(
        tables.get("violations", ()),
        located("comparison", "expected_started_ms"),
        located("member_lines", "due_ms"),
        tables.get("breaches", ()),
    )


@dataclass(frozen=True)
class SecondJudgement:
    """Judges groups again: `possible` are stalls that nothing disproves.

    `judge` and `missing` are those of the first judgement, `standstills` are proven.
    """

    judge: Judge
    missing: MissingEvidence
    possible: Sequence[Stall]
    busy: Sequence[Busy] = ()
    standstills: Sequence[Standstill] = ()
    unmeasured: Sequence[tuple[str, float]] = ()
    """The kills (broker, ms) of which it is not known how long the broker's log was then."""

    @classmethod
    def of_run(
        cls,
        judge: Judge,
        run: RunFolder,
        missing: MissingEvidence,
        activity: tuple[Sequence[Row], Sequence[Row]],
        standstills: Sequence[Standstill],
    ) -> Self:
        """Return what judges the groups of a run again; `activity` is that of its brokers.

        That is rows of `requests`, and of `transitions`.
        """
        possible = broker_activity.possible_in(*activity, run.brokers, run.busy, run.level)
        unmeasured = [kill for kill in run.kills if kill not in run.log_lines]
        return cls(judge, missing, possible, run.busy, standstills, unmeasured)

    def doubt(
        self, group: str, rows: Iterable[Row], wrong_ms: float, broker: str = ""
    ) -> str | None:
        """Say why what is wrong with a group proves nothing; None if it is proven.

        Something is wrong at `wrong_ms` for the first time, at `broker` if that is known.
        """
        rows = list(rows)
        stalls = (*self.judge.stalls, *self.possible)
        late = replace(self.judge, stalls=stalls, busy=tuple(self.busy))
        left = self._findings(late, group, rows)
        serving = {row["broker"] for row in rows if row["template"] is None}
        roots = findings.proven_roots(left)
        if not roots:
            look = lambda at: broker_activity.longest_near(
                [stall for stall in self.possible if stall.broker in at], wrong_ms
            )
            near = look({broker}) or look(serving)
            return broker_activity.doubt(group, near, self.busy, wholly=not left)
        wrong_ms = min(one.at_ms for one in roots)  # silence may explain the first
        for parting in self.judge.epochs.partings:
            lost = replace(late, epochs=replace(late.epochs, partings=_at_most(late, parting)))
            if not findings.proven_roots(self._findings(lost, group, rows)):
                return broker_activity.doubt_of_parting(group, parting)
        waits = (thread_waits_ms(self.busy, one, wrong_ms) for one in serving)
        waits_ms = max(waits, default=0.0)
        late = replace(late, waits_ms=waits_ms)
        if waits_ms and not self._proven(late, group, rows):
            return broker_activity.doubt_of_threads(group, waits_ms, self.busy, wrong_ms)
        for tail in silent_tails(rows, self.unmeasured, self.judge.epochs):
            if not findings.proven_roots(findings.unproven_since(left, {group: tail.last_ms})):
                return tail.doubt(group)
        known = () if self.judge.wire is not None else self.judge.clients.librdkafka
        joins = overtaken_joins.overtaken_joins(rows, known)  # the tap has unanswered ones itself
        if joins and not self._proven(late, group, [*rows, *joins]):
            return overtaken_joins.doubt(group, joins)
        long = [s for s in self.standstills if s.until_ms - s.from_ms >= WRITES_FAIL_MS]
        down = [Outage(one.from_ms, one.until_ms + CATCHING_UP_MS) for one in long]
        if down and not self._proven(late, group, rows, down):
            nearest = min(long, key=lambda one: abs(one.until_ms - wrong_ms))
            return broker_activity.doubt_of_writes(group, nearest)
        elections = self._elections(group, rows, stalls)
        moved = [*down, *(one.outage for one in elections)]
        if not elections or self._proven(late, group, rows, moved):
            return None
        election = min(elections, key=lambda one: abs(one.unloaded_ms - wrong_ms))
        return f"group {group}: what is wrong is explained if writes failed: {election.described}"

    def _elections(
        self, group: str, rows: Iterable[Row], stalls: Sequence[Stall]
    ) -> list[Election]:
        """Return the elections of the group's partition that no fault explains."""
        named = (row["partition"] for row in rows if row["template"] is not None)
        partition = min((one for one in named if one is not None), default=None)
        if partition is None:
            partition = self.judge.epochs.partition_of(group)
        judge = self.judge
        stopped_ms = judge.grown_ms[1]
        return unplanned_elections(judge.epochs, partition, judge.outages, stalls, stopped_ms)

    def _proven(
        self, judge: Judge, group: str, rows: Sequence[Row], outages: Iterable[Outage] = ()
    ) -> bool:
        """Tell whether something is proven wrong, even if writes may have failed in some times."""
        failing = replace(judge, outages=(*judge.outages, *outages))
        return bool(findings.proven_roots(self._findings(failing, group, rows)))

    def _findings(self, judge: Judge, group: str, rows: Sequence[Row]) -> list[Finding]:
        tables = defaultdict(list)
        for name, row in judge.differences(group, rows):
            tables[name].append({"group": group, **row})
        for row in judge.late_breaches(group, rows):
            tables["breaches"].append({"group": group, **row})
        return findings_of(rows, tables, self.missing)


def _at_most(judge: Judge, parting: Parting) -> tuple[Parting, ...]:
    """Return the partings of a judge, in one of which as much is lost as may be."""
    return tuple(one.at_most if one == parting else one for one in judge.epochs.partings)
