"""Judging without Spark gives the same findings as with it: see `tests/reports/test_lies.py`."""

import pytest

from reference_coordinator.classic.step import step
from selftest.broken_rules import MUTANTS
from selftest.mutants import judging
from tests.recorded.logs import RECORDINGS
from tests.reports.test_lies import LIES


def test_a_mutant_has_the_root_that_the_pipeline_finds() -> None:
    recording, other = RECORDINGS["kafka-4.3.0"], {}
    for name, (group, places) in LIES.items():
        synthesized = judging.synthesized_run_of(MUTANTS[name], recording, group)
        roots = judging.proven(judging.found(synthesized, group))
        first = min(roots, key=lambda root: root.at_ms)
        if first.kind not in places:
            other[name] = first.kind
    assert other == {}


@pytest.mark.parametrize("recording", RECORDINGS)
def test_nothing_is_found_of_a_recording(recording: str) -> None:
    unaltered = RECORDINGS[recording]
    for group in ("failover", "static"):
        assert judging.found(unaltered, group) == []
        assert judging.found(judging.synthesized_run_of(step, unaltered, group), group) == []
