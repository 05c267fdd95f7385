"""Lies in lines: fields that no response has, in recorded evidence of each coordinator."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from reference_coordinator.classic.state import State
from reference_coordinator.replay import Stall
from reports.judgement.disturbances import Disturbances
from reports.judgement.findings import collect
from reports.judgement.recording import Recording
from reports.judgement.run.disturbance import Disturbance, Source
from reports.judgement.timelines.member_lines import differences
from tests.reports.alter import compared

Row = dict[str, Any]
Lie = Callable[[str], str]


def swapped(pattern: str, instead: str) -> Lie:
    return lambda message: re.sub(pattern, instead, message, count=1)


def counted(pattern: str, more: int) -> Lie:
    """Change a number that a line has."""
    return lambda message: re.sub(pattern, lambda n: str(int(n[0]) + more), message, count=1)


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


STATIC_ID = r"(?<=groupInstanceId=)\w[\w-]*(?= and unknown)"
IN_STATE = r"(?<= in )\w+(?= state[.])"
OTHER_REASON = r"(?<=client reason: )[^)]*"
ANOTHER = "b-11e35680-8f55-42fe-8c51-a9385f0a781f"
INSTANCE = r"(?<= with group instance id )(Some\()?\w[\w-]*\)?(?=;)"
LIES: list[tuple[str, Lie, str]] = [
    ("static_added", swapped(STATIC_ID, "another"), "instance"),
    ("static_added", swapped(IN_STATE, "Dead"), "state"),
    ("static_replaced", swapped(IN_STATE, "Dead"), "state"),
    ("static_replaced", swapped(r"(?<=mapped member )\S+", ANOTHER), "member"),
    ("dynamic_given_id", swapped(IN_STATE, "Dead"), "state"),
    ("pending_joins", swapped(IN_STATE, "Dead"), "state"),
    ("left", swapped(r"(?<=client reason: ).*", "another one"), "client_reason"),
    ("preparing", swapped(OTHER_REASON, "another one"), "client_reason"),
    ("preparing", swapped(INSTANCE, "another"), "instance"),
    ("preparing", swapped(r"(?<=re-joining group during )\w+", "Empty"), "state"),
    ("absent_dynamic_removed", swapped(r"(?<=[(\[])", f"{ANOTHER}, "), "removed"),
    ("absent_dynamic_removed", swapped(r"(?<=[(\[])[^\])]+", ""), "removed"),
    ("unsynced_removed", swapped(r"(?<=[(\[])", f"{ANOTHER}, "), "removed"),
    ("group_loaded", counted(r"\d+(?= members[.]|$)", 1), "members|generation"),
    ("group_loaded", counted(r"[1-9]\d*(?= members[.]|$)", -1), "members|generation"),
]  # fmt: skip


@pytest.mark.parametrize(("template", "lie", "field"), LIES)
def test_a_lie_in_a_field_is_found(
    recording: Recording, template: str, lie: Lie, field: str
) -> None:
    altered = list(said(recording, template, lie))
    assert altered
    for group, rows in altered:
        assert any(
            outcome in ("wrong_line", "doubtful_line") and re.search(f"(^|: )({field}) ", subject)
            for outcome, subject in wrong(recording, group, rows)
        ), group


@pytest.mark.parametrize("template", ["static_added", "static_replaced", "pending_joins"])
def test_a_state_is_that_of_the_group_s_line_before(recording: Recording, template: str) -> None:
    """Every other state that a group can be in is a lie."""
    for state in State:
        group, altered = next(said(recording, template, swapped(IN_STATE, str(state))))
        assert wrong(recording, group, altered), state


def test_unaltered_lines_are_as_they_are_due(recording: Recording) -> None:
    for group, rows in recording.rows_by_group.items():
        assert wrong(recording, group, list(rows)) == []


@pytest.mark.parametrize(
    "template",
    ["absent_dynamic_removed", "unsynced_removed", "group_loaded", "static_added"],
)
def test_a_line_that_is_missing_is_found(recording: Recording, template: str) -> None:
    group, rows = next(
        (group, rows)
        for group, rows in recording.rows_by_group.items()
        if any(row.get("template") == template for row in rows)
    )
    place = next(i for i, row in enumerate(rows) if row.get("template") == template)
    found = wrong(recording, group, [*rows[:place], *rows[place + 1 :]])
    assert {outcome for outcome, _ in found} & {"missing_line", "doubtful_line"}


def test_a_set_has_no_order(recording: Recording) -> None:
    turned = lambda message: re.sub(r"(?<=[(\[])(\S+), (\S+)(?=[\])])", r"\2, \1", message)
    for group, rows in said(recording, "unsynced_removed", turned):
        assert wrong(recording, group, rows) == []


def failed_at(recording: Recording, at_ms: float) -> list[Row]:
    """Return the rows of a group with a line of a failed write."""
    rows = list(recording.rows_by_group["static"])
    line = next(row for row in rows if row.get("template") == "static_added")
    return [*rows, {**line, "template": "persist_failed", "at_ms": at_ms}]


@pytest.mark.parametrize(
    ("since_ms", "found"), [(-100, True), (-1, True), (1, False), (100, False)]
)
def test_a_failed_write_needs_an_outage(
    recording: Recording, since_ms: float, *, found: bool
) -> None:
    """From the fault's intent until 10 s after it was healed."""
    (outage,) = recording.run.outages
    healed_ms = max(e["at_ms"] for e in recording.run.journal if e["event"] == "healed")
    for at_ms in (outage.from_ms + since_ms, healed_ms + 10_000 - since_ms):
        outcomes = [one for one, _ in wrong(recording, "static", failed_at(recording, at_ms))]
        assert outcomes == (["doubtful_line"] if found else [])


@pytest.mark.parametrize(
    ("after_ms", "found"),
    [(-3_010, True), (-2_990, False), (9_990, False), (10_010, True), (30_000, True)],
)
def test_a_failed_write_needs_a_standstill(
    recording: Recording, after_ms: float, *, found: bool
) -> None:
    """One of 3 s; until 10 s after its end, as a broker may have been declared dead."""
    rows = failed_at(recording, 0.0)
    stood_ms = rows[-2]["at_ms"]
    rows[-1] |= {"at_ms": stood_ms + after_ms}
    stalls = (Stall(rows[-1]["broker"], stood_ms - 3_000, stood_ms),)
    judge = replace(recording.context, outages=(), stalls=stalls)
    found_rows = compared(judge, "static", rows)
    outcomes = [row["outcome"] for name, row in found_rows if name == "member_lines"]
    assert outcomes == (["doubtful_line"] if found else [])


@pytest.mark.parametrize(("since_ms", "proven"), [(-1, False), (0, False), (1, True), (500, True)])
def test_what_is_loaded_is_proven_unless_a_fault_is_near(
    recording: Recording, since_ms: float, *, proven: bool
) -> None:
    """What was stored last before a fault may be in no log. It explains nothing else."""
    lie = counted(r"\d+(?= members[.]|$)", 1)
    (group, rows), *_ = said(recording, "group_loaded", lie)
    at_ms = next(row["at_ms"] for row in rows if row.get("template") == "group_loaded")
    lines = compared(recording.context, group, rows)
    loaded = [{"group": group, **row} for name, row in lines if row.get("kind") == "group_loaded"]
    found = collect([], [], loaded)
    fault = Disturbance("1", at_ms - 5_000, at_ms - since_ms, "a fault", Source.FAULT)
    assert [one.proven for one in Disturbances([fault], {}).judged(found)] == [proven]
    others = [replace(one, about="stabilized") for one in found]
    assert all(one.proven for one in Disturbances([fault], {}).judged(others))


def test_a_join_phase_that_nobody_joined_is_due_or_not(recording: Recording) -> None:
    rows = list(recording.rows_by_group["static"])
    line = next(row for row in rows if row.get("template") == "stabilized")
    named = {**line, "template": "nobody_rejoined"}
    assert [outcome for outcome, _ in wrong(recording, "static", [*rows, named])] == [
        "unexpected_line"
    ]


@pytest.mark.parametrize(("written", "same"), [("Some(null)", True), ("None", True), ("a", False)])
def test_an_instance_id_that_no_client_gave(written: str, same: bool) -> None:
    """2.4 writes one that is null in the request as `Some(null)`."""
    found = differences(
        "static_added", (("instance", ""),), {"instance": written}, names_batch=False
    )
    assert (found == []) == same
