"""The second judgement: whether what nothing disproves explains what is proven wrong.

A group in which something is proven wrong is judged again as if its brokers had stood still
whenever nothing shows that they worked. If no finding of that judgement is proven (missing evidence
counts as in the first one), the group is a doubt, and no reason for a `fail`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reference_coordinator.replay import Outage, Stall
from reports.judgement import broker_activity, findings
from reports.judgement.faults import CATCHING_UP_MS
from reports.judgement.findings import Finding, MissingEvidence
from reports.judgement.group import Judge
from reports.judgement.machine_log import Busy, Standstill
from reports.judgement.member_lines import WRITES_FAIL_MS
from reports.judgement.silent_tails import silent_tails

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

    def doubt(self, group: str, rows: Iterable[Row], wrong_ms: float) -> str | None:
        """Say why what is wrong with a group proves nothing; None if it is proven.

        Something is wrong at `wrong_ms` for the first time.
        """
        rows = list(rows)
        stalls = (*self.judge.stalls, *self.possible)
        late = replace(self.judge, stalls=stalls, busy=tuple(self.busy))
        left = self._findings(late, group, rows)
        if not findings.proven_roots(left):
            serving = {row["broker"] for row in rows}
            mine = [stall for stall in self.possible if stall.broker in serving]
            near = broker_activity.longest_near(mine, wrong_ms)
            return broker_activity.doubt(group, near, self.busy, wholly=not left)
        for tail in silent_tails(rows, self.unmeasured, self.judge.epochs):
            if not findings.proven_roots(findings.unproven_since(left, {group: tail.last_ms})):
                return tail.doubt(group)
        long = [s for s in self.standstills if s.until_ms - s.from_ms >= WRITES_FAIL_MS]
        if not long:
            return None
        outages = (Outage(one.from_ms, one.until_ms + CATCHING_UP_MS) for one in long)
        failing = replace(late, outages=(*late.outages, *outages))
        if findings.proven_roots(self._findings(failing, group, rows)):
            return None
        nearest = min(long, key=lambda one: abs(one.until_ms - wrong_ms))
        return broker_activity.doubt_of_writes(group, nearest)

    def _findings(self, judge: Judge, group: str, rows: Sequence[Row]) -> list[Finding]:
        tables = defaultdict(list)
        for name, row in judge.differences(group, rows):
            tables[name].append({"group": group, **row})
        for row in judge.late_breaches(group, rows):
            tables["breaches"].append({"group": group, **row})
        return findings_of(rows, tables, self.missing)
