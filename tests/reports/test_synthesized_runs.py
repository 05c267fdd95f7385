"""Runs that were simulated pass, and every line of theirs is used."""

from pathlib import Path

import pytest

from selftest.synth.folder import make
from selftest.synth.spec import MIXES
from tests.reports.conftest import Judge
from tests.selftest.synth.shape import spec

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("mix", MIXES)
def test_a_simulated_run_passes(mix: str, judge: Judge, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    made = make(spec(mix, 60, 40), folder, lambda _: None)
    verdict = judge(folder)
    assert verdict["findings"] == []
    assert verdict["unknown_because"] == []
    assert verdict["verdict"] == "pass"
    lines = sum(log.read_bytes().count(b"\n") for log in folder.glob("brokers/*/group.log"))
    coverage = verdict["coverage"]
    assert coverage["lines_read"] == coverage["used"] == lines == made.lines
