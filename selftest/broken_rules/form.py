"""What broken rules have in common: their form, and the ways to break one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import Answer, Arm, Effect, Reason, Response
from reference_coordinator.classic.events import Event, JoinReceived, Request, TimerKind
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.rebalance import prepare
from reference_coordinator.classic.state import Group, State
from reference_coordinator.classic.step import Step, step

Outcome = tuple[Group, tuple[Effect, ...]]
When = Callable[[Group, Event], bool]
"""Tells of the group before an event whether the rule would count."""
E = TypeVar("E", bound=Event)
R = TypeVar("R", bound=Request)


class Rule(NamedTuple):
    """A rule: the source that it has, and the step without it.

    A log of `group` in runs of `experiment` in which it is broken reveals that.
    """

    experiment: str
    group: str
    source: str
    broken: Step


def caught(experiment: str, group: str, rules: Mapping[str, tuple[str, Step]]) -> dict[str, Rule]:
    """Say which evidence reveals broken rules, given by source and broken step."""
    return {name: Rule(experiment, group, *of) for name, of in rules.items()}


CLASSIC = "the classic protocol"
"""The source of rules as old as the coordinator, which have no KIP."""


def returns(group: Group, event: Event) -> bool:
    """Tell whether an event is the return of a known static member."""
    return (
        isinstance(event, JoinReceived)
        and not event.member_id
        and event.group_instance_id in group.static_ids
    )


def always(_group: Group, _event: Event) -> bool:
    """The rule counts for every event."""
    return True


def ignoring(when: When) -> Step:
    """Do nothing about an event."""

    def broken(group: Group, event: Event, profile: Profile) -> Outcome:
        return (group, ()) if when(group, event) else step(group, event, profile)

    return broken


def taking(kind: type[E], instead: Callable[[Group, E], Event]) -> Step:
    """Take an event of a kind for another one."""

    def broken(group: Group, event: Event, profile: Profile) -> Outcome:
        return step(group, instead(group, event) if isinstance(event, kind) else event, profile)

    return broken


def as_if(when: When, instead: Callable[[Group, Event], Group]) -> Step:
    """Take the group for another one."""

    def broken(group: Group, event: Event, profile: Profile) -> Outcome:
        return step(instead(group, event) if when(group, event) else group, event, profile)

    return broken


def going_by(other: Callable[[Profile], Profile]) -> Step:
    """Go by another profile: other settings, or the rules of another release."""

    def broken(group: Group, event: Event, profile: Profile) -> Outcome:
        return step(group, event, other(profile))

    return broken


def answered(
    effects: Iterable[Effect], alter: Callable[[Response], Response]
) -> tuple[Effect, ...]:
    """Alter what is answered."""
    return tuple(
        replace(e, response=alter(e.response)) if isinstance(e, Answer) else e for e in effects
    )


def answering(alter: Callable[[Response], Response], when: When = always) -> Step:
    """Give other answers."""

    def broken(group: Group, event: Event, profile: Profile) -> Outcome:
        after, effects = step(group, event, profile)
        return after, answered(effects, alter) if when(group, event) else effects

    return broken


def answering_at_once(kind: type[R], when: Callable[[Group, R], bool], response: Response) -> Step:
    """Answer a request, and do nothing else about it."""

    def broken(group: Group, event: Event, profile: Profile) -> Outcome:
        if isinstance(event, kind) and when(group, event):
            return group, (Answer(event.request, response),)
        return step(group, event, profile)

    return broken


def sooner(kind: TimerKind, when: When = always) -> Step:
    """Let timers of a kind run for two fifths of their time."""

    def broken(group: Group, event: Event, profile: Profile) -> Outcome:
        after, effects = step(group, event, profile)
        if not when(group, event):
            return after, effects
        return after, tuple(
            replace(e, deadline_ms=event.at_ms + (e.deadline_ms - event.at_ms) * 0.4)
            if isinstance(e, Arm) and e.timer.kind is kind
            else e
            for e in effects
        )

    return broken


def without_sessions(kind: type[Event]) -> Step:
    """Start no session anew because of an event of a kind."""

    def broken(group: Group, event: Event, profile: Profile) -> Outcome:
        after, effects = step(group, event, profile)
        if not isinstance(event, kind):
            return after, effects
        return after, tuple(
            e for e in effects if not (isinstance(e, Arm) and e.timer.kind is TimerKind.SESSION)
        )

    return broken


def rebalancing(kind: type[Event], reason: Reason, whose: Callable[[Group], str]) -> Step:
    """Rebalance a stable group because of an event of a kind."""

    def broken(group: Group, event: Event, profile: Profile) -> Outcome:
        after, effects = step(group, event, profile)
        if not isinstance(event, kind) or after.state is not State.STABLE:
            return after, effects
        context = Context(after, profile, event.at_ms)
        prepare(context, reason, whose(after))
        return context.group, (*effects, *context.effects)

    return broken
