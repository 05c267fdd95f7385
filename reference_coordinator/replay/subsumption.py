"""Subsumption: of hypotheses that differ only in when things happened, one is enough.

A hypothesis whose windows contain those of another allows all that the other does, so the other
need not be followed. Where neither contains the other, the windows of one are widened to contain
both.
"""

from reference_coordinator.replay.hypothesis import Hypothesis


def same_state(one: Hypothesis, other: Hypothesis) -> bool:
    """Tell whether two hypotheses differ only in times, and in requests without a response."""
    if one.group.state is not other.group.state:
        return False
    return (
        one.timers.running.keys() == other.timers.running.keys()
        and one.pending_requests.keys() == other.pending_requests.keys()
        and one.writes.keys() == other.writes.keys()
        and one.unnamed.names == other.unnamed.names
        and one.excused == other.excused
        and one.group == other.group
    )


def covers(hypothesis: Hypothesis, other: Hypothesis) -> bool:
    """Tell whether a hypothesis's windows contain those of another with the same state."""
    return hypothesis.clock.covers(other.clock) and hypothesis.timers.covers(other.timers)


def widen(hypothesis: Hypothesis, other: Hypothesis, *, without_end: bool = False) -> None:
    """Let a hypothesis's windows contain those of another with the same state.

    Timers' windows that grow have no end then, if they are to be `without_end`.
    """
    hypothesis.timers.widen(other.timers, without_end=without_end)
    hypothesis.clock.widen(other.clock)
