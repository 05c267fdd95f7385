"""More failed writes than outages explain are a doubt."""

from pathlib import Path

import pytest

from reports.judgement import failed_writes
from tests.reports.page_run import made_up


@pytest.mark.parametrize(("failed", "doubts"), [(0, 0), (72, 0), (73, 1)])
def test_unusually_many_are_a_doubt(tmp_path: Path, failed: int, doubts: int) -> None:
    """Eight members, no broker was down: each has time for 30 s x 1.5 / 5 s = 9 of them."""
    made = made_up(tmp_path / "run")
    run, *_ = made.finish()
    members = sum(member.group == "static" for member in run.experiment.members())
    assert (members, len(run.outages)) == (8, 0)
    found = failed_writes.doubts(run, {"static": {"failed_write": failed}})
    assert len(found) == doubts
