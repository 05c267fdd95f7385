"""What may happen next, and when the next stretch begins."""

from reference_coordinator.replay.candidates import Candidate, next_if_any_ms, next_ms

STRETCHES = [
    [Candidate(0, 1, 2, None)],
    [Candidate(15, 16, 17, None), Candidate(10, 18, 20, None)],
    [Candidate(30, 31, 32, None)],
]


def test_a_stretch_begins_with_its_earliest_candidate() -> None:
    assert [next_ms(STRETCHES, index) for index in (0, 1)] == [10, 30]


def test_no_candidate_follows_the_last() -> None:
    assert next_if_any_ms(STRETCHES, 1) == 30
    assert next_if_any_ms(STRETCHES, 2) is None
