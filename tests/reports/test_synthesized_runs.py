"""Runs that were simulated: what is planted in them is found, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from selftest.synth.folder import make
from selftest.synth.mixes import MIXES
from selftest.synth.planting import KINDS, differences
from tests.reports.conftest import Judge
from tests.selftest.synth.specs import spec

pytestmark = pytest.mark.spark
Judged = tuple[Path, dict[str, Any], list[dict[str, Any]]]


@pytest.fixture(scope="module", params=MIXES)
def judged(
    request: pytest.FixtureRequest, judge: Judge, tmp_path_factory: pytest.TempPathFactory
) -> Judged:
    """Return a run with each kind planted twice, its verdict, and the list of what is planted."""
    folder = tmp_path_factory.mktemp("planted") / "run"
    make(spec(request.param, 90, 40, plant=2 * len(KINDS)), folder, lambda _: None)
    listed = (folder / "planted.jsonl").read_text().splitlines()
    return folder, judge(folder), [json.loads(line) for line in listed]


def test_what_is_planted_is_found_and_nothing_else(judged: Judged) -> None:
    _, verdict, planted = judged
    assert len(planted) == 2 * len(KINDS)
    assert {entry["what"] for entry in planted} >= {
        kind.what for kind in KINDS if kind.coordinator is KINDS[0].coordinator
    }
    assert differences(verdict, planted) == []
    assert verdict["verdict"] == "fail"
    assert verdict["unknown_because"] == []


def test_every_line_is_used(judged: Judged) -> None:
    folder, verdict, _ = judged
    lines = sum(log.read_bytes().count(b"\n") for log in folder.glob("brokers/*/group.log"))
    coverage = verdict["coverage"]
    assert coverage["lines_read"] == coverage["used"] == lines


def test_a_run_with_nothing_planted_passes(judge: Judge, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    make(spec("storm", 30, 32), folder, lambda _: None)
    verdict = judge(folder)
    assert verdict["findings"] == []
    assert verdict["unknown_because"] == []
    assert verdict["verdict"] == "pass"
