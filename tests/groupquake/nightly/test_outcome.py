"""What a night makes of the verdict of a run."""

import json
from pathlib import Path

import pytest

from groupquake.nightly.outcome import judged


@pytest.mark.parametrize(
    ("code", "verdict", "foretold", "outcome", "why"),
    [
        (0, "pass", None, "pass", None),
        (1, "fail", "fail", "pass", "fail, as was foretold"),
        (0, "pass", "fail", "fail", "pass, though fail was foretold"),
        (1, "fail", "pass", "fail", "fail, though pass was foretold"),
        (2, "unknown", "fail", "unknown", "unknown, though fail was foretold"),
    ],
)
def test_a_run_passes_with_the_verdict_that_its_experiment_foretells(
    code: int, verdict: str, foretold: str | None, outcome: str, why: str | None, tmp_path: Path
) -> None:
    told = {
        "verdict": verdict,
        "foretold": foretold,
        "findings": [],
        "expectations_unmet": [],
        "unknown_because": [],
        "groups": {},
    }
    (tmp_path / "verdict.json").write_text(json.dumps(told))
    run = judged(code, 1.0, tmp_path, tmp_path / "output.txt")
    assert (run.verdict, run.why) == (outcome, why)
