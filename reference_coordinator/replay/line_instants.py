"""Coordinator lines bind order: what prints a line happens at the instant of that line.

A step prints in the thread that takes it, under the group's lock. So a line's instant is that of
its step but for a few milliseconds (`Tolerance.line`) and what stalls add between the two. An order
of events has to leave each step the instant of a line that it prints, and what waits for the step
is answered after its first line, but for SyncGroups: a step answers them just before it prints that
it prepares the next rebalance (`prepareRebalance`, in Scala and Java). A step of a rebalance whose
line is nowhere is no step of such an order, if the coordinator writes these lines at all: answers
may leave open whether it was taken. Where no order keeps to the lines, they may stray: a step that
has all of its lines outside of its own window is not bound. Where that leaves no order, either, a
step may lack its line. The comparison calls such lines early, late or missing. A step may take long
(`STEP_LASTS_MS`) from its first line to its last.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum

from reference_coordinator.classic.effects import REJOINS, AssignmentReceived, Effect, Transition
from reference_coordinator.classic.state import State
from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.clock import Clock
from reference_coordinator.replay.conditions import Conditions
from reference_coordinator.replay.evidence import HintKind
from reference_coordinator.replay.expected_lines import DueLine
from reference_coordinator.replay.hints import Key
from reference_coordinator.timing import SEEMS_AFTER_LINE_MS, STEP_LASTS_MS

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


class LinesMay(IntEnum):
    """How far the steps of an order may depart from lines: see the module."""

    BIND = 0
    STRAY = 1
    LACK = 2


def printed(lines: Iterable[DueLine], effects: Iterable[Effect]) -> Iterator[Key]:
    """Yield what the lines of a step speak of, as far as hints do."""
    for line, subject, _ in lines:
        if line in OF_MEMBERS:
            yield OF_MEMBERS[line], subject
    for effect in effects:
        if isinstance(effect, Transition) and effect.after in OF_GROUP:
            yield OF_GROUP[effect.after], effect.generation
            if effect.reason in REJOINS:
                yield HintKind.REJOINED, effect.member_id
        elif isinstance(effect, AssignmentReceived):
            yield HintKind.ASSIGNED, effect.generation


def keep_to_lines(
    clock: Clock,
    keys: Iterable[Key],
    cause: Candidate,
    until_ms: float,
    conditions: Conditions,
    lines_may: LinesMay,
) -> float:
    """Narrow the window of a step to the instants of its lines; inf if it is at none of them.

    The step happens by `until_ms`. It lasts from its first line to its last. Returns its earliest
    instant by its lines, in ms; -inf if it has none.
    """
    hints, keys = conditions.hints, tuple(keys)
    if not keys or not hints.by_key:
        return float("-inf")
    slack_ms, lateness = conditions.tolerance.line, conditions.lateness
    from_ms, by_ms = clock.earliest_ms - SEEMS_AFTER_LINE_MS, min(until_ms, clock.latest_ms)
    cause_ms = cause.earliest_ms, cause.latest_ms
    first_ms, last_ms = float("inf"), float("-inf")
    found = [_near(hints.by_key.get(key, ()), from_ms, by_ms, conditions) for key in keys]
    begins_ms = min((open_ms[0] for open_ms in found if open_ms), default=float("inf"))
    for key, open_ms in zip(keys, found, strict=True):
        times = hints.by_key.get(key, ())
        excused_by = LinesMay.STRAY if times else LinesMay.LACK
        if open_ms:
            first_ms = min(first_ms, lateness.earliest(open_ms[0], slack_ms))
            last_ms = max(last_ms, lateness.latest(open_ms[-1], slack_ms))
        elif any(begins_ms <= at_ms <= begins_ms + STEP_LASTS_MS for at_ms in times):
            continue  # the step has begun by then, and its thread stood still between two lines
        elif lines_may >= excused_by and not _near(times, *cause_ms, conditions):
            continue
        elif times or key[0] in hints.of_rebalances:
            return float("inf")
    clock.within(first_ms, last_ms)
    return first_ms if last_ms >= first_ms else float("-inf")


def _near(
    times: Sequence[float], from_ms: float, by_ms: float, conditions: Conditions
) -> Sequence[float]:
    """Return those of some lines, in order, whose step may lie in a window."""
    slack_ms, lateness = conditions.tolerance.line, conditions.lateness
    first = bisect_left(times, from_ms, key=lambda at_ms: lateness.latest(at_ms, slack_ms))
    end = bisect_right(times, by_ms, key=lambda at_ms: lateness.earliest(at_ms, slack_ms))
    return times[first:end]
