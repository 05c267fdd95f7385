"""Lies about recorded runs: each is found, and what is no lie is not."""

import re
from pathlib import Path

import pytest

from selftest.lies import table
from selftest.lies.group_lines import GroupLines, Lie, errors, refused
from selftest.lies.table import LIES, NOT_SHOWN, LieResult, result_of
from selftest.mutants.evidence import Runs

PAGE = (Path(__file__).parents[3] / "docs" / "mutants.md").read_text(encoding="utf-8")
SLOW = "join_group_"
"""Lies about JoinGroup take seconds each: the whole table tells them."""


@pytest.mark.parametrize(
    "name", [name for name in LIES if not name.startswith(SLOW) and name not in NOT_SHOWN]
)
def test_no_lie_is_believed(name: str, runs: Runs) -> None:
    result = result_of(name, runs[LIES[name].experiment][:1])
    assert (result.runs, result.fails + result.doubts) == (1, 1)


@pytest.mark.parametrize(
    ("lie", "runs", "fails", "doubts", "found", "explained"),
    [
        ("id_given_again", 10, 10, 0, True, False),
        ("id_given_again", 10, 3, 7, True, False),
        ("id_given_again", 10, 9, 0, False, False),
        ("id_given_again", 9, 9, 0, False, False),
        ("heartbeat_held", 10, 8, 0, False, True),
        ("heartbeat_held", 10, 7, 1, False, True),
        ("heartbeat_held", 10, 7, 0, False, False),
        ("heartbeat_held", 0, 0, 0, False, False),
        ("assignment_line_left_out", 10, 8, 0, False, False),
        ("assignment_line_left_out", 10, 10, 0, True, False),
    ],
)
def test_a_lie_is_found_in_each_run_or_explained_in_some(
    lie: str, runs: int, fails: int, doubts: int, *, found: bool, explained: bool
) -> None:
    result = LieResult(lie, "", "", runs, fails, doubts)
    assert (result.found, result.explained) == (found, explained)


def test_the_truth_is_no_lie(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = Lie("truth", "none", "batch-removal", "static", lambda log: log.lines)
    monkeypatch.setattr(table, "LIES", {"truth": truth})
    result = result_of("truth", runs["batch-removal"][:1])
    assert (result.runs, result.fails, result.doubts) == (1, 0, 0)
    assert not result.found
    assert not result.explained


def test_a_lie_without_a_place_is_in_no_run(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = Lie("nowhere", "none", "batch-removal", "static", lambda log: None)
    monkeypatch.setattr(table, "LIES", {"nowhere": nowhere})
    assert result_of("nowhere", runs["batch-removal"][:1]).runs == 0


def test_a_lie_changes_one_place(runs: Runs) -> None:
    log = GroupLines(runs["batch-removal"][0], "static")
    lines = LIES["heartbeat_not_coordinator_without_a_fault"].tell(log)
    assert lines is not None
    changed = [pair for pair in zip(log.lines, lines, strict=True) if pair[0] != pair[1]]
    assert len(changed) == 1
    before, after = changed[0]
    assert after.text == before.text.replace('"errorCode":0', '"errorCode":16', 1)


def test_every_part_of_a_response_is_refused() -> None:
    response = {"topics": [{"partitions": [{"errorCode": 0}, {"errorCode": 0}]}]}
    assert errors(response) == {0}
    refused(response, 27)
    assert errors(response) == {27}


@pytest.mark.parametrize("name", LIES)
def test_every_lie_is_in_the_docs(name: str) -> None:
    lie = LIES[name]
    row = rf"^\| `{name}` \| {lie.freedom} \| `{lie.experiment}` "
    assert re.search(row, PAGE, re.MULTILINE)
