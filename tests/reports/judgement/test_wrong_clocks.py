"""A broker's clock that is off by seconds: nothing is proven, and the verdict says so."""

import pytest

from reports.judgement import verdict
from reports.judgement.log.split_rows import END_MISSING, ends_of_brokers
from reports.judgement.missing.gaps import wrong_clocks
from reports.judgement.recording import Recording
from reports.judgement.results import Results


def ends(recording: Recording, shift_ms: float = 0.0) -> dict[str, float]:
    rows = recording.logs.merged.processes
    return {broker: at_ms + shift_ms for broker, at_ms in ends_of_brokers(rows, []).items()}


@pytest.mark.parametrize("off_ms", [-5_000, -1_500, 0, 500, 5_000])
def test_a_clock_that_is_off_is_a_gap_of_the_whole_log(recording, off_ms):
    found = [*wrong_clocks(ends(recording, off_ms), recording.run)]
    wrong = abs(off_ms) > 1_000
    assert [gap.broker for gap in found] == (list("123") if wrong else [])
    assert all(("behind" in gap.cause) == (off_ms < 0) for gap in found)


@pytest.mark.parametrize(("beside_ms", "wrong"), [(0, 0), (999, 0), (1_001, 2), (1_900, 2)])
def test_the_bound_is_exact(recording, beside_ms, wrong):
    began_ms, over_ms = recording.run.teardown or (0.0, 0.0)
    ended = {"1": began_ms - beside_ms, "2": over_ms + beside_ms}
    assert len([*wrong_clocks(ended, recording.run)]) == wrong


def test_nothing_is_proven_then(recording):
    row = {"requests": 1, "explained": 1, "max_rebalance_timeout_ms": 3_000.0, "brokers": ["1"]}
    nothing = Results(
        groups=dict.fromkeys(recording.run.experiment.group_names, row),
        starts=dict(recording.run.starts),
        ended_ms=ends(recording, 5_000),
    )
    judged = verdict.evaluate(recording.run, nothing, "4.3")
    assert judged["verdict"] == "unknown"  # though the experiment's counts are not met
    assert "ahead of that of the journal" in " ".join(judged["unknown_because"])


def test_a_log_whose_end_is_missing_tells_no_time():
    rows = [
        {"broker": "1", "process": 1, "last_ms": 5.0},
        {"broker": "1", "process": 2, "last_ms": 9.0},
        {"broker": "2", "process": 1, "last_ms": 7.0},
    ]
    killed = {"broker": "1", "process": 1, "what": END_MISSING}
    cut = {"broker": "2", "process": 1, "what": END_MISSING}
    assert ends_of_brokers(rows, [killed, cut]) == {"1": 9.0}
