"""What a run came to is held against its forecast, and the rest is named."""

from pathlib import Path
from typing import Any

import pytest

from groupquake.simulate import surprises
from tests.groupquake.simulate.test_forecast import bounce, experiment, foreseen


def verdict(**impact: int) -> dict[str, Any]:
    """Return of a verdict what counts here, with other rebalances in the impact phase."""
    counts = {"formation": {"new_member": 1}, "impact": impact}
    return {"groups": {"shop": {"by_cause": counts}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a run folder with a forecast."""
    surprises.write(foreseen(experiment(bounce(down_for="10s"))), tmp_path)
    return tmp_path


def test_what_was_foreseen_is_no_surprise(folder: Path) -> None:
    """Each number lies in its interval."""
    assert surprises.of_run(folder, verdict(session_expired=3, new_member=3)) == []


def test_one_more_and_one_less_are_named(folder: Path) -> None:
    """By reason; their sum is as foreseen."""
    assert surprises.of_run(folder, verdict(session_expired=2, new_member=4)) == [
        "shop, impact, new_member: 4 rebalances, 3 foreseen",
        "shop, impact, session_expired: 2 rebalances, 3 foreseen",
    ]


def test_a_reason_that_nobody_foresaw_is_named(folder: Path) -> None:
    """And so is the number in all."""
    found = surprises.of_run(folder, verdict(session_expired=3, new_member=3, pending_sync=1))
    assert found == [
        "shop, impact, total: 7 rebalances, 6 foreseen",
        "shop, impact, pending_sync: 1 rebalances, 0 foreseen",
    ]


def test_a_run_without_a_forecast_has_no_surprises(tmp_path: Path) -> None:
    """As those of earlier versions."""
    assert surprises.of_run(tmp_path, verdict(leave=9)) == []
