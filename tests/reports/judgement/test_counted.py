"""A run whose count is not met for what its plan did: it fails, whatever its brokers did before.

`session-too-short`: three static members, each restarted for 10 s, with a session of 6 s; on 3.9.1.
The length of one safepoint of broker 1, 9 s before the phase that is counted, was set to 327 ms by
hand, as such pauses come by themselves in one run of two.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from reports.judgement.run.run_folder import MACHINE
from selftest.mutants.evidence import runs_in
from tests.reports.judged_here import judged_here

RUNS = Path(__file__).parents[2] / "recorded" / "counts"


@pytest.fixture
def folder() -> Iterator[Path]:
    with runs_in(RUNS) as runs:
        (run,) = runs["session-too-short"]
        yield run.folder


def test_what_the_plan_cost_is_a_fact(folder):
    verdict = judged_here(folder)
    assert verdict["verdict"] == "fail"
    (unmet,) = verdict["expectations_unmet"]
    assert (unmet["expected"], unmet["observed"]) == ("0", 6)
    assert unmet["because"] == (
        "6 rebalances, each due: a member was away 10 s with a session of 6 s"
    )
    assert verdict["unknown_because"] == []
    assert "notes" not in verdict
    paused = [one for one in verdict["disturbances"] if "327 ms" in one["because"]]
    assert [(one["source"], one["broker"], one["explains"]) for one in paused] == [
        ("standstill", "1", 0)
    ]


@pytest.mark.parametrize("down_for_ms", [10_000, 5_000])
def test_it_is_one_if_the_plan_had_the_members_away_so_long(folder, down_for_ms):
    """The machine was busy: members that were to be back in time may have been late."""
    journal = folder / "journal.jsonl"
    journal.write_text(
        journal.read_text().replace('"down_for_ms": 10000', f'"down_for_ms": {down_for_ms}')
    )
    samples = [json.loads(line) for line in (folder / MACHINE).read_text().splitlines()]
    busy = [one | {"cpu_waiting": 0.95} for one in samples if one["event"] == "sample"]
    (folder / MACHINE).write_text("".join(json.dumps(one) + "\n" for one in busy))
    verdict = judged_here(folder)
    is_fact = down_for_ms == 10_000
    assert verdict["verdict"] == ("fail" if is_fact else "unknown")
    if not is_fact:
        (because,) = [one for one in verdict["unknown_because"] if "checkout is not met" in one]
        assert "something waited for a CPU in 95% of the time" in because
