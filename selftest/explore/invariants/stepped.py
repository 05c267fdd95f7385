"""One step of the coordinator, as the invariants look at it."""

from typing import NamedTuple

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Effect, Transition
from reference_coordinator.classic.events import Event, RecordWritten, TimerFired
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import COMPLETING_REBALANCE, Group
from selftest.explore.scene import Scene


class Stepped(NamedTuple):
    """One step. `group_known` is the group that clients knew before a failover."""

    before: Scene
    event: Event
    effects: tuple[Effect, ...]
    after: Scene
    profile: Profile
    group_known: Group | None = None


def began(step: Stepped) -> bool:
    """Tell whether a generation began."""
    return any(isinstance(e, Transition) and e.after is COMPLETING_REBALANCE for e in step.effects)


def cause(event: Event) -> str:
    """Name what an event is."""
    if isinstance(event, TimerFired):
        return f"the {event.timer.kind} timer"
    if isinstance(event, RecordWritten):
        return "a write that failed" if event.error != Error.NONE else "a write"
    return {"Loaded": "a failover"}.get(type(event).__name__, type(event).__name__)
