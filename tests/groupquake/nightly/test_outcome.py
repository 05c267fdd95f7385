"""What a night makes of the verdict of a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from groupquake.nightly.outcome import judged

FAIL = {"verdict": "fail", "because": "p", "group": "g"}
PASS = {"verdict": "pass", "because": None, "group": None}


@pytest.mark.parametrize(
    ("code", "verdict", "expected", "came_true", "outcome", "why"),
    [
        (0, "pass", None, False, "pass", None),
        (1, "fail", FAIL, True, "pass", "fail, as expected"),
        (1, "fail", FAIL, False, "fail", "fail, though fail because of p in g was expected"),
        (0, "pass", FAIL, False, "fail", "pass, though fail because of p in g was expected"),
        (1, "fail", PASS, False, "fail", "fail, though pass was expected"),
        (2, "unknown", PASS, False, "unknown", "unknown, though pass was expected"),
    ],
)
def test_a_run_passes_with_the_verdict_that_its_experiment_expects(
    code: int,
    verdict: str,
    expected: dict[str, Any] | None,
    came_true: bool,
    outcome: str,
    why: str | None,
    tmp_path: Path,
) -> None:
    verdict_file = {
        "verdict": verdict,
        "foretold": expected and expected | {"came_true": came_true},
        "findings": [],
        "expectations_unmet": [],
        "unknown_because": [],
        "groups": {},
    }
    (tmp_path / "verdict.json").write_text(json.dumps(verdict_file))
    run = judged(code, 1.0, tmp_path, tmp_path / "output.txt")
    assert (run.verdict, run.why) == (outcome, why)
