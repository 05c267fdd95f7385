"""Coordinators with one rule switched off: what the oracle must be able to tell from Kafka.

A mutant has `step`'s form. It lies coherently: whatever is built on it agrees with itself, so only
knowledge of the protocol finds it out.
"""

from collections.abc import Callable
from dataclasses import replace

from reference_coordinator.effects import Answer, Arm, Effect, SyncAnswer
from reference_coordinator.errors import Error
from reference_coordinator.events import (
    CommitReceived,
    Event,
    HeartbeatReceived,
    JoinReceived,
    SyncReceived,
    TimerFired,
    TimerKind,
)
from reference_coordinator.profiles import Profile
from reference_coordinator.replay.adoption import with_member_id
from reference_coordinator.state import Group, State
from reference_coordinator.step import step

Step = Callable[[Group, Event, Profile], tuple[Group, tuple[Effect, ...]]]

EARLY_SHARE = 0.4
"""What is left of a session in the mutant that expires members early."""


def _returns(group: Group, event: Event) -> bool:
    """Tell whether an event is the return of a known static member."""
    return (
        isinstance(event, JoinReceived)
        and not event.member_id
        and event.group_instance_id in group.static_ids
    )


def rebalances_on_static_replacement(
    group: Group, event: Event, profile: Profile
) -> tuple[Group, tuple[Effect, ...]]:
    """Treat a returning static member as if it were no longer of the group's protocol."""
    if isinstance(event, JoinReceived) and _returns(group, event) and group.state is State.STABLE:
        truth, protocol = group.protocol, "none of them"
        after, effects = step(replace(group, protocol=protocol), event, profile)
        return (after if after.protocol != protocol else replace(after, protocol=truth)), effects
    return step(group, event, profile)


def keeps_old_member_id(
    group: Group, event: Event, profile: Profile
) -> tuple[Group, tuple[Effect, ...]]:
    """Let a returning static member go on under its old id."""
    if isinstance(event, JoinReceived) and _returns(group, event):
        old = group.static_ids[event.group_instance_id or ""]
        after, effects = step(group, event, profile)
        new = after.static_ids[event.group_instance_id or ""]
        return with_member_id(after, new, old), tuple(_renamed(e, new, old) for e in effects)
    return step(group, event, profile)


def _renamed(effect: Effect, new: str, old: str) -> Effect:
    if isinstance(effect, Arm) and effect.timer.member_id == new:
        return replace(effect, timer=replace(effect.timer, member_id=old))
    return effect


def does_not_fence(
    group: Group, event: Event, profile: Profile
) -> tuple[Group, tuple[Effect, ...]]:
    """Take whoever names a known instance for its owner, whatever member id it shows."""
    if isinstance(event, JoinReceived | SyncReceived | HeartbeatReceived | CommitReceived):
        owner = group.static_ids.get(event.group_instance_id or "")
        if owner is not None and event.member_id:
            event = replace(event, member_id=owner)
    return step(group, event, profile)


def never_expires(group: Group, event: Event, profile: Profile) -> tuple[Group, tuple[Effect, ...]]:
    """Keep members whose session ended."""
    if isinstance(event, TimerFired) and event.timer.kind is TimerKind.SESSION:
        return group, ()
    return step(group, event, profile)


def expires_early(group: Group, event: Event, profile: Profile) -> tuple[Group, tuple[Effect, ...]]:
    """End sessions long before their time."""
    after, effects = step(group, event, profile)
    return after, tuple(
        replace(e, deadline_ms=event.at_ms + (e.deadline_ms - event.at_ms) * EARLY_SHARE)
        if isinstance(e, Arm) and e.timer.kind is TimerKind.SESSION
        else e
        for e in effects
    )


def answers_follower_before_leader(
    group: Group, event: Event, profile: Profile
) -> tuple[Group, tuple[Effect, ...]]:
    """Answer a follower's SyncGroup at once, with nothing, instead of waiting for the leader."""
    after, effects = step(group, event, profile)
    if isinstance(event, SyncReceived) and not any(isinstance(e, Answer) for e in effects):
        member = after.members[event.member_id]
        if after.leader != event.member_id and member.sync == event.request:
            members = {**after.members, event.member_id: replace(member, sync=None)}
            nothing = SyncAnswer(Error.NONE, after.protocol_type, after.protocol)
            return replace(after, members=members), (*effects, Answer(event.request, nothing))
    return after, effects


MUTANTS: dict[str, Step] = {
    mutant.__name__: mutant
    for mutant in (
        rebalances_on_static_replacement,
        keeps_old_member_id,
        does_not_fence,
        never_expires,
        expires_early,
        answers_follower_before_leader,
    )
}
