"""What is bound and makes a verdict a doubt: too many failed writes, and more."""

from pathlib import Path

import pytest

from reports.judgement import doubtful, verdict
from tests.recorded.logs import RECORDINGS
from tests.reports.conftest import COORDINATORS
from tests.reports.page_run import made_up


@pytest.mark.parametrize(("failed", "doubts"), [(0, 0), (72, 0), (73, 1)])
def test_unusually_many_are_a_doubt(tmp_path: Path, failed: int, doubts: int) -> None:
    """Eight members, no broker was down: each has time for 30 s x 1.5 / 5 s = 9 of them."""
    made = made_up(tmp_path / "run")
    run, *_ = made.finish()
    members = sum(member.group == "static" for member in run.experiment.members())
    assert (members, len(run.outages)) == (8, 0)
    found = [*doubtful.failed_writes(run, {"static": {"failed_write": failed}})]
    assert len(found) == doubts


@pytest.mark.parametrize("name", COORDINATORS)
@pytest.mark.parametrize(("after_ms", "may_fail"), [(0, True), (9_900, True), (10_100, False)])
def test_writes_may_fail_until_replicas_have_caught_up(
    name: str, after_ms: int, may_fail: bool
) -> None:
    run = RECORDINGS[name].run
    ((_, _, killed_ms),) = run.killed_between
    healed_ms = max(e["at_ms"] for e in run.journal if e["event"] == "healed")
    (outage,) = run.outages
    assert killed_ms < healed_ms
    assert outage.has(healed_ms + after_ms) == may_fail
    assert not outage.has(killed_ms - 100.0)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("broker_error", "2 requests were answered with errors that are not the group's"),
        ("unlogged_return", "2 members have ids that no response gave"),
    ],
)
def test_what_is_bound_and_a_doubt(tmp_path: Path, kind: str, why: str) -> None:
    made = made_up(tmp_path / "run")
    run, _, data, *_ = made.finish()
    data.bound["static"][kind] = 2
    judged = verdict.evaluate(run, data, "4.3")
    (because,) = judged["unknown_because"]
    assert judged["verdict"] == "unknown"
    assert f"group static: {why}" in because
