"""The window in which the last event of a hypothesis happened."""

from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.clock import Clock


def at(earliest_ms: float, at_ms: float, latest_ms: float) -> Candidate:
    return Candidate(earliest_ms, at_ms, latest_ms, None)


def test_an_event_happens_no_later_than_the_limit() -> None:
    clock = Clock()
    clock.advance(at(10, 50, 90), 40)
    assert (clock.earliest_ms, clock.now_ms, clock.latest_ms) == (10, 40, 40)


def test_time_never_goes_back() -> None:
    clock = Clock(20, 60, 70)
    clock.advance(at(10, 50, 90), 100)
    assert (clock.earliest_ms, clock.now_ms, clock.latest_ms) == (20, 60, 90)


def test_a_relaxed_clock_takes_each_window_by_itself() -> None:
    clock = Clock(20, 60, 70, relaxed=True)
    clock.advance(at(10, 50, 90), 40)
    clock.happened_by(15)
    assert (clock.earliest_ms, clock.latest_ms) == (10, 90)
    assert clock.covers(Clock(5))


def test_a_response_narrows_the_window() -> None:
    clock = Clock(0, 50, 90)
    clock.happened_by(70)
    clock.happened_by(80)
    assert clock.latest_ms == 70


def test_the_fast_path_advances_as_any_other() -> None:
    one, other = Clock(20, 60, 70), Clock(20, 60, 70)
    one.advance(at(30, 65, 90), 100)
    other.advance_in_order(at(30, 65, 90))
    assert one == other


def test_a_window_covers_those_that_begin_no_earlier_and_can_be_widened() -> None:
    early, late = Clock(10), Clock(20)
    assert early.covers(late)
    assert not late.covers(early)
    late.widen(early)
    assert late.covers(early)


def test_a_fork_goes_on_by_itself() -> None:
    clock = Clock(1, 2, 3, relaxed=True)
    forked = clock.fork()
    assert forked == clock
    forked.advance(at(10, 10, 10), 10)
    assert clock.now_ms == 2
