"""The comparison of forecasts with judged runs fails where a run lies outside."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from groupquake.exits import Exit
from selftest.foresight import foresight
from tests.groupquake.simulate.test_forecast import bounce, experiment


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run in which each of three static members is away longer than its session."""
    (tmp_path / "experiment.yaml").write_text(experiment(bounce(down_for="10s")).dump())
    counts = {
        "formation": {"new_member": 1},
        "impact": {"session_expired": 3, "new_member": 3},
    }
    verdict = {"seed": 7, "groups": {"shop": {"by_cause": counts}}}
    (tmp_path / "verdict.json").write_text(json.dumps(verdict))
    return tmp_path


def compared(run: Path) -> tuple[Exit, list[str]]:
    """Return what the command comes to, and what it prints."""
    done = CliRunner().invoke(foresight, [str(run)], standalone_mode=False)
    return done.return_value, done.output.splitlines()


def test_a_row_says_what_was_foreseen_and_seen(run: Path) -> None:
    """There are seven counts, all of them exact: the default initial delay is long enough."""
    code, lines = compared(run)
    assert code == Exit.PASS
    [row] = [line for line in lines if line.startswith("| `deploy`")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:] == ["7", "7 of 7", "100%", "100%", "shop 6 (6)"]


def test_a_count_outside_is_named_and_fails(run: Path) -> None:
    """By group, phase and reason."""
    verdict = json.loads((run / "verdict.json").read_text())
    verdict["groups"]["shop"]["by_cause"]["impact"] = {"session_expired": 2, "new_member": 4}
    (run / "verdict.json").write_text(json.dumps(verdict))
    code, lines = compared(run)
    assert code == Exit.FAIL
    assert [line.partition(": ")[2] for line in lines[-2:]] == [
        "shop, impact, new_member: 4 rebalances, 3 foreseen",
        "shop, impact, session_expired: 2 rebalances, 3 foreseen",
    ]
