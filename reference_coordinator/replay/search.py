"""Explaining one stretch of evidence: requests whose windows overlap, and timers among them.

The likely order is tried first; where an answer contradicts it, other orders that the windows and
connections allow are searched depth first, within a budget. Stretches end where windows do, so the
search never runs further back than an overlap reaches.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import attrgetter

from reference_coordinator.classic.events import Timer
from reference_coordinator.replay.candidates import Candidate, Mismatch
from reference_coordinator.replay.evidence import Observed, Serving, Tolerance
from reference_coordinator.replay.fast_path import in_order
from reference_coordinator.replay.hints import Hints
from reference_coordinator.replay.hypothesis import World
from reference_coordinator.replay.options import blocked, options_of
from reference_coordinator.replay.subsumption import alike, holds, widen

SETTLING_MS = 100.0
"""How long after it says that it has loaded a broker may still answer as one that loads (Scala)."""


@dataclass(slots=True)
class Search:
    """The outcome of one stretch.

    Without a `world`, `mismatch` is the furthest contradiction, and `furthest` the world before it;
    `expected` is what else the oracle would have answered there, had other orders been true.
    """

    world: World | None = None
    mismatch: Mismatch | None = None
    furthest: World | None = None
    expected: set[str] = field(default_factory=set)
    depth: int = -1
    steps: int = 0
    exhausted: bool = True
    reordered: bool = False

    def contradicted(self, mismatch: Mismatch, world: World, depth: int) -> None:
        """Note what speaks against an order, after `depth` events that it explains."""
        if self.mismatch is None or depth > self.depth:
            self.depth, self.mismatch, self.furthest = depth, mismatch, world
            self.expected = set()
        if (mismatch.request, mismatch.rule) == (self.mismatch.request, self.mismatch.rule):
            self.expected.add(mismatch.expected)


WIDENED = 20
"""So often windows may grow bit by bit; a timer that starts itself anew would go on for ever."""


@dataclass(slots=True)
class Level:
    """A place in the search: a world, what is left, what may come next, and by when it must."""

    world: World
    left: tuple[Candidate, ...]
    options: Iterator[Candidate]
    until_ms: float
    depth: int = 0


@dataclass(slots=True)
class Frontier:
    """The places to go on from: those with the fewest departures from the likely order first.

    So a search that went wrong early finds out as soon as one that went wrong late; among equals
    the latest comes first.
    """

    levels: list[list[Level]] = field(default_factory=list)
    known: dict[frozenset[int], list[World]] = field(default_factory=dict)
    widened: Counter[frozenset[int]] = field(default_factory=Counter)

    def is_known(self, world: World, left: tuple[Candidate, ...]) -> bool:
        """Tell whether another order led to the same; if not quite, the world holds both now."""
        key = frozenset(map(id, left))
        known = self.known.setdefault(key, [])
        for place, other in enumerate(known):
            if alike(other, world):
                if holds(other, world):
                    return True
                self.widened[key] += 1
                widen(world, other, at_will=self.widened[key] > WIDENED)
                known[place] = world
                return False
        known.append(world)
        return False

    def add(self, level: Level, departures: int) -> None:
        """Remember a place."""
        while len(self.levels) <= departures:
            self.levels.append([])
        self.levels[departures].append(level)

    def pop(self) -> tuple[Level, int] | None:
        """Return the place to go on from, and its departures; None if there is none left."""
        for departures, levels in enumerate(self.levels):
            if levels:
                return levels.pop(), departures
        return None


def explain(
    world: World, stretch: Sequence[Candidate], until_ms: float, hints: Hints, excuse: str = ""
) -> Search:
    """Find an order in which every answer of a stretch is what the oracle answers.

    `until_ms` is when the next stretch begins: what is due before belongs to this one.
    """
    search = Search()
    if not excuse:
        search.world, search.steps = in_order(world, stretch, until_ms, hints)
    if search.world is None:
        search.world = next(explanations(search, world, stretch, until_ms, hints, excuse), None)
    return search


def explanations(
    search: Search,
    world: World,
    stretch: Sequence[Candidate],
    until_ms: float,
    hints: Hints,
    excuse: str = "",
) -> Iterator[World]:
    """Yield the worlds that orders of a stretch lead to, the likeliest first; see `explain`."""
    frontier = Frontier()
    by_time = tuple(sorted(stretch, key=lambda candidate: candidate.earliest_ms))
    frontier.add(Level(world, by_time, *options_of(world, by_time, until_ms, hints)), 0)
    while (place := frontier.pop()) is not None:
        level, departures = place
        option = next(level.options, None)
        if option is None:
            continue
        # what goes straight on costs nothing: the budget is for trying other orders
        if search.steps >= len(stretch) + world.tolerance.search:
            search.exhausted = False
            return
        search.steps += 1
        ends = option.cause is None and not excuse
        forked = level.world if ends and level.depth else level.world.fork()
        mismatch = blocked(forked, option, excuse) or forked.take(option, level.until_ms, excuse)
        if mismatch is not None:
            search.contradicted(mismatch, level.world, level.depth)
        elif not level.left and option.cause is None:
            search.reordered = departures > 0
            forked.odd += departures
            yield forked
            continue
        if mismatch is None and _left_no_trace(forked, option, level.world):
            # right as it is: only what was before it is tried in its place, or what else it binds
            others = [
                other
                for other in level.options
                if other.earliest_ms < option.earliest_ms or other.cause is option.cause
            ]
            level.options = iter(others)
        frontier.add(level, departures + 1)
        if mismatch is None:
            left = tuple(c for c in level.left if c.cause is not option.cause)
            if departures and frontier.is_known(forked, left):
                continue
            options = options_of(forked, left, until_ms, hints)
            frontier.add(Level(forked, left, *options, level.depth + 1), departures)


def _left_no_trace(world: World, option: Candidate, before: World) -> bool:
    """Tell whether nothing changed but when sessions end; a timer may have begun anew."""
    cause = option.cause
    if world.group is not before.group or not isinstance(cause, Observed | Timer):
        return False
    if isinstance(cause, Observed):  # one that is never told of may be wrong, or come later
        return cause.response is not None and cause.id not in world.parked
    return cause not in world.timers


def candidates_of(
    requests: Sequence[Observed], servings: Sequence[Serving], tolerance: Tolerance
) -> list[Candidate]:
    """Turn evidence into candidates, in the likely order.

    A request without response likely acted when it was sent; see `courses` for when else.
    A broker takes a group up, and gives it up, a little before or after it says so: it answers as
    one that loads somewhere between "scheduled" and "finished".
    """
    found = [
        Candidate(
            r.earliest_ms, r.at_ms, r.latest_ms if r.response else r.at_ms + tolerance.early, r
        )
        for r in requests
    ]
    ends = [s.at_ms for s in servings if s.kind == "loaded"]
    for serving in servings:
        at_ms, earliest, latest = serving.at_ms, serving.at_ms, serving.at_ms + tolerance.early
        if serving.kind == "loading":
            latest = min((end for end in ends if end >= at_ms), default=at_ms) + tolerance.early
        elif serving.kind == "loaded":
            begins = (s.at_ms for s in servings if s.kind == "loading" and s.at_ms <= at_ms)
            earliest, latest = max(begins, default=at_ms), at_ms + SETTLING_MS
        elif serving.kind == "unloaded":
            latest = at_ms + tolerance.timer
        found.append(Candidate(earliest - tolerance.early, at_ms, latest, serving))
    return sorted(found, key=attrgetter("at_ms"))


def stretches(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Cut the evidence wherever no window reaches across."""
    cut: list[list[Candidate]] = []
    reach = float("-inf")
    starts = accumulate((c.earliest_ms for c in reversed(candidates)), min)
    for candidate, start in zip(candidates, [*starts][::-1], strict=True):
        if start > reach or not cut:
            cut.append([candidate])
        else:
            cut[-1].append(candidate)
        reach = max(reach, candidate.latest_ms)
    return cut
