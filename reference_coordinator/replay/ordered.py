"""The likeliest order of events, straight on: without a way back, and so without copies.

Nearly all of a file is explained by it. Where it is not, `search` finds out what is.
"""

from collections.abc import Sequence

from reference_coordinator.effects import Answer, Effect
from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.evidence import LEAVE_NO_TRACE, Observed
from reference_coordinator.replay.hints import Hints
from reference_coordinator.replay.options import blocked, options_of
from reference_coordinator.replay.wire import answer_of, event_of
from reference_coordinator.replay.world import NO_CHOICES, World
from reference_coordinator.step import step


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
    group, effects = step(world.group, event_of(seen, at_ms, NO_CHOICES), world.profile)
    answer = effects[-1]
    right = isinstance(answer, Answer) and answer.response == answer_of(seen)
    in_time = seen.answered_ms <= candidate.latest_ms + world.tolerance.reply
    return effects if right and in_time and group is world.group else ()


def in_order(
    world: World, stretch: Sequence[Candidate], until_ms: float, hints: Hints
) -> tuple[World | None, int]:
    """Return the world that the likeliest order leads to, and how many steps that took.

    None if it does not explain all; else it is the first that a search would find, too. `stretch`
    is in order of its earliest times.
    """
    world = world.fork()
    left = tuple(stretch)
    for steps in range(1, len(stretch) + world.tolerance.search + 1):
        options, cutoff = options_of(world, left, until_ms, hints)
        option = next(options, None)
        if option is None or blocked(world, option, "") or world.take(option, cutoff):
            break
        if option.cause is None and not left:
            return world, steps
        left = tuple(candidate for candidate in left if candidate.cause is not option.cause)
    return None, 0
