"""What mutants have in common: their form, and small alterations of what `step` decides."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from reference_coordinator.classic.effects import Answer, Arm, Effect, Response, Transition
from reference_coordinator.classic.events import Event, JoinReceived, TimerKind
from reference_coordinator.classic.state import Group, State
from reference_coordinator.classic.step import Step

Outcome = tuple[Group, tuple[Effect, ...]]

__all__ = [
    "Outcome",
    "Step",
    "answering",
    "is_armed",
    "returns",
    "sooner",
    "starts_generation",
    "without_sessions",
]


def returns(group: Group, event: Event) -> bool:
    """Tell whether an event is the return of a known static member."""
    return (
        isinstance(event, JoinReceived)
        and not event.member_id
        and event.group_instance_id in group.static_ids
    )


def starts_generation(effects: Iterable[Effect]) -> bool:
    """Tell whether a join phase ended with somebody in the group."""
    return any(isinstance(e, Transition) and e.after is State.COMPLETING_REBALANCE for e in effects)


def without_sessions(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Leave every session as it was."""
    return tuple(e for e in effects if not is_armed(e, TimerKind.SESSION))


def is_armed(effect: Effect, kind: TimerKind) -> bool:
    """Tell whether an effect starts a timer of a kind."""
    return isinstance(effect, Arm) and effect.timer.kind is kind


def sooner(
    effects: Iterable[Effect], kind: TimerKind, at_ms: float, share: float
) -> tuple[Effect, ...]:
    """Let timers of a kind run for but a share of their time."""
    return tuple(
        replace(e, deadline_ms=at_ms + (e.deadline_ms - at_ms) * share)
        if isinstance(e, Arm) and e.timer.kind is kind
        else e
        for e in effects
    )


def answering(
    effects: Iterable[Effect], alter: Callable[[Response], Response]
) -> tuple[Effect, ...]:
    """Alter what is answered."""
    return tuple(
        replace(e, response=alter(e.response)) if isinstance(e, Answer) else e for e in effects
    )
