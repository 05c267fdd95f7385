"""Whether every request is answered at last, if processes go on with nothing but heartbeats."""

from reference_coordinator.driving.client import JOINING, WAITING
from selftest.explore.actions import after
from selftest.explore.canonical import Form, canonical
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
