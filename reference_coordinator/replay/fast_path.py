"""The fast path: events in their likeliest order, without backtracking and so without copies.

Nearly all of a file is explained by it. Where it is not, `search` finds out what is.

Most requests restart sessions alone, as heartbeats and commits do. Many of them in a row are a
steady run, which is decided as a whole. It goes on while every response is the one that a
coordinator gives which looks at an unchanged group (`reactions`), and while no timer can expire:
none of those that run at its begin, and none of those that it starts. Then only the last request
counts that restarts a timer: the windows of those before it have no effect.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import attrgetter

from reference_coordinator.classic.bodies import EXCHANGES
from reference_coordinator.classic.events import Timer
from reference_coordinator.replay.candidates import LATEST_MS, Candidate
from reference_coordinator.replay.clock import renamed_timer
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.replay.hypothesis import Hypothesis
from reference_coordinator.replay.options import (
    blocked,
    internal,
    likely_ms,
    options_of,
)
from reference_coordinator.replay.reactions import Timers
from reference_coordinator.replay.stretches import Stretches
from reference_coordinator.timing import SUM_ERROR_MS

_BY_TIME = attrgetter("earliest_ms", "at_ms")
_LIKELIEST = attrgetter("at_ms", "earliest_ms")

ONE_BY_ONE = 4
"""So many stretches are taken one by one before a steady run is looked for: many end sooner."""


def fast_forward(hypothesis: Hypothesis, parts: Stretches, index: int, last: int) -> int:
    """Take stretches of right requests that leave no trace, while nothing else could happen.

    Return the index of the first that is not like that, `last` if all before are. Not needed for
    the result, which `search` finds as well: most of a long file is this.
    """
    if hypothesis.writes or hypothesis.unanswered:
        return index
    group, pending_requests = hypothesis.group, hypothesis.pending_requests
    conditions, reaction_to = hypothesis.conditions, hypothesis.reactions.to
    protocol, profile = conditions.protocol, conditions.profile
    reply_ms = conditions.tolerance.reply
    one_by_one = index + ONE_BY_ONE
    while index < last:
        if index >= one_by_one:
            index = take_steady_run(hypothesis, parts, index, last)
        if index == last:
            return index
        until_ms, passing = parts.begins_ms[index + 1], []
        for place in range(parts.cuts[index], parts.end(index)):
            seen, latest_ms = parts.causes[place], parts.latest_ms[place]
            if not isinstance(seen, ObservedRequest) or seen.answered_ms > latest_ms + reply_ms:
                return index
            if pending_requests and hypothesis.answered_before(
                parts.earliest_ms[place], seen.connection
            ):
                return index
            timers = reaction_to(group, seen, protocol, profile)
            if timers is None:
                return index
            if latest_ms > until_ms:
                until_ms = latest_ms
            passing.append((place, timers, seen.id))
        if hypothesis.timers.may_expire(until_ms):
            return index
        for place, timers, request in passing:
            _pass(hypothesis, parts.candidate(place), timers, request)
        index += 1
    return index


def _pass(hypothesis: Hypothesis, candidate: Candidate, timers: Timers, request: str) -> None:
    """Let a request happen that affects timers alone; `Hypothesis.take` without the rest."""
    clock = hypothesis.clock
    clock.advance_in_order(candidate)
    for timer, after_ms in timers:
        if after_ms is None:
            hypothesis.disarm(timer, candidate)
        else:
            hypothesis.arm(timer, clock.now_ms + after_ms, candidate)
    hypothesis.output.explain(request)


def likely_order(
    hypothesis: Hypothesis, stretch: Sequence[Candidate], until_ms: float
) -> tuple[Hypothesis | None, int]:
    """Return the hypothesis that the likely order leads to, and how many steps that took.

    None if it does not explain all; else it is the first that a search would find, too.
    """
    hypothesis, queue = hypothesis.fork(), LikelyOrder(stretch)
    for steps in range(1, len(stretch) + hypothesis.conditions.tolerance.search + 1):
        if not queue.left and _is_quiet(hypothesis, until_ms):
            return hypothesis, steps
        option, cutoff = _likeliest(hypothesis, queue, until_ms)
        if option is None or blocked(hypothesis, option, ""):
            break
        if not _left_no_trace(hypothesis, option, cutoff) and hypothesis.take(option, cutoff):
            break
        if option.cause is None and not queue.left:
            return hypothesis, steps
        queue.remove(option)
    return None, 0


def _is_quiet(hypothesis: Hypothesis, until_ms: float) -> bool:
    """Tell whether nothing is under way that may go on by itself, or that should have."""
    waits = hypothesis.writes or hypothesis.pending_requests
    return not (waits or hypothesis.timers.may_expire(until_ms))


def _left_no_trace(hypothesis: Hypothesis, option: Candidate, cutoff: float) -> bool:
    """Let a right request happen that has no effect but on timers; else nothing has happened."""
    seen, latest_ms = option.cause, option.latest_ms
    if not isinstance(seen, ObservedRequest) or option.at_ms > cutoff:
        return False
    conditions, tolerance = hypothesis.conditions, hypothesis.conditions.tolerance
    in_time = -tolerance.early <= seen.answered_ms - latest_ms <= tolerance.reply
    if not in_time or hypothesis.timers.overtaken:
        return False
    protocol, profile = conditions.protocol, conditions.profile
    timers = hypothesis.reactions.to(hypothesis.group, seen, protocol, profile)
    if timers is None:
        return False
    _pass(hypothesis, option, timers, seen.id)
    return True


class LikelyOrder:
    """What is left of a stretch, the likeliest last; and by when the next must have come."""

    def __init__(self, stretch: Sequence[Candidate]) -> None:
        """Put a stretch in order."""
        self.left = sorted(stretch, key=_LIKELIEST)[::-1]
        self._find_limits()

    def _find_limits(self) -> None:
        self._limits = [*accumulate(map(LATEST_MS, self.left), min)]

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
    hypothesis: Hypothesis, queue: LikelyOrder, until_ms: float
) -> tuple[Candidate | None, float]:
    """Return what is likeliest to happen next, and by when something must have.

    Most often that is the next request, or what is due before. Where it may be another one, all
    that is open is weighed.
    """
    first = queue.left[-1] if queue.left else None
    if first is not None and _comes_first(hypothesis, first):
        cutoff = queue.latest_ms
        if not hypothesis.writes and not hypothesis.timers.may_expire(cutoff):
            return first, cutoff
        due = internal(hypothesis, cutoff)
        if not due:
            return first, cutoff
        cutoff = min(cutoff, *(candidate.latest_ms for candidate in due))
        if first.earliest_ms <= cutoff:
            likely = [first, *(candidate for candidate in due if candidate.earliest_ms <= cutoff)]
            return min(likely, key=lambda candidate: likely_ms(hypothesis, candidate)), cutoff
    by_time = sorted(queue.left, key=_BY_TIME)
    options, cutoff = options_of(hypothesis, by_time, until_ms)
    return next(options, None), cutoff


def _comes_first(hypothesis: Hypothesis, candidate: Candidate) -> bool:
    """Tell whether no other request can be likelier than the one that is likeliest by its time."""
    seen = candidate.cause
    return (
        isinstance(seen, ObservedRequest)
        and seen.response is not None
        and bool(hypothesis.group.members.by_id)
        and not hypothesis.answered_before(candidate.earliest_ms, seen.connection)
    )


_ID = attrgetter("id")


def take_steady_run(hypothesis: Hypothesis, parts: Stretches, index: int, last: int) -> int:
    """Take the stretches from `index` on, before `last`, that are one steady run.

    Return the index of the first that is not. The outcome is that of `fast_path`, which takes one
    stretch after the other. No write is under way.
    """
    timers = hypothesis.timers
    if timers.overtaken or hypothesis.pending_requests:
        return index
    slack_ms = timers.early_ms + SUM_ERROR_MS
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
    hypothesis.output.explain(*map(_ID, causes[first : places.stop]))


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
