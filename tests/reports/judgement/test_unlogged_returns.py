"""A static rejoin whose line was printed, and whose request was not logged before a kill."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest

from reports.judgement.findings import Finding, of_group, proven_roots
from reports.judgement.group import check_rows
from reports.judgement.recording import Recording
from reports.judgement.run_context import RunContext
from selftest.mutants.judging import disturbances_of
from tests.recorded.logs import RECORDINGS
from tests.reference_coordinator.replay.test_unlogged_returns import NAMES, NEW_ID, recorded

Row = dict[str, Any]


def altered(recording: Recording, old: str, killed_ms: float, before_ms: float) -> list[Row]:
    """Print that b rejoined before the kill, and give it its new id after that."""
    rows = [dict(row) for row in recording.rows_by_group["failover"]]
    for row in rows:
        if row["at_ms"] > killed_ms:
            row.update({k: v.replace(old, NEW_ID) for k, v in row.items() if isinstance(v, str)})
    lines = [row for of in recording.rows_by_group.values() for row in of if row["template"]]
    line = next(row for row in lines if row["template"] == "static_replaced")
    broker = next(row["broker"] for row in rows if row["at_ms"] <= killed_ms)
    where = {"group": "failover", "instance": "b", "member": old, "broker": broker}
    last = max(row["line"] for row in rows if row["broker"] == broker)
    return [*rows, {**line, **where, "at_ms": killed_ms - before_ms, "line": last + 1}]


def found(recording: Recording, rows: list[Row], judge: RunContext) -> list[Finding]:
    """Judge the group with what no log may have of it."""
    tables: dict[str, list[Row]] = defaultdict(list)
    for table, row in check_rows(judge, "failover", rows):
        tables[table].append({"group": "failover", **row})
    assert [r["count"] for r in tables["bound"] if r["name"] == "unlogged_return"] == [1]
    return disturbances_of(recording, tables).judged(of_group(tables))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("before_ms", [5.0, 3_000.0])
def test_nothing_is_proven(name, before_ms):
    recording = RECORDINGS[name]
    _, killed_ms, old = recorded(name)
    rows, judge = altered(recording, old, killed_ms, before_ms), recording.context
    assert proven_roots(found(recording, rows, judge)) == []
    never = replace(judge, kills=())
    assert proven_roots(found(recording, rows, never)), "without the kill"
