"""Breadth first over all scenes that actions lead to, each looked at once.

Where an invariant breaks the search does not go on: what follows is a consequence. Each scene is
also followed to see whether every request is answered at last.
"""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from reference_coordinator.driving.client import JOINING, WAITING
from selftest.explore.actions import actions, after
from selftest.explore.canonical import Form, canonical
from selftest.explore.coverage import new_pairs
from selftest.explore.invariants import broken
from selftest.explore.scene import Action, Scene

LONGEST = 25
"""Timers that may expire and writes that may end until a request is answered."""


def next_by_itself(scene: Scene) -> Scene | None:
    """Let happen what no process starts: the broker opens, a write ends, a timer expires."""
    if scene.is_closed:
        return after(scene, Action("opens"))
    if scene.writes:
        return after(scene, Action("written"))
    return None if scene.next_timers() is None else after(scene, Action("passes"))


class Waiting:
    """Remembers from which scenes every request is answered."""

    def __init__(self) -> None:
        self._answers: set[Form] = set()

    def unanswered(self, first: Scene) -> str:
        """Return in words which request waits for ever; "" if none does."""
        scene = first
        forms: list[Form] = []
        for _ in range(LONGEST):
            form = canonical(scene)
            if all(p.phase not in WAITING for p in scene.processes) or form in self._answers:
                self._answers.update(forms)
                return ""
            forms.append(form)
            if (following := next_by_itself(scene)) is None:
                break
            scene = following
        return _words(first, scene)


def _words(first: Scene, last: Scene) -> str:
    """Name the first request that waits, by what its process was to the group."""
    waits = next(place for place, p in enumerate(last.processes) if p.phase in WAITING)
    p = first.processes[waits]
    api = "JoinGroup" if p.phase is JOINING else "SyncGroup"
    asks_as_member = p.phase is not JOINING or p.member_id
    removed = asks_as_member and p.member_id not in first.group.members
    return f"answered_at_last: {api} of a {'removed ' if removed else ''}member waits for ever"


Course = tuple[Action, ...]
"""What happens one after the other."""


@dataclass
class Explored:
    """What was explored."""

    states: int = 1
    steps: int = 0
    """Actions tried."""
    depths: list[int] = field(default_factory=list)
    """How many new scenes each depth has."""
    left: int = 0
    """Scenes whose actions were not tried: they are at the last depth, or time ran out."""
    in_time: bool = True
    broken: dict[str, Course] = field(default_factory=dict)
    """What breaks (`invariant: detail`), each with the first of the shortest courses to it."""
    pairs: dict[str, Course] = field(default_factory=dict)
    """What was reached of `coverage`, likewise."""
    counts: Counter[str] = field(default_factory=Counter)
    """How many actions break what; behind them the search did not look."""


class Explorer:
    """Explores what follows from a scene; `until_s` is in seconds of this process's own time.

    `pairs` are those of `coverage` that were reached before; without it they are not looked for.
    """

    def __init__(
        self, start: Scene, until_s: float = float("inf"), pairs: set[str] | None = None
    ) -> None:
        self.result, self._pairs = Explored(), pairs
        self._until_s = until_s
        self._parents: list[tuple[int, Action]] = [(-1, Action(""))]
        self._seen: set[Form] = {canonical(start)}
        self._waiting = Waiting()
        self._frontier: list[tuple[int, Scene]] = [(0, start)]

    def run(self, depth: int) -> Explored:
        """Explore up to a depth."""
        found = self.result
        for _ in range(depth):
            frontier, self._frontier = self._frontier, []
            for done, (place, scene) in enumerate(frontier):
                if not time.process_time() <= self._until_s:  # also if that is no number
                    found.in_time = False
                    found.left = len(frontier) - done
                    break
                self._expand(place, scene)
            found.depths.append(len(self._frontier))
            if not self._frontier or not found.in_time:
                break
        found.states = len(self._seen)
        found.left += len(self._frontier)
        return found

    def _expand(self, place: int, scene: Scene) -> None:
        for action, following in taken(scene):
            self.result.steps += 1
            if self._pairs is not None:
                for each in following.log:
                    reached = each.before.group, each.event, each.before.profile
                    for pair in new_pairs(*reached, self._pairs):
                        self.result.pairs[pair] = self._course(place, action)
            breaks = breaks_in(following)
            form = canonical(following)
            if not breaks:
                if form in self._seen:
                    continue
                breaks = [what] if (what := self._waiting.unanswered(following)) else []
            for what in dict.fromkeys(breaks):
                self.result.counts[what] += 1
                if what not in self.result.broken:
                    self.result.broken[what] = self._course(place, action)
            if not breaks:
                self._seen.add(form)
                self._parents.append((place, action))
                self._frontier.append((len(self._parents) - 1, following))

    def _course(self, place: int, last: Action) -> Course:
        course = [last]
        while place > 0:
            place, action = self._parents[place]
            course.append(action)
        return tuple(reversed(course))


def breaks_in(scene: Scene) -> list[str]:
    """Return what the last action broke."""
    return [what for step in scene.log for what in broken(step)]


def taken(scene: Scene) -> Iterator[tuple[Action, Scene]]:
    """Yield every action that is possible, with every leader that may be picked."""
    for action in actions(scene):
        following = after(scene, action)
        yield action, following
        for leader in sorted(following.leaders):
            other = action._replace(leader=leader)
            again = after(scene, other)
            if not again.is_refused:
                yield other, again
