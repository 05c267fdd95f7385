"""Judging without Spark gives the same findings as with it: see `tests/reports/test_lies.py`."""

import pytest

from reference_coordinator.classic.step import step
from selftest.broken_rules import MUTANTS
from selftest.mutants import judging
from tests.recorded.logs import RECORDINGS
from tests.reports.test_lies import LIES


@pytest.mark.parametrize("lie", LIES)
def test_a_mutant_has_the_root_that_the_pipeline_finds(lie: str) -> None:
    group, places = LIES[lie]
    synthesized = judging.synthesized_run_of(MUTANTS[lie], RECORDINGS["kafka-4.3.0"], group)
    first, *_ = sorted(
        judging.proven(judging.found(synthesized, group)), key=lambda root: root.at_ms
    )
    assert first.kind in places


@pytest.mark.parametrize("recording", RECORDINGS)
@pytest.mark.parametrize("group", ["failover", "static"])
def test_nothing_is_found_of_a_recording(recording: str, group: str) -> None:
    unaltered = RECORDINGS[recording]
    assert judging.found(unaltered, group) == []
    assert judging.found(judging.synthesized_run_of(step, unaltered, group), group) == []
