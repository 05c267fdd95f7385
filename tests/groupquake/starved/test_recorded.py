"""Runs that were a false `fail` once: brokers were stopped, or slow, and no fault had done it.

Recorded with `play`, packed by `tests.recorded.keep.keep_runs`:

timed-out-writes   a broker stopped for 5.2 to 7 s, so that commits (and a group record, 4.3.0)
                   were not confirmed in time; runs of before the machine was sampled
late-timers        `session-expiry --stop-at 16.8 2.9`: all brokers stopped when a session was due
                   to end, which it did 1.7 s late
stopped-brokers    `protocol-corners leader-restart --stops --seed 11`: each broker stopped again
                   and again for 0.3 to 3 s; sessions ended late, JoinGroups were acted on late
"""

import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import pytest

from reports.judgement.findings import proven_roots
from reports.judgement.recording import Recording
from reports.judgement.run.machine_log import stood_still
from reports.judgement.run.run_folder import MACHINE
from selftest.mutants import judging
from selftest.mutants.evidence import Runs, runs_in

HERE = Path(__file__).parent / "recorded"


class Outcome(StrEnum):
    """What is found about a group."""

    EXPLAINED = "explained"
    UNKNOWN = "unknown"
    WRONG = "wrong"


def outcomes(folder: Path) -> dict[str, Outcome]:
    """Return what is found about each group of a run folder, as a report does without Spark."""
    recording = Recording(folder)
    outcomes = {}
    for group in recording.groups:
        findings = judging.found(recording, group)
        left = Outcome.UNKNOWN if findings else Outcome.EXPLAINED
        outcomes[group] = Outcome.WRONG if proven_roots(findings) else left
    return outcomes


@pytest.fixture(scope="module")
def timed_out_writes() -> Iterator[Runs]:
    with runs_in(HERE / "timed-out-writes") as runs:
        yield runs


@pytest.fixture
def late_timer() -> Iterator[Path]:
    with runs_in(HERE / "late-timers") as runs:
        (run,) = runs["session-expiry"]
        yield run.folder


def test_a_session_that_ends_late_on_a_stopped_broker_is_in_order(late_timer: Path) -> None:
    assert outcomes(late_timer) == {"static": Outcome.EXPLAINED}
    stopped = [one for one in Recording(late_timer).context.standstills if "stopped" in one.cause]
    assert [one.broker for one in stopped] == ["1", "2", "3"]
    assert all(2_900 < one.until_ms - one.from_ms < 3_100 for one in stopped)


def without_samples(folder: Path) -> None:
    """Lose the samples of a machine of which the run says that it has some."""
    (folder / MACHINE).unlink()
    environment = folder / "environment.json"
    sampled = {**json.loads(environment.read_text()), "machine_samples": True}
    environment.write_text(json.dumps(sampled))


def test_it_is_unknown_where_the_samples_are_gone(late_timer: Path) -> None:
    without_samples(late_timer)
    assert outcomes(late_timer) == {"static": Outcome.UNKNOWN}
    (cause,) = {one.may_be for one in judging.found(Recording(late_timer), "static") if one.may_be}
    assert cause.cause == "nothing tells how busy the machine was"


def test_it_is_wrong_where_nothing_else_is_known(late_timer: Path) -> None:
    """Runs of before the machine was sampled do not say that they have samples."""
    (late_timer / MACHINE).unlink()
    assert outcomes(late_timer) == {"static": Outcome.WRONG}


def test_a_broker_that_writes_lines_does_not_stand_still(late_timer: Path) -> None:
    """Whatever the sampler says: other groups of the same broker had their requests answered."""
    recording = Recording(late_timer)
    stopped = [one for one in recording.context.standstills if "stopped" in one.cause]
    worked = {
        one.broker: [float(at_ms) for at_ms in range(round(one.from_ms), round(one.until_ms), 50)]
        for one in stopped
    }
    assert stopped
    assert stood_still([], stopped, worked) == ((), ())


@pytest.fixture
def stopped_brokers() -> Iterator[Runs]:
    with runs_in(HERE / "stopped-brokers") as runs:
        yield runs


@pytest.mark.parametrize(
    ("experiment", "late"),
    [
        ("protocol-corners", {"fencing", "removal", "sessions", "static"}),
        ("leader-restart", {"static"}),
    ],
)
def test_brokers_that_are_stopped_now_and_then(
    experiment: str, late: set[str], stopped_brokers: Runs
) -> None:
    """The samples explain every group; without them those that were late are unknown.

    So is `static` of `protocol-corners`: its initial delay of twice 500 ms ends after 2,668 ms, as
    its broker was stopped for 1,678 ms. All parts of a delay may be late by 1 s together.
    """
    (run,) = stopped_brokers[experiment]
    assert set(outcomes(run.folder).values()) == {Outcome.EXPLAINED}
    without_samples(run.folder)
    unsampled = outcomes(run.folder)
    assert Outcome.WRONG not in unsampled.values()
    assert {g for g, outcome in unsampled.items() if outcome is Outcome.UNKNOWN} == late


def test_timed_out_writes_are_explained_without_a_fault(timed_out_writes: Runs) -> None:
    runs = timed_out_writes["leader-restart"]
    versions = {run.environment["kafka_version"] for run in runs}
    assert versions == {"2.6.0", "3.9.1", "4.3.0"}
    for run in runs:
        assert outcomes(run.folder) == {"static": Outcome.EXPLAINED}
