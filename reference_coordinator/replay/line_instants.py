"""Coordinator lines bind order: what prints a line happens at the instant of that line.

A step prints in the thread that takes it, under the group's lock. So a line's instant is that of
its step but for a few milliseconds (`Tolerance.line`) and what stalls add between the two. An order
of events has to leave each step the instant of a line that it prints, and what waits for the step
is answered after its first line. Where no order does, lines may stray: a step that has none of its
lines in its own window is not bound (the comparison calls such a line missing, early or late), but
one that has is. A step may take long: 524 ms were seen between two lines of a broker's first
rebalance, at a load of 40.
"""

from collections.abc import Iterable, Iterator

from reference_coordinator.classic.effects import AssignmentReceived, Effect, Transition
from reference_coordinator.classic.state import State
from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.clock import Clock
from reference_coordinator.replay.conditions import LOGGED_LATE_MS, Conditions
from reference_coordinator.replay.evidence import HintKind
from reference_coordinator.replay.expected_lines import DueLine
from reference_coordinator.replay.hints import Key

OF_MEMBERS = {
    "static_added": HintKind.JOINED,
    "dynamic_given_id": HintKind.JOINED,
    "dynamic_added": HintKind.JOINED,
    "pending_joins": HintKind.PENDING_JOINED,
    "static_replaced": HintKind.REPLACED,
    "left": HintKind.LEFT,
    "pending_left": HintKind.LEFT,
    "session_expired": HintKind.SESSION_EXPIRED,
    "pending_expired": HintKind.SESSION_EXPIRED,
}
"""The instants that lines about members mark, by their names in `expected_lines`."""
OF_GROUP = {
    State.PREPARING_REBALANCE: HintKind.PREPARING,
    State.COMPLETING_REBALANCE: HintKind.JOIN_PHASE_ENDED,
    State.EMPTY: HintKind.JOIN_PHASE_ENDED,
}
"""The instants that lines about the group mark, by the state that it enters."""


def printed(lines: Iterable[DueLine], effects: Iterable[Effect]) -> Iterator[Key]:
    """Yield what the lines of a step speak of, as far as hints do."""
    for line, subject, _ in lines:
        if line in OF_MEMBERS:
            yield OF_MEMBERS[line], subject
    for effect in effects:
        if isinstance(effect, Transition) and effect.after in OF_GROUP:
            yield OF_GROUP[effect.after], effect.generation
        elif isinstance(effect, AssignmentReceived):
            yield HintKind.ASSIGNED, effect.leader


def keep_to_lines(
    clock: Clock,
    keys: Iterable[Key],
    cause: Candidate,
    until_ms: float,
    conditions: Conditions,
    *,
    may_stray: bool,
) -> float:
    """Narrow the window of a step to the instants of its lines; inf if it is at none of them.

    The step happens by `until_ms`. It lasts from its first line to its last. Returns its earliest
    instant by its lines, in ms; -inf if it has none.
    """
    slack_ms, lateness = conditions.tolerance.line, conditions.lateness
    from_ms, by_ms = clock.earliest_ms - LOGGED_LATE_MS, min(until_ms, clock.latest_ms)
    first_ms, last_ms = float("inf"), float("-inf")
    for key in keys:
        spans = [
            (lateness.earliest(at_ms, slack_ms), lateness.latest(at_ms, slack_ms))
            for at_ms in conditions.hints.by_key.get(key, ())
        ]
        open_ms = [span for span in spans if span[0] <= by_ms and span[1] >= from_ms]
        if open_ms:
            first_ms = min(first_ms, *(begin_ms for begin_ms, _ in open_ms))
            last_ms = max(last_ms, *(end_ms for _, end_ms in open_ms))
        elif spans and not (may_stray and all(_is_outside(cause, *span) for span in spans)):
            return float("inf")
    clock.within(first_ms, last_ms)
    return first_ms if last_ms >= first_ms else float("-inf")


def _is_outside(cause: Candidate, from_ms: float, to_ms: float) -> bool:
    return from_ms > cause.latest_ms or to_ms < cause.earliest_ms
