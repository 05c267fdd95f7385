"""A recording and its copy have no findings; mutants: `tests/reports/test_lies.py`."""

import pytest

from reference_coordinator.classic.step import step
from selftest.mutants import judging
from tests.recorded.logs import RECORDINGS


@pytest.mark.parametrize("recording", RECORDINGS)
def test_nothing_is_found_of_a_recording(recording: str) -> None:
    unaltered = RECORDINGS[recording]
    for group in ("failover", "static"):
        assert judging.found(unaltered, group) == []
        assert judging.found(judging.synthesized_run_of(step, unaltered, group), group) == []
