"""What a run is worth that somebody stopped before its time was over."""

import pytest

from tests.reports.page_run import made_up

WHY = "the run was stopped before its time was over"


@pytest.fixture
def made(tmp_path):
    """A run as it has to be, stopped at the end of its last fault."""
    made = made_up(tmp_path / "run")
    at = next(i for i, entry in enumerate(made.journal) if entry.get("phase") == "recovery")
    made.journal[at] = {"at_ms": made.recovery_ms, "event": "stopped"}
    return made


def judged(made):
    _, verdict, *_ = made.finish()
    return verdict


def test_a_stopped_run_with_all_faults_done_is_complete(made):
    verdict = judged(made)
    assert (verdict["verdict"], verdict["unknown_because"]) == ("pass", [])


def test_too_few_rebalances_prove_nothing_if_more_might_have_come(made):
    del made.comparison[6:]
    verdict = judged(made)
    assert (verdict["verdict"], verdict["unknown_because"]) == ("unknown", [WHY])
    stop = next(entry for entry in made.journal if entry["event"] == "stopped")
    stop.update(event="phase", phase="recovery")
    assert judged(made)["verdict"] == "fail"


def test_a_fault_that_was_cut_short_leaves_it_open(made):
    last = next(entry for entry in reversed(made.journal) if entry["event"] == "verified")
    last.update(verified=False, witness="was not waited for")
    verdict = judged(made)
    assert verdict["verdict"] == "unknown"
    assert verdict["unknown_because"][0] == WHY
    assert "was not waited for" in verdict["unknown_because"][1]


def test_a_broken_protocol_is_broken_all_the_same(made):
    made.add_violation("2:777", made.recovery_ms - 1_000, "dynamic", "dynamic-dynamic-1")
    assert judged(made)["verdict"] == "fail"
