"""Runs that were a false `fail` once: brokers were stopped, or slow, and no fault had done it.

Recorded with `play`, packed by `groupquake.selftest.mutants.evidence.keep`:

timed-out-writes   a broker stopped for 5.2 to 7 s, so that commits (and a group record, 4.3.0)
                   were not confirmed in time; runs of before the machine was sampled
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from groupquake.selftest.mutants.evidence import Runs, runs_in
from tests.groupquake.starved.judging import Outcome, outcomes

HERE = Path(__file__).parent / "recorded"


@pytest.fixture(scope="module")
def timed_out_writes() -> Iterator[Runs]:
    with runs_in(HERE / "timed-out-writes") as runs:
        yield runs


def test_timed_out_writes_are_explained_without_a_fault(timed_out_writes: Runs) -> None:
    runs = timed_out_writes["leader-restart"]
    versions = {run.environment["kafka_version"] for run in runs}
    assert versions == {"2.6.0", "3.9.1", "4.3.0"}
    for run in runs:
        assert outcomes(run.folder) == {"static": Outcome.EXPLAINED}
