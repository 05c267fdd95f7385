"""Runs in which faults were injected by hand: counts do not hold, the protocol does."""

import json

import pytest

from reports.judgement.run.faults import PLAN_BY_HAND
from reports.page import report
from tests.reports.judgement.test_unfinished import too_few, wrong_answer

LINE = "1 fault by hand: numbers that the experiment expects, its expected verdict and its forecast"


def by_hand(made):
    """Let somebody have injected the last fault of the run."""
    last = next(e for e in reversed(made.journal) if e["event"] == "intent")["fault_id"]
    for entry in made.journal:
        if entry.get("fault_id") == last:
            entry["fault_id"] = "h1"


@pytest.mark.parametrize("is_by_hand", [False, True])
def test_counts_do_not_hold_once_a_fault_was_injected_by_hand(made, is_by_hand):
    too_few(made)
    if is_by_hand:
        by_hand(made)
    _, judged, *_ = made.finish()
    assert judged["verdict"] == ("pass" if is_by_hand else "fail")
    assert bool(judged["expectations_unmet"]) is not is_by_hand
    assert judged["headline"][-1].startswith(LINE) is is_by_hand
    assert [fault["by_hand"] for fault in judged["faults"]].count(True) == is_by_hand


def test_an_answer_that_nothing_explains_is_a_fail_by_hand_as_well(made):
    by_hand(made)
    wrong_answer(made)
    _, judged, *_ = made.finish()
    assert judged["verdict"] == "fail"


def test_owners_are_expected_in_the_end_by_hand_as_well(made):
    by_hand(made)
    made.assigned.clear()
    made.owners = "  - {group: static, unowned: 0}\n"
    _, judged, *_ = made.finish()
    assert [one["what"] for one in judged["expectations_unmet"]] == ["partitions without owner"]


def test_it_needs_a_witness_and_healing_as_any_other(made):
    by_hand(made)
    for entry in made.journal:
        if entry.get("fault_id") == "h1" and entry["event"] == "verified":
            entry["verified"] = False
    _, judged, *_ = made.finish()
    assert judged["verdict"] == "unknown"
    assert "was not verified" in judged["unknown_because"][0]


def test_the_report_shows_it_and_the_command_repeats_it(made):
    by_hand(made)
    made.folder.mkdir()
    (made.folder / PLAN_BY_HAND).write_text(json.dumps({}))
    finished = made.finish()
    run, judged, *_ = finished
    assert judged["repeat_command"].endswith(f" --plan {run.place}/{PLAN_BY_HAND}")
    page = report.render(*finished)
    assert page.count("<small>by hand</small>") == 1
    assert f"<p>{LINE}" in page
