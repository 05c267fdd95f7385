"""The courses that events may have taken from one stretch to another, other than the likeliest.

Most often the likeliest order that explains a stretch is true, and a request without response was
acted on when it was sent; but what is true may show only much later. Where a contradiction comes up
then, stretches before it are explained anew, the likelier ways first. If that finds nothing, all
ways may be tried side by side: worlds in which everything came to the same are one, so there are
few of them, and if none is left the evidence has no explanation.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, count

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Answer, Arm
from reference_coordinator.classic.events import Choices
from reference_coordinator.replay.candidates import Candidate, next_if_any_ms
from reference_coordinator.replay.evidence import LEAVE_NO_TRACE, Observed
from reference_coordinator.replay.fast_path import straight_on
from reference_coordinator.replay.hints import Hints
from reference_coordinator.replay.hypothesis import World
from reference_coordinator.replay.search import Search, explain, explanations
from reference_coordinator.replay.subsumption import alike, holds, widen
from reference_coordinator.replay.wire import event_of

MOST = 64
"""So many worlds are followed side by side."""

Part = Sequence[Candidate]


def explain_part(
    world: World, part: Part, until_ms: float | None, hints: Hints, excuse: str = ""
) -> Search:
    """Explain a stretch, and if possible what is due before the next one begins at `until_ms`.

    Where both have no explanation together, the stretch alone may have one: then it is the next one
    that has not, which is the smaller place to look for what is wrong. Requests without response
    act when they were sent.
    """
    if world.lost or has_lost(part):
        way = next(_ways(world, part, until_ms))
        world, part = way.world, way.part
    if until_ms is not None:
        search = explain(world, part, until_ms, hints, excuse)
        if search.world is not None:
            return search
    return explain(world, part, float("-inf"), hints, excuse)


@dataclass(frozen=True, slots=True)
class Way:
    """A stretch with those requests without response that act in it, and the world before it."""

    world: World
    part: Part
    acting: frozenset[str]


@dataclass(slots=True)
class Course:
    """A way of explaining a stretch, under way: `worlds` are after it, the likeliest first."""

    index: int
    search: Search
    worlds: Iterator[World]


@dataclass(slots=True)
class Courses:
    """Looks for a course through stretches, from `parts[first]` to `parts[last]`.

    `complete` tells whether everything was tried, in no more than so many `steps`.
    """

    parts: Sequence[Part]
    last: int
    hints: Hints
    steps: int
    complete: bool = True
    queue: list[tuple[int, int, int, Course]] = field(default_factory=list)
    numbers: "count[int]" = field(default_factory=count)
    known: dict[int, list[World]] = field(default_factory=dict)

    def find(self, world: World, first: int) -> World | None:
        """Find the world after the last stretch that asks for the fewest unlikely things."""
        self._go_on(world, first)
        while self.queue:
            _, _, _, course = heapq.heappop(self.queue)
            self.steps += course.search.steps
            after = next(course.worlds, None)
            self.steps -= course.search.steps
            if self.steps < 0:
                self.complete = False
                return None
            if after is None:
                self.complete &= course.search.exhausted
                continue
            if course.index == self.last:
                return after
            self._add(after.odd, course)
            self._go_on(after, course.index + 1)
        return None

    def _go_on(self, world: World, index: int) -> None:
        """Add the ways to explain a stretch from a world."""
        index = straight_on(world, self.parts, index, self.last)
        until_ms = next_if_any_ms(self.parts, index)
        known = self.known.setdefault(index, [])
        if any(_same_lost(other, world) and holds(other, world) for other in known):
            return
        known.append(world)
        for way in _ways(world, self.parts[index], until_ms):
            if not _is_idle(way, until_ms):
                search = Search()
                worlds = _explanations(search, way, until_ms, self.hints)
                self._add(way.world.odd, Course(index, search, worlds))

    def _add(self, odd: int, course: Course) -> None:
        heapq.heappush(self.queue, (odd, -course.index, next(self.numbers), course))


def impossible(
    world: World, parts: Sequence[Part], indices: range, hints: Hints, steps: int
) -> bool:
    """Tell whether it is certain that stretches cannot be explained from a world, in any way."""
    return any(
        _is_impossible(replace(world.fork(), loose=loose), parts, indices, hints, steps)
        for loose in (False, True)
    )


def _is_impossible(
    world: World, parts: Sequence[Part], indices: range, hints: Hints, steps: int
) -> bool:
    """Tell whether it is found out in so many steps that there is no explanation."""
    worlds = [world]
    for index in indices:
        until_ms, after = next_if_any_ms(parts, index), list[World]()
        for each in worlds:
            for way in _ways(each, parts[index], until_ms):
                if _is_idle(way, until_ms):
                    continue
                search = Search()
                for found in _explanations(search, way, until_ms, hints):
                    _add(after, found)
                steps -= search.steps
                if not search.exhausted or steps < 0 or len(after) > MOST:
                    return False
        worlds = after
    return not worlds


def _explanations(
    search: Search, way: Way, until_ms: float | None, hints: Hints
) -> Iterator[World]:
    end_ms = float("-inf") if until_ms is None else until_ms
    return explanations(search, way.world, way.part, end_ms, hints)


def _ways(world: World, part: Part, until_ms: float | None) -> Iterator[Way]:
    """List which requests without response may act in a stretch; first, those that were just sent.

    Others are `odd`: that one was not acted on at once, and that one of before is now.
    """
    fresh = {c.cause.id: c.cause for c in part if _is_lost(c) and isinstance(c.cause, Observed)}
    if not fresh and not world.lost:
        yield Way(world, part, frozenset())
        return
    waiting = {seen.id: seen for seen in world.lost if not _too_late(world, seen)}
    every = waiting | fresh
    answered = [candidate for candidate in part if not _is_lost(candidate)]
    end_ms = float("inf") if until_ms is None else until_ms
    new = [frozenset(ids) for n in range(len(fresh), -1, -1) for ids in combinations(fresh, n)]
    late = [frozenset(ids) for n in range(len(waiting) + 1) for ids in combinations(waiting, n)]
    for now in new:
        for then in late:
            acting = now | then
            acts = [
                Candidate(seen.at_ms, max(seen.at_ms, world.now_ms), max(seen.at_ms, end_ms), seen)
                for seen in (every[id_] for id_ in sorted(acting))
            ]
            left = tuple(seen for id_, seen in every.items() if id_ not in acting)
            odd = world.odd + len(then) + len(fresh) - len(now)
            yield Way(replace(world, lost=left, odd=odd), [*answered, *acts], acting)


def has_lost(part: Part) -> bool:
    """Tell whether a stretch has requests without response."""
    return any(map(_is_lost, part))


def _is_lost(candidate: Candidate) -> bool:
    return isinstance(candidate.cause, Observed) and candidate.cause.response is None


def _is_idle(way: Way, until_ms: float | None) -> bool:
    """Tell whether one that acts late does nothing, because all the time nothing changes."""
    world = way.world
    late = [c.cause for c in way.part if _is_lost(c) and c.earliest_ms < world.earliest_ms]
    quiet = all(
        _is_lost(c) or (isinstance(c.cause, Observed) and c.cause.api in LEAVE_NO_TRACE)
        for c in way.part
    )
    if not late or not quiet or world.writes or world.may_run_out(until_ms or float("inf")):
        return False
    return any(isinstance(seen, Observed) and _does_nothing(world, seen) for seen in late)


def _does_nothing(world: World, seen: Observed) -> bool:
    """Tell whether a request would leave the group as it is, were it acted on now."""
    event = event_of(seen, world.now_ms, Choices())
    group, effects = world.step(world.group, event, world.profile)
    return group is world.group and not any(isinstance(effect, Arm) for effect in effects)


def _too_late(world: World, seen: Observed) -> bool:
    """Tell whether a request can do nothing any more: no member gets an id that was in use."""
    if not seen.request.get("memberId"):
        return False
    event = event_of(seen, world.now_ms, Choices())
    group, effects = world.step(world.group, event, world.profile)
    refused = [effect.response.error for effect in effects if isinstance(effect, Answer)]
    gone = refused in ([Error.UNKNOWN_MEMBER_ID], [Error.FENCED_INSTANCE_ID])
    return gone and group is world.group


def _same_lost(one: World, other: World) -> bool:
    """Tell whether worlds differ in times alone."""
    return {seen.id for seen in one.lost} == {seen.id for seen in other.lost} and alike(one, other)


def _add(worlds: list[World], world: World) -> None:
    """Add a world, unless there is one like it, which then is this one, too."""
    for other in worlds:
        if _same_lost(other, world):
            widen(other, world)
            return
    worlds.append(world)
