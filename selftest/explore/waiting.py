"""Whether every request is answered at last, if processes go on with nothing but heartbeats."""

from selftest.explore.canonical import Form, canonical
from selftest.explore.rules import Rules
from selftest.explore.scene import JOINING, WAITING, Action, Process, Scene
from selftest.explore.turn import Turn

LONGEST = 25
"""Timers that may expire and writes that may end until a request is answered."""


def next_by_itself(scene: Scene, rules: Rules) -> Turn | None:
    """Let happen what no process starts: the broker opens, a write ends, a timer expires."""
    turn = Turn(scene, rules)
    if scene.is_closed:
        turn.take(Action("opens"))
    elif scene.appends:
        turn.take(Action("written"))
    elif turn.due() is not None:
        turn.take(Action("passes"))
    else:
        return None
    return turn


class Waiting:
    """Remembers from which scenes every request is answered."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._answers: set[Form] = set()

    def unanswered(self, scene: Scene) -> str:
        """Return in words which request waits for ever; "" if none does."""
        first, forms = scene, []
        for _ in range(LONGEST):
            if all(p.phase not in WAITING for p in scene.processes):
                break
            form = canonical(scene)
            if form in self._answers:
                break
            forms.append(form)
            turn = next_by_itself(scene, self._rules)
            if turn is None:
                return _words(first, scene)
            scene = turn.scene
        else:
            return _words(first, scene)
        self._answers.update(forms)
        return ""


def _words(first: Scene, last: Scene) -> str:
    """Name the first request that waits, by what its process was to the group."""
    waits = next(place for place, p in enumerate(last.processes) if p.phase in WAITING)
    p: Process = first.processes[waits]
    api = "JoinGroup" if p.phase is JOINING else "SyncGroup"
    asks_as_member = p.phase is not JOINING or p.member_id
    removed = asks_as_member and p.member_id not in first.group.members
    return f"answered_at_last: {api} of a {'removed ' if removed else ''}member waits for ever"
