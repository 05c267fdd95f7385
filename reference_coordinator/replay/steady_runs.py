"""Steady runs: many requests in a row that restart sessions, as heartbeats and commits do.

A run is decided as a whole. It goes on while every response is the one that a coordinator gives
which looks at an unchanged group (`reactions`), and while no timer can expire: none of those that
run at its begin, and none of those that it starts. Then only the last request counts that restarts
a timer: the windows of those before it have no effect.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import attrgetter

from reference_coordinator.classic.bodies import EXCHANGES
from reference_coordinator.classic.events import Timer
from reference_coordinator.replay.armed_timers import renamed_timer
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.replay.hypothesis import Hypothesis
from reference_coordinator.replay.reactions import Timers
from reference_coordinator.replay.stretches import Stretches

ROUNDED_MS = 1.0
"""Sums of times may be off by far less. What comes so close to a deadline is in no run."""

_ID = attrgetter("id")


def take_steady_run(hypothesis: Hypothesis, parts: Stretches, index: int, last: int) -> int:
    """Take the stretches from `index` on, before `last`, that are one steady run.

    Return the index of the first that is not. The outcome is that of `fast_path`, which takes one
    stretch after the other. No write is under way.
    """
    timers = hypothesis.timers
    if timers.overtaken or hypothesis.pending_requests:
        return index
    slack_ms = timers.early_ms + ROUNDED_MS
    end = min(last, parts.followed_before(timers.first_ms - slack_ms))
    if end <= index:
        return index
    first = parts.cuts[index]
    run = _reactions(hypothesis, parts, first, parts.cuts[end])
    end = bisect_right(parts.cuts, first + len(run)) - 1
    different = dict(zip(map(id, run), run, strict=True)).values()
    delays = (
        after_ms for restarts in different for _, after_ms in restarts if after_ms is not None
    )
    expires_ms = hypothesis.clock.earliest_ms + min(delays, default=float("inf"))
    end = max(index, min(end, parts.followed_before(expires_ms - slack_ms)))
    if end > index:
        _take(hypothesis, parts, range(first, parts.cuts[end]), run)
    return end


def _reactions(hypothesis: Hypothesis, parts: Stretches, first: int, end: int) -> list[Timers]:
    """Return the timers that each of the requests at some places restarts, up to one that differs.

    One differs if its response does, or comes too late, or if it stops a timer.
    """
    conditions, reactions = hypothesis.conditions, hypothesis.reactions
    protocol, profile = conditions.protocol, conditions.profile
    group, reply_ms = hypothesis.group, conditions.tolerance.reply
    known, causes, latest_ms = reactions.restarts_in(group), parts.causes, parts.latest_ms
    found: list[Timers] = []
    for place in range(first, end):
        seen = causes[place]
        if not isinstance(seen, ObservedRequest):
            break
        exchange_of, response = EXCHANGES.get(seen.api), seen.response
        if exchange_of is None or response is None:
            break
        if seen.answered_ms > latest_ms[place] + reply_ms:
            break
        timers = known.get(exchange_of(seen.request, response, seen.api_version))
        if timers is None:
            timers = reactions.to(group, seen, protocol, profile)
            if timers is None or any(after_ms is None for _, after_ms in timers):
                break
        found.append(timers)
    return found


def _take(hypothesis: Hypothesis, parts: Stretches, places: range, run: Sequence[Timers]) -> None:
    """Let the requests at some places happen, which restart timers alone."""
    first, clock, begun_ms = places.start, hypothesis.clock, hypothesis.clock.now_ms
    causes, at_ms, latest_ms = parts.causes, parts.at_ms, parts.latest_ms
    earliest_ms = list(
        accumulate(parts.earliest_ms[first : places.stop], max, initial=clock.earliest_ms)
    )

    def advance(place: int) -> None:
        clock.earliest_ms = earliest_ms[place - first + 1]
        clock.now_ms = max(begun_ms, at_ms[place])
        clock.latest_ms = latest_ms[place]

    for timer, (place, after_ms) in _last_restarts(run, places, hypothesis.unnamed.names).items():
        advance(place)
        hypothesis.arm(timer, clock.now_ms + after_ms, parts.candidate(place))
    advance(places[-1])
    hypothesis.output.answered += map(_ID, causes[first : places.stop])


def _last_restarts(
    run: Sequence[Timers], places: range, names: Mapping[str, str]
) -> dict[Timer, tuple[int, float]]:
    """Return where each timer restarts last, and its delay; in the order of first restarts."""
    found: dict[Timer, tuple[int, float]] = {}
    for place in dict(zip(map(id, run), places, strict=False)).values():
        for timer, after_ms in run[place - places.start]:
            named = renamed_timer(timer, names)
            if after_ms is not None and found.get(named, (-1,))[0] < place:
                found[named] = place, after_ms
    return found
