"""Rules of static membership (KIP-345) switched off: the return of an instance, and its fence."""

from collections.abc import Iterable
from dataclasses import replace

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Arm, Effect, JoinResponse, Response, SyncResponse
from reference_coordinator.classic.events import (
    CommitReceived,
    Event,
    HeartbeatReceived,
    JoinReceived,
    LeaveReceived,
    SyncReceived,
)
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.state import Group, State
from reference_coordinator.classic.step import step
from reference_coordinator.replay.member_ids import with_member_id
from selftest.broken_rules.form import Outcome, Step, answering, returns

LAST_WITHOUT_SKIP_ASSIGNMENT = 8


def rebalances_on_static_replacement(group: Group, event: Event, profile: Profile) -> Outcome:
    """Treat a returning static member as if it were no longer of the group's protocol."""
    if returns(group, event) and group.state is State.STABLE:
        truth, protocol = group.protocol, "none of them"
        after, effects = step(replace(group, protocol=protocol), event, profile)
        return (after if after.protocol != protocol else replace(after, protocol=truth)), effects
    return step(group, event, profile)


def takes_returning_static_for_new(group: Group, event: Event, profile: Profile) -> Outcome:
    """Add a returning static member beside itself."""
    if isinstance(event, JoinReceived) and returns(group, event):
        others = {i: m for i, m in group.static_ids.items() if i != event.group_instance_id}
        return step(replace(group, static_ids=others), event, profile)
    return step(group, event, profile)


def keeps_old_member_id(group: Group, event: Event, profile: Profile) -> Outcome:
    """Let a returning static member go on under its old id."""
    if isinstance(event, JoinReceived) and returns(group, event):
        old = group.static_ids[event.group_instance_id or ""]
        after, effects = step(group, event, profile)
        new = after.static_ids[event.group_instance_id or ""]
        return with_member_id(after, new, old), tuple(_renamed(e, new, old) for e in effects)
    return step(group, event, profile)


def _renamed(effect: Effect, new: str, old: str) -> Effect:
    if isinstance(effect, Arm) and effect.timer.member_id == new:
        return replace(effect, timer=effect.timer._replace(member_id=old))
    return effect


def does_not_fence_heartbeats(group: Group, event: Event, profile: Profile) -> Outcome:
    """Handle Heartbeat as if the owner of its instance id had sent it."""
    return step(group, _as_owner(group, event, HeartbeatReceived), profile)


def does_not_fence_syncs(group: Group, event: Event, profile: Profile) -> Outcome:
    """Handle SyncGroup as if the owner of its instance id had sent it."""
    return step(group, _as_owner(group, event, SyncReceived), profile)


def does_not_fence_commits(group: Group, event: Event, profile: Profile) -> Outcome:
    """Handle OffsetCommit as if the owner of its instance id had sent it."""
    return step(group, _as_owner(group, event, CommitReceived), profile)


def does_not_fence_joins(group: Group, event: Event, profile: Profile) -> Outcome:
    """Handle JoinGroup with a member id as if the owner of its instance id had sent it."""
    return step(group, _as_owner(group, event, JoinReceived), profile)


def _as_owner(group: Group, event: Event, kind: type) -> Event:
    if isinstance(event, kind) and isinstance(
        event, JoinReceived | SyncReceived | HeartbeatReceived | CommitReceived
    ):
        owner = group.static_ids.get(event.group_instance_id or "")
        if owner is not None and event.member_id:
            return replace(event, member_id=owner)
    return event


def does_not_fence_leaves(group: Group, event: Event, profile: Profile) -> Outcome:
    """Let anyone make the owner of an instance leave, whatever id is named with it."""
    if isinstance(event, LeaveReceived):
        owners = (("" if i in group.static_ids else m, i) for m, i in event.members)
        event = replace(event, members=tuple(owners))
    return step(group, event, profile)


def calls_the_replaced_unknown(group: Group, event: Event, profile: Profile) -> Outcome:
    """Tell a member that waits while it is replaced that it is unknown, not fenced."""
    after, effects = step(group, event, profile)
    return after, answering(effects, _unknown) if returns(group, event) else effects


def _unknown(response: Response) -> Response:
    fenced = isinstance(response, JoinResponse | SyncResponse) and (
        response.error == Error.FENCED_INSTANCE_ID
    )
    return replace(response, error=Error.UNKNOWN_MEMBER_ID) if fenced else response


def replaces_without_rebalance_while_completing(
    group: Group, event: Event, profile: Profile
) -> Outcome:
    """Do in CompletingRebalance what is right in Stable alone (KAFKA-9801)."""
    if returns(group, event) and group.state is State.COMPLETING_REBALANCE:
        after, effects = step(replace(group, state=State.STABLE), event, profile)
        return replace(after, state=group.state), effects
    return step(group, event, profile)


def does_not_tell_returning_leader(group: Group, event: Event, profile: Profile) -> Outcome:
    """Answer a leader that returns as if its version knew no SkipAssignment (KIP-814)."""
    if isinstance(event, JoinReceived) and returns(group, event):
        event = replace(event, api_version=min(event.api_version, LAST_WITHOUT_SKIP_ASSIGNMENT))
    return step(group, event, profile)


MUTANTS: Iterable[Step] = (
    rebalances_on_static_replacement,
    takes_returning_static_for_new,
    keeps_old_member_id,
    does_not_fence_heartbeats,
    does_not_fence_syncs,
    does_not_fence_commits,
    does_not_fence_joins,
    does_not_fence_leaves,
    calls_the_replaced_unknown,
    replaces_without_rebalance_while_completing,
    does_not_tell_returning_leader,
)
