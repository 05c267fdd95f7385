"""What answers alone show of mutants and lies: a sample of `selftest mutants --level wire`."""

from dataclasses import replace

import pytest

from selftest.lies.table import LIES
from selftest.mutants.catching_experiments import CATCHING_EXPERIMENTS
from selftest.mutants.evidence import Runs
from selftest.mutants.wire_table import WireRow, WireTable, of_lie, of_mutant

FAILS = WireRow("m", "demo", 10, 10, 0, 0, 3)


@pytest.mark.parametrize(
    "mutant", ["does_not_fence_heartbeats", "does_not_rebalance_on_leave", "never_expires"]
)
def test_a_rule_that_a_broker_breaks_shows_in_its_answers(mutant: str, runs: Runs) -> None:
    mine = runs[CATCHING_EXPERIMENTS[mutant].experiment][:1]
    row = of_mutant(mutant, mine, ())
    assert (row.runs, row.fails) == (1, 1)
    assert row.good


@pytest.mark.parametrize(
    ("lie", "fails", "doubts", "untraced"),
    [
        ("heartbeat_unknown_member_id_without_a_fault", 1, 0, 0),
        ("offset_commit_unknown_member_id_in_an_outage", 1, 0, 0),
        ("preparing_line_late", 0, 0, 1),
        ("fenced_line_left_out", 0, 0, 1),
    ],
)
def test_a_lie_shows_unless_it_is_told_in_lines_alone(
    lie: str, fails: int, doubts: int, untraced: int, runs: Runs
) -> None:
    row = of_lie(lie, runs[LIES[lie].experiment][:1])
    assert (row.runs, row.fails, row.doubts, row.untraced) == (1, fails, doubts, untraced)
    assert row.good


def test_a_run_that_is_believed_makes_the_table_bad() -> None:
    assert WireTable((FAILS, replace(FAILS, fails=4, doubts=5, untraced=1)), 50, 0).good
    assert not WireTable((FAILS, replace(FAILS, fails=9)), 50, 0).good
    assert not WireTable((FAILS,), 50, 1).good


def test_the_summary_counts() -> None:
    rows = (FAILS, replace(FAILS, fails=0, untraced=10), replace(FAILS, fails=5, doubts=5))
    assert WireTable(rows, 53, 0).summary == (
        "level wire: of 3 mutants and lies 1 fail in every run, 1 change no answer, 1 fail in some"
        " or are unknown; unaltered: 0 findings in 53 runs"
    )
