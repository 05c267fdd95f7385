"""Explaining one stretch of evidence: requests whose windows overlap, and timers among them.

The likely order is tried first; where an answer contradicts it, other orders that the windows and
connections allow are searched depth first, within a budget. Stretches end where windows do, so the
search never runs further back than an overlap reaches.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from reference_coordinator.events import TimerKind
from reference_coordinator.replay.evidence import Observed, Serving
from reference_coordinator.replay.hints import Hints
from reference_coordinator.replay.world import Candidate, Mismatch, World


@dataclass(slots=True)
class Search:
    """The outcome of one stretch. Without a `world`, `mismatch` is the furthest contradiction."""

    world: World | None = None
    mismatch: Mismatch | None = None
    depth: int = -1
    steps: int = 0
    exhausted: bool = True
    reordered: bool = False


@dataclass(slots=True)
class Level:
    """One level of the depth-first search: a world, what is left, and what to try."""

    world: World
    left: tuple[Candidate, ...]
    options: Iterator[Candidate] = field(default_factory=lambda: iter(()))
    first: bool = True


def explain(world: World, stretch: Sequence[Candidate], hints: Hints, excuse: str = "") -> Search:
    """Find an order in which every answer of a stretch is what the oracle answers."""
    search = Search()
    levels = [_level(world, tuple(stretch), hints)]
    while levels:
        level = levels[-1]
        if not level.left:
            search.world = level.world
            search.reordered = any(not below.first for below in levels[:-1])
            return search
        option = next(level.options, None)
        if option is None:
            levels.pop()
            if levels:
                levels[-1].first = False
            continue
        # what goes straight on costs nothing: the budget is for trying other orders
        if search.steps >= len(stretch) + world.tolerance.search:
            search.exhausted = False
            return search
        search.steps += 1
        forked = level.world.fork()
        mismatch = _blocked(forked, option, excuse) or forked.take(option, excuse)
        if mismatch is None:
            left = tuple(c for c in level.left if c is not option)
            levels.append(_level(forked, left, hints))
            continue
        level.first = False
        if len(levels) > search.depth:
            search.depth, search.mismatch = len(levels), mismatch
    return search


def _blocked(world: World, option: Candidate, excuse: str) -> Mismatch | None:
    """Tell whether a request was answered already that the oracle still holds back."""
    for seen in world.overdue(option.earliest_ms):
        mismatch = Mismatch(
            seen.id,
            seen.answered_ms,
            "answered_early",
            "no answer yet: the request waits",
            f"answered {option.earliest_ms - seen.answered_ms:.0f} ms before anything let it go on",
        )
        if seen.id != excuse:
            return mismatch
        world.excused = mismatch
        del world.parked[seen.id]
        world.answered.append(seen.id)
    return None


def _level(world: World, left: tuple[Candidate, ...], hints: Hints) -> Level:
    """List what may happen next, the likeliest first."""
    if not left:
        return Level(world, left)
    horizon = max(c.latest_ms for c in left)
    pending = [*left, *internal(world, horizon, hints)]
    cutoff = min(c.latest_ms for c in pending)
    open_now = [c for c in pending if c.earliest_ms <= cutoff]
    taken: set[str] = set()
    options = []
    for candidate in sorted(open_now, key=lambda c: c.at_ms):
        if isinstance(candidate.cause, Observed):
            if candidate.cause.connection in taken:
                continue
            taken.add(candidate.cause.connection)
        options.append(candidate)
    options.sort(key=lambda c: not _led_from_here(world, c))
    return Level(world, left, iter(options))


def _led_from_here(world: World, candidate: Candidate) -> bool:
    """Tell a join that, by its answer, made an empty group its own.

    The first to join leads. Whether it came first among joins that overlap shows only when the
    join phase ends, too late for a search; so that order is tried first.
    """
    seen = candidate.cause
    return (
        isinstance(seen, Observed)
        and seen.api == "JOIN_GROUP"
        and not world.group.members
        and bool(seen.response.get("leader"))
        and seen.response.get("leader") == seen.response.get("memberId")
    )


def internal(world: World, until_ms: float, hints: Hints) -> list[Candidate]:
    """List the timers and write outcomes that may come before a time."""
    tolerance = world.tolerance
    found = [
        Candidate(world.now_ms, due, due + tolerance.early, request)
        for request, seen in world.writes.items()
        if (due := max(seen.answered_ms, world.now_ms))
    ]
    if world.soonest_ms - tolerance.early > until_ms:
        return found
    world.soonest_ms = min(world.timers.values(), default=float("inf"))
    for timer, deadline in world.timers.items():
        if deadline - tolerance.early > until_ms:
            continue
        latest = deadline + tolerance.timer
        instant = None
        if timer.kind is not TimerKind.JOIN or not world.group.extends_delay:
            next_generation = world.group.generation + 1
            instant = hints.of_timer(timer, next_generation, deadline - tolerance.early, latest)
        found.append(
            Candidate(
                deadline - tolerance.early,
                deadline if instant is None else instant,
                latest,
                timer,
                hinted=instant is not None,
            )
        )
    return found


def candidates_of(
    requests: Sequence[Observed], servings: Sequence[Serving], early: float
) -> list[Candidate]:
    """Turn evidence into candidates, in the likely order."""
    found = [Candidate(r.earliest_ms, r.at_ms, r.latest_ms, r) for r in requests]
    found += [Candidate(s.at_ms - early, s.at_ms, s.at_ms + early, s) for s in servings]
    return sorted(found, key=lambda c: c.at_ms)


def stretches(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Cut the evidence wherever no window reaches across."""
    cut: list[list[Candidate]] = []
    reach = float("-inf")
    starts = [c.earliest_ms for c in candidates]
    for index in range(len(candidates) - 2, -1, -1):
        starts[index] = min(starts[index], starts[index + 1])
    for candidate, start in zip(candidates, starts, strict=True):
        if not cut or start > reach:
            cut.append([])
        cut[-1].append(candidate)
        reach = max(reach, candidate.latest_ms)
    return cut
