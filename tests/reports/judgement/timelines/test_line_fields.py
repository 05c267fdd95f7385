"""Lines that are missing, failed writes and what is loaded, in recorded evidence."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from reference_coordinator.replay import Stall
from reports.judgement.disturbances import Disturbances
from reports.judgement.findings import collect
from reports.judgement.recording import Recording
from reports.judgement.run.disturbance import Disturbance, Source
from reports.judgement.run_context import RunContext
from reports.judgement.timelines.member_lines import differences
from tests.reports.alter import compared

Row = dict[str, Any]
Lie = Callable[[str], str]


def one_more(message: str) -> str:
    """Change the number of members, or the generation, that a line has."""
    return re.sub(r"\d+(?= members[.]|$)", lambda n: str(int(n[0]) + 1), message, count=1)


def said(recording: Recording, template: str, lie: Lie) -> Iterator[tuple[str, list[Row]]]:
    """Yield the rows of each group with the lie in the first line that it changes."""
    for group, rows in recording.rows_by_group.items():
        for place, row in enumerate(rows):
            if row.get("template") == template and lie(row["message"]) != row["message"]:
                altered = [dict(row) for row in rows]
                altered[place]["message"] = lie(row["message"])
                yield group, altered
                break


def wrong(recording: Recording, group: str, rows: list[Row]) -> list[tuple[str, str]]:
    """Judge a group; return outcome and subject of the lines that differ."""
    found = compared(recording.context, group, rows)
    return [(row["outcome"], row["subject"]) for name, row in found if name == "member_lines"]


@pytest.mark.parametrize(
    "template",
    ["absent_dynamic_removed", "unsynced_removed", "group_loaded", "static_added"],
)
def test_a_line_that_is_missing_is_found(recording, template):
    group, rows = next(
        (group, rows)
        for group, rows in recording.rows_by_group.items()
        if any(row.get("template") == template for row in rows)
    )
    place = next(i for i, row in enumerate(rows) if row.get("template") == template)
    found = wrong(recording, group, [*rows[:place], *rows[place + 1 :]])
    assert {outcome for outcome, _ in found} & {"missing_line", "doubtful_line"}


@pytest.mark.parametrize(
    ("written", "differ"),
    [("[b-2, a-1]", False), ("Set(b-2, a-1)", False), ("[b-2]", True), ("Set(a-1, c-3)", True)],
)
def test_a_set_has_no_order(written, differ):
    due, observed = (("removed", "a-1, b-2"),), {"removed": written}
    found = differences("unsynced_removed", due, observed, names_batch=True)
    assert bool(found) == differ


def failed_at(recording: Recording, at_ms: float) -> list[Row]:
    """Return the rows of a group with a line of a failed write."""
    rows = list(recording.rows_by_group["static"])
    line = next(row for row in rows if row.get("template") == "static_added")
    return [*rows, {**line, "template": "persist_failed", "at_ms": at_ms}]


def outcomes(judge: RunContext, rows: list[Row]) -> list[str]:
    found = compared(judge, "static", rows)
    return [row["outcome"] for name, row in found if name == "member_lines"]


@pytest.mark.parametrize(
    ("since_ms", "found"), [(-100, True), (-1, True), (1, False), (100, False)]
)
def test_a_failed_write_needs_an_outage(recording, since_ms, found):
    """From the fault's intent until 10 s after it was healed."""
    (outage,) = recording.run.outages
    healed_ms = max(e["at_ms"] for e in recording.run.journal if e["event"] == "healed")
    for at_ms in (outage.from_ms + since_ms, healed_ms + 10_000 - since_ms):
        kinds = outcomes(recording.context, failed_at(recording, at_ms))
        assert kinds == ["doubtful_line"] * found


@pytest.mark.parametrize(
    ("after_ms", "found"),
    [(-3_010, True), (-2_990, False), (9_990, False), (10_010, True), (30_000, True)],
)
def test_a_failed_write_needs_a_standstill(recording, after_ms, found):
    """One of 3 s; until 10 s after its end, as a broker may have been declared dead."""
    rows = failed_at(recording, 0.0)
    stood_ms = rows[-2]["at_ms"]
    rows[-1] |= {"at_ms": stood_ms + after_ms}
    stalls = (Stall(rows[-1]["broker"], stood_ms - 3_000, stood_ms),)
    judge = replace(recording.context, outages=(), stalls=stalls)
    assert outcomes(judge, rows) == ["doubtful_line"] * found


@pytest.mark.parametrize(("since_ms", "proven"), [(-1, False), (0, False), (1, True), (500, True)])
def test_what_is_loaded_is_proven_unless_a_fault_is_near(recording, since_ms, proven):
    """What was stored last before a fault may be in no log. It explains nothing else."""
    (group, rows), *_ = said(recording, "group_loaded", one_more)
    at_ms = next(row["at_ms"] for row in rows if row.get("template") == "group_loaded")
    lines = compared(recording.context, group, rows)
    loaded = [{"group": group, **row} for name, row in lines if row.get("kind") == "group_loaded"]
    found = collect([], [], loaded)
    fault = Disturbance("1", at_ms - 5_000, at_ms - since_ms, "a fault", Source.FAULT)
    assert [one.proven for one in Disturbances([fault], {}).judged(found)] == [proven]
    others = [replace(one, about="stabilized") for one in found]
    assert all(one.proven for one in Disturbances([fault], {}).judged(others))


def test_a_join_phase_that_nobody_joined_is_due_or_not(recording):
    rows = list(recording.rows_by_group["static"])
    line = next(row for row in rows if row.get("template") == "stabilized")
    named = {**line, "template": "nobody_rejoined"}
    assert [outcome for outcome, _ in wrong(recording, "static", [*rows, named])] == [
        "unexpected_line"
    ]


@pytest.mark.parametrize(("written", "same"), [("Some(null)", True), ("None", True), ("a", False)])
def test_an_instance_id_that_no_client_gave(written, same):
    """2.4 writes one that is null in the request as `Some(null)`."""
    found = differences(
        "static_added", (("instance", ""),), {"instance": written}, names_batch=False
    )
    assert (found == []) == same
