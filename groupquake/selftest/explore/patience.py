"""Whether every request is answered at last, if processes go on with nothing but heartbeats."""

from groupquake.selftest.explore.canonical import Form, canonical
from groupquake.selftest.explore.rules import Rules
from groupquake.selftest.explore.turn import Turn
from groupquake.selftest.explore.world import JOINING, WAITING, Action, Process, World

PATIENCE = 25
"""Timers that may expire and writes that may end until a request is answered."""


def next_by_itself(world: World, rules: Rules) -> Turn | None:
    """Let happen what no process starts: the broker opens, a write ends, a timer expires."""
    turn = Turn(world, rules)
    if world.is_closed:
        turn.take(Action("opens"))
    elif world.appends:
        turn.take(Action("written"))
    elif turn.due() is not None:
        turn.take(Action("passes"))
    else:
        return None
    return turn


class Patience:
    """Remembers from which worlds every request is answered."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._answers: set[Form] = set()

    def unanswered(self, world: World) -> str:
        """Return in words which request waits for ever; "" if none does."""
        first, forms = world, []
        for _ in range(PATIENCE):
            if all(p.phase not in WAITING for p in world.processes):
                break
            form = canonical(world)
            if form in self._answers:
                break
            forms.append(form)
            turn = next_by_itself(world, self._rules)
            if turn is None:
                return _words(first, world)
            world = turn.world
        else:
            return _words(first, world)
        self._answers.update(forms)
        return ""


def _words(first: World, last: World) -> str:
    """Name the first request that waits, by what its process was to the group."""
    waits = next(place for place, p in enumerate(last.processes) if p.phase in WAITING)
    p: Process = first.processes[waits]
    api = "JoinGroup" if p.phase is JOINING else "SyncGroup"
    asks_as_member = p.phase is not JOINING or p.member_id
    removed = asks_as_member and p.member_id not in first.group.members
    return f"answered_at_last: {api} of a {'removed ' if removed else ''}member waits for ever"
