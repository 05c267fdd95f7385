"""A lie changes one place of a recorded run; what is no lie is not found."""

import pytest

from reports.judgement.log.log_places import Level
from selftest.lies import LIES, GroupLines, Lie
from selftest.lies.answers import refusing
from selftest.lies.group_lines import QUIET, Tell
from selftest.mutants import table
from selftest.mutants.evidence import Runs
from selftest.mutants.table import row


@pytest.mark.parametrize(
    ("tell", "runs_with_it"), [(lambda log: log.lines, 1), (lambda _: None, 0)]
)
def test_the_truth_is_no_lie_and_a_lie_without_a_place_is_in_no_run(
    tell: Tell, runs_with_it: int, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "LIES", {"mine": Lie("mine", "none", *QUIET, tell)})
    result = row("mine", Level.REQUESTS, runs["batch-removal"][:1])
    assert (result.runs, result.fails, result.doubts) == (runs_with_it, 0, 0)
    assert not result.is_found
    assert not result.is_explained


def test_a_lie_changes_one_place(runs: Runs) -> None:
    log = GroupLines(runs["batch-removal"][0], "static")
    lines = LIES["heartbeat_not_coordinator_without_a_fault"].tell(log)
    assert lines is not None
    changed = [pair for pair in zip(log.lines, lines, strict=True) if pair[0] != pair[1]]
    assert len(changed) == 1
    before, after = changed[0]
    assert after.text == before.text.replace('"errorCode":0', '"errorCode":16', 1)


def test_every_part_of_a_response_is_refused(runs: Runs) -> None:
    log = GroupLines(runs["batch-removal"][0], "static")
    place = log.answered("OFFSET_COMMIT")[0]
    (line,) = refusing(27)(log, place)
    assert log.lines[place].text.count('"errorCode":0') == line.text.count('"errorCode":27') > 0
    assert '"errorCode":0' not in line.text
