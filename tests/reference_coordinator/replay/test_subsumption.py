"""Hypotheses that differ only in when things happened."""

from dataclasses import replace

from reference_coordinator.classic.events import Timer, TimerKind
from reference_coordinator.replay.candidates import Due
from reference_coordinator.replay.search import covers, same_state, widen
from tests.reference_coordinator.replay.test_hypothesis import fresh, stable, take

TIMER = Timer(TimerKind.SESSION, "a")


def test_times_do_not_distinguish_states() -> None:
    one, other = fresh(), fresh()
    other.clock.now_ms = 5
    assert same_state(one, other)


def test_a_group_or_a_timer_makes_another_state() -> None:
    one, other, timed = fresh(), fresh(), fresh()
    take(other, stable(), 1)
    timed.timers.running[TIMER] = Due(1, 2, 3)
    assert not same_state(one, other)
    assert not same_state(one, timed)


def test_wider_windows_cover_narrower_ones() -> None:
    wide, narrow = fresh(), fresh()
    wide.timers.running[TIMER], narrow.timers.running[TIMER] = Due(1, 2, 9), Due(1, 2, 3)
    assert covers(wide, narrow)
    assert not covers(narrow, wide)
    widen(narrow, wide)
    assert covers(narrow, wide)


def test_a_window_that_begins_later_does_not_cover() -> None:
    one, other = fresh(), fresh()
    one.clock.earliest_ms = 5
    assert not covers(one, other)
    assert covers(other, one)
    relaxed = replace(one, clock=replace(one.clock, relaxed=True))
    assert covers(relaxed, other)
