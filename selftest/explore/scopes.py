"""The small scopes that are explored: which processes, from where on, with which timeouts.

One instance always has two processes: a duplicate, or the next start.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.step import Step, step
from reference_coordinator.driving.client import JOINED, OUT, WAITING
from reference_coordinator.frozen import replace_fields
from selftest.explore.actions import after
from selftest.explore.scene import Action, Process, Scene
from selftest.explore.search import Course, Explored, Explorer
from selftest.explore.trace import Trace

STATIC_TWICE = (Process("a", "a"), Process("a-again", "a"))
STATIC, DYNAMIC = Process("b", "b"), Process("d", None)
MIXES = {
    2: ((*STATIC_TWICE, STATIC), (*STATIC_TWICE, DYNAMIC)),
    3: ((*STATIC_TWICE, STATIC, DYNAMIC),),
}
"""By the number of members: their processes."""
TIMEOUTS = {"long": (30_000, 10_000), "short": (10_000, 30_000)}
"""Session and rebalance timeout (ms): sessions that outlast a join phase, and that do not."""


class Scope(NamedTuple):
    """One scope: `prelude` is what happened before its first scene."""

    name: str
    start: Scene
    prelude: Course
    empty: Scene

    def explore(
        self, depth: int, until_s: float = float("inf"), pairs: set[str] | None = None
    ) -> Explored:
        """Explore it up to a depth, until a time of this process at the latest; as `Explorer`.

        What broke before its first scene counts too.
        """
        explored = Explorer(self.start, until_s, pairs).run(depth)
        for what in Trace.of(self.empty, self.prelude).breaks:
            explored.broken[what] = ()
            explored.counts[what] += 1
        return explored

    def trace(self, course: Course) -> Trace:
        """Tell a course from the group's beginning on."""
        return Trace.of(self.empty, (*self.prelude, *course))

    def with_heartbeats(self, course: Course) -> Trace:
        """Tell a course, and what each process hears of it by its next heartbeat."""
        last = self.trace(course).steps[-1].after
        then = [Action("beat", place) for place, p in enumerate(last.processes) if p.beats]
        then[:0] = [Action("opens")] * last.is_closed
        return self.trace((*course, *then))


def scopes(
    profile: Profile, members: int, faults: int, coordinator: Step = step
) -> Iterator[Scope]:
    """Yield the scopes of a profile: a formed group first, then a group that does not exist."""
    for formed in (True, False):
        for named in MIXES[members]:
            for lasts, (session_ms, rebalance_ms) in TIMEOUTS.items():
                processes = tuple(
                    replace_fields(p, session_ms=session_ms, rebalance_ms=rebalance_ms)
                    for p in named
                )
                empty = Scene(processes, profile, coordinator, faults)
                start, prelude = form(empty) if formed else (empty, ())
                names = " ".join(p.name for p in processes)
                first = "Stable" if formed else "no group"
                yield Scope(f"{names}; {first}; {lasts} sessions", start, prelude, empty)


def form(scene: Scene) -> tuple[Scene, Course]:
    """Form a Stable group of all members, one process each; return it, and what happened.

    A coordinator that does not let it form ends it earlier.
    """
    first = [place for place, p in enumerate(scene.processes) if p.name != STATIC_TWICE[1].name]
    course: list[Action] = []
    while len(course) < LONGEST and (action := _next(scene, first)) is not None:
        scene = after(scene, action)
        course.append(action)
    return scene, tuple(course)


def _next(scene: Scene, first: Iterable[int]) -> Action | None:
    """Return what happens next while a group forms: leaders send SyncGroup before the others."""
    if scene.writes:
        return Action("written")
    for place in sorted(first, key=lambda place: not scene.processes[place].leads):
        if (phase := scene.processes[place].phase) in (OUT, JOINED):
            return Action("join" if phase is OUT else "sync", place)
    waits = any(scene.processes[place].phase in WAITING for place in first)
    return Action("passes") if waits and scene.next_timers() is not None else None


LONGEST = 20
"""Actions that forming a group may take."""
