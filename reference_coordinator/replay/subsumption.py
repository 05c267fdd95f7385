"""Worlds that differ in nothing but when things happened: one of them is enough.

The one that is kept may then be all that the other may be: its windows are widened to hold both.
"""

from reference_coordinator.replay.candidates import Due
from reference_coordinator.replay.hypothesis import Hypothesis


def same_state(one: Hypothesis, other: Hypothesis) -> bool:
    """Tell whether two worlds differ in times alone, and in requests that were lost."""
    return (
        one.timers.keys() == other.timers.keys()
        and one.pending_requests.keys() == other.pending_requests.keys()
        and one.writes.keys() == other.writes.keys()
        and one.names == other.names
        and one.excused == other.excused
        and one.group == other.group
    )


def covers(hypothesis: Hypothesis, other: Hypothesis) -> bool:
    """Tell whether the windows of one world hold those of another that is like it."""
    return (
        (hypothesis.relaxed or hypothesis.earliest_ms <= other.earliest_ms)
        and other.overtaken.keys() <= hypothesis.overtaken.keys()
        and all(_within(due, hypothesis.timers[timer]) for timer, due in other.timers.items())
        and all(_within(due, hypothesis.overtaken[timer]) for timer, due in other.overtaken.items())
    )


def _within(inner: Due, outer: Due) -> bool:
    return outer.earliest_ms <= inner.earliest_ms and outer.latest_ms >= inner.latest_ms


def widen(hypothesis: Hypothesis, other: Hypothesis, *, at_will: bool = False) -> None:
    """Let the windows of a world hold those of another that is like it; at will, for good."""
    for timer, due in hypothesis.timers.items():
        also = other.timers[timer]
        latest_ms = max(due.latest_ms, also.latest_ms)
        if at_will and latest_ms > also.latest_ms:
            latest_ms = float("inf")
        earliest_ms = min(due.earliest_ms, also.earliest_ms)
        hypothesis.timers[timer] = due._replace(earliest_ms=earliest_ms, latest_ms=latest_ms)
    for timer, due in other.overtaken.items():
        also = hypothesis.overtaken.get(timer, due)
        both = due._replace(
            earliest_ms=min(due.earliest_ms, also.earliest_ms),
            latest_ms=max(due.latest_ms, also.latest_ms),
        )
        hypothesis.overtaken = {**hypothesis.overtaken, timer: both}
    hypothesis.next_timer_ms = min(hypothesis.next_timer_ms, other.next_timer_ms)
    hypothesis.earliest_ms = min(hypothesis.earliest_ms, other.earliest_ms)
