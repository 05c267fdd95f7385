"""Rules of LeaveGroup switched off: which members are removed, the response, the rebalance."""

from collections.abc import Iterable
from dataclasses import replace

from kafka_protocol.errors import Error
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import Answer, Effect, LeaveResponse, Reason, Response
from reference_coordinator.classic.events import Event, LeaveReceived
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.rebalance import prepare
from reference_coordinator.classic.state import Group, State
from reference_coordinator.classic.step import step
from selftest.broken_rules.form import Outcome, Step, answering


def removes_the_first_alone(group: Group, event: Event, profile: Profile) -> Outcome:
    """Remove only the first member of a batch, and answer as if all had been removed."""
    if isinstance(event, LeaveReceived):
        answer = _answers(step(group, event, profile)[1], event)
        after, effects = step(group, replace(event, members=event.members[:1]), profile)
        own = _answers(effects, event)
        return after, tuple(e for e in effects if e not in own) + answer
    return step(group, event, profile)


def _answers(effects: Iterable[Effect], event: LeaveReceived) -> tuple[Effect, ...]:
    return tuple(e for e in effects if isinstance(e, Answer) and e.request == event.request)


def calls_ghosts_removed(group: Group, event: Event, profile: Profile) -> Outcome:
    """Answer NONE for unknown instance ids."""
    after, effects = step(group, event, profile)
    return after, answering(effects, _all_removed)


def _all_removed(response: Response) -> Response:
    if isinstance(response, LeaveResponse):
        unknown, fine = Error.UNKNOWN_MEMBER_ID, Error.NONE
        results = ((m, i, fine if e == unknown else e) for m, i, e in response.members)
        return replace(response, members=tuple(results))
    return response


def knows_no_instances(group: Group, event: Event, profile: Profile) -> Outcome:
    """Refuse to remove members that are named by their instance ids alone."""
    if not isinstance(event, LeaveReceived):
        return step(group, event, profile)
    named = tuple((m, i) for m, i in event.members if m or i is None)
    after, effects = step(group, replace(event, members=named), profile)

    def refusing(response: Response) -> Response:
        if not isinstance(response, LeaveResponse) or len(response.members) != len(named):
            return response
        results = iter(response.members)
        unknown = Error.UNKNOWN_MEMBER_ID
        merged = tuple(
            next(results) if m or i is None else (m, i, unknown) for m, i in event.members
        )
        return replace(response, members=merged)

    return after, answering(effects, refusing)


def rebalances_though_nobody_left(group: Group, event: Event, profile: Profile) -> Outcome:
    """Rebalance for every LeaveGroup, even if no member was removed."""
    after, effects = step(group, event, profile)
    if isinstance(event, LeaveReceived) and after.state is State.STABLE:
        context = Context(after, profile, event.at_ms)
        prepare(context, Reason.LEAVE)
        return context.group, (*effects, *context.effects)
    return after, effects


def does_not_rebalance_on_leave(group: Group, event: Event, profile: Profile) -> Outcome:
    """Remove members, and go on as if their partitions were still theirs."""
    if isinstance(event, LeaveReceived) and group.state is State.STABLE:
        after, effects = step(replace(group, state=State.EMPTY), event, profile)
        return replace(after, state=group.state), effects
    return step(group, event, profile)


def removes_no_sooner_than_sessions_end(group: Group, event: Event, profile: Profile) -> Outcome:
    """Answer as if members had been removed, and wait until their sessions expire."""
    if isinstance(event, LeaveReceived):
        return group, _answers(step(group, event, profile)[1], event)
    return step(group, event, profile)


MUTANTS: Iterable[Step] = (
    removes_the_first_alone,
    calls_ghosts_removed,
    knows_no_instances,
    rebalances_though_nobody_left,
    does_not_rebalance_on_leave,
    removes_no_sooner_than_sessions_end,
)
