"""The likeliest order of events, straight on: without a way back, and so without copies.

Nearly all of a file is explained by it. Where it is not, `search` finds out what is.
"""

from collections.abc import Sequence
from itertools import accumulate

from reference_coordinator.effects import Answer, Effect
from reference_coordinator.events import Timer
from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.evidence import LEAVE_NO_TRACE, Observed
from reference_coordinator.replay.hints import Hints
from reference_coordinator.replay.options import (
    blocked,
    internal,
    likely_ms,
    options_of,
)
from reference_coordinator.replay.wire import answer_of, event_of
from reference_coordinator.replay.world import NO_CHOICES, World


def went_straight_on(world: World, part: Sequence[Candidate], until_ms: float | None) -> bool:
    """Take a stretch of right requests that leave no trace, if nothing else could happen meanwhile.

    Not needed for the result, which `search` finds as well: most of a long file is this. If it is
    not so, nothing has happened.
    """
    if until_ms is None or world.writes or world.lost:
        return False
    for candidate in part:
        seen = candidate.cause
        if not isinstance(seen, Observed) or seen.response is None:
            return False
        if seen.api not in LEAVE_NO_TRACE:
            return False
        if world.parked and world.answered_before(candidate.earliest_ms, seen.connection):
            return False
        until_ms = max(until_ms, candidate.latest_ms)
    if world.may_run_out(until_ms):
        return False
    at_ms, decided = world.now_ms, []
    for candidate in part:
        at_ms = max(at_ms, candidate.at_ms)
        effects = _without_trace(world, candidate, at_ms)
        if not effects:
            return False
        decided.append((candidate, at_ms, effects))
    for candidate, world.now_ms, effects in decided:
        world.earliest_ms = max(world.earliest_ms, candidate.earliest_ms)
        world.latest_ms = candidate.latest_ms
        for effect in effects:
            if isinstance(effect, Answer):
                world.yields.answered.append(effect.request)
            else:
                world.absorb(effect, candidate)
    return True


def _without_trace(world: World, candidate: Candidate, at_ms: float) -> Sequence[Effect]:
    """Return the effects of a request that is answered rightly and leaves the group as it is."""
    seen = candidate.cause
    assert isinstance(seen, Observed)
    group, effects = world.step(world.group, event_of(seen, at_ms, NO_CHOICES), world.profile)
    answer = effects[-1]
    right = isinstance(answer, Answer) and answer.response == answer_of(seen)
    in_time = seen.answered_ms <= candidate.latest_ms + world.tolerance.reply
    return effects if right and in_time and group is world.group else ()


def in_order(
    world: World, stretch: Sequence[Candidate], until_ms: float, hints: Hints
) -> tuple[World | None, int]:
    """Return the world that the likeliest order leads to, and how many steps that took.

    None if it does not explain all; else it is the first that a search would find, too.
    """
    world, queue = world.fork(), Queue(stretch)
    for steps in range(1, len(stretch) + world.tolerance.search + 1):
        option, cutoff = _likeliest(world, queue, until_ms, hints)
        if option is None or blocked(world, option, "") or world.take(option, cutoff):
            break
        if option.cause is None and not queue.left:
            return world, steps
        queue.remove(option)
    return None, 0


class Queue:
    """What is left of a stretch, the likeliest last; and by when the next must have come."""

    def __init__(self, stretch: Sequence[Candidate]) -> None:
        """Put a stretch in order."""
        self.left = sorted(stretch, key=lambda c: (c.at_ms, c.earliest_ms))[::-1]
        self._find_limits()

    def _find_limits(self) -> None:
        self._limits = list(accumulate((c.latest_ms for c in self.left), min))

    @property
    def latest_ms(self) -> float:
        """By when one of those that are left must have come."""
        return self._limits[-1]

    def remove(self, candidate: Candidate) -> None:
        """Take out what has come, if it is of the stretch."""
        if self.left and self.left[-1] is candidate:
            del self.left[-1], self._limits[-1]
        elif not isinstance(candidate.cause, Timer | str):
            self.left = [other for other in self.left if other.cause is not candidate.cause]
            self._find_limits()


def _likeliest(
    world: World, queue: Queue, until_ms: float, hints: Hints
) -> tuple[Candidate | None, float]:
    """Return what is likeliest to happen next, and by when something must have.

    Most often that is the next request, or what is due before. Where it may be another one, all
    that is open is weighed.
    """
    first = queue.left[-1] if queue.left else None
    if first is not None and _comes_first(world, first):
        cutoff = queue.latest_ms
        due = internal(world, cutoff, hints)
        if not due:
            return first, cutoff
        cutoff = min(cutoff, *(candidate.latest_ms for candidate in due))
        if first.earliest_ms <= cutoff:
            likely = [first, *(candidate for candidate in due if candidate.earliest_ms <= cutoff)]
            return min(likely, key=lambda candidate: likely_ms(world, candidate)), cutoff
    by_time = sorted(queue.left, key=lambda candidate: (candidate.earliest_ms, candidate.at_ms))
    options, cutoff = options_of(world, by_time, until_ms, hints)
    return next(options, None), cutoff


def _comes_first(world: World, candidate: Candidate) -> bool:
    """Tell whether no other request can be likelier than the one that is likeliest by its time."""
    seen = candidate.cause
    return (
        isinstance(seen, Observed)
        and seen.response is not None
        and len(world.group.members) > 0
        and not world.answered_before(candidate.earliest_ms, seen.connection)
    )
