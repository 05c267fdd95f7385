"""The comparison of forecasts with judged runs fails where a run lies outside."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from groupquake.exits import Exit
from selftest.foresight import foresight
from tests.groupquake.simulate.test_forecast import bounce, experiment


@pytest.mark.parametrize(("expired", "how"), [(3, "exact"), (2, "OUTSIDE")])
def test_a_row_says_how_a_count_lies_to_its_interval(
    tmp_path: Path, expired: int, how: str
) -> None:
    """Each of three static members is away longer than its session."""
    (tmp_path / "experiment.yaml").write_text(experiment(bounce(down_for="10s")).dump())
    counts = {
        "formation": {"new_member": 1},
        "impact": {"session_expired": expired, "new_member": 3},
    }
    verdict = {"seed": 1, "groups": {"shop": {"by_cause": counts}}}
    (tmp_path / "verdict.json").write_text(json.dumps(verdict))
    done = CliRunner().invoke(foresight, [str(tmp_path)], standalone_mode=False)
    rows = [line.split() for line in done.output.splitlines()]
    [row] = [row for row in rows if "session_expired" in row and "impact" in row]
    assert row[-1] == how
    assert done.return_value == (Exit.PASS if how == "exact" else Exit.FAIL)
