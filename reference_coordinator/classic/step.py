"""`step`: one event in, the next state and its effects out.

Heartbeat and SyncGroup are decided here.
"""

from collections.abc import Callable
from typing import Any, Protocol

from kafka_protocol.errors import NO_ERROR, Error
from kafka_protocol.versions import FIRST_SYNC_WITH_PROTOCOL
from reference_coordinator.classic.admin import delete, describe, remove_group
from reference_coordinator.classic.changed import changed
from reference_coordinator.classic.checks import unavailable
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import (
    AssignmentReceived,
    Effect,
    HeartbeatResponse,
    SyncResponse,
)
from reference_coordinator.classic.events import (
    NO_CHOICES,
    CommitReceived,
    DeleteReceived,
    DescribeReceived,
    Event,
    Expired,
    HeartbeatReceived,
    JoinReceived,
    LeaveReceived,
    Loaded,
    LoadStarted,
    RecordWritten,
    RequestsEnabled,
    SyncReceived,
    TimerFired,
    Unloaded,
)
from reference_coordinator.classic.join_group import join
from reference_coordinator.classic.leave_group import leave
from reference_coordinator.classic.loading import load, load_started, requests_enabled, unload
from reference_coordinator.classic.membership import received_sync
from reference_coordinator.classic.offset_commit import commit
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.rebalance import settle_leader, sync_answer
from reference_coordinator.classic.record_writes import record_written, store_assignment
from reference_coordinator.classic.state import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    Group,
)
from reference_coordinator.classic.timers import timer_fired


class Step(Protocol):
    """The form of `step`, and of coordinators that break a rule of it.

    A Heartbeat or an OffsetCommit that leaves the group as it is looks only at what the group is
    (service, existence, state, generation), at its own member, and at the owner of its instance;
    its time, and that of a SyncGroup that changes nothing, is where deadlines are counted from.
    `replay.reactions` relies on that.
    """

    __name__: str

    def __call__(
        self, group: Group, event: Event, profile: Profile
    ) -> tuple[Group, tuple[Effect, ...]]:
        """Decide what one event does to a group."""


def step(group: Group, event: Event, profile: Profile) -> tuple[Group, tuple[Effect, ...]]:
    """Decide what one event does to a group.

    Pure: the same arguments give the same result; the group given is not changed.
    """
    context = Context(group, profile, event.at_ms, getattr(event, "choices", NO_CHOICES))
    _HANDLERS[type(event)](context, event)
    return context.group, tuple(context.effects)


def check(context: Context, member_id: str, instance_id: str | None, generation: int) -> Error:
    """Make the checks of Sync and Heartbeat, in Kafka's order."""
    group = context.group
    if not group.group_id:
        return Error.INVALID_GROUP_ID
    if (error := unavailable(group)) is not None:
        return error
    if not group.exists:
        return Error.UNKNOWN_MEMBER_ID
    if group.state is DEAD:
        return Error.COORDINATOR_NOT_AVAILABLE
    error = context.validate(member_id, instance_id)
    if error is NO_ERROR and generation != group.generation:
        return Error.ILLEGAL_GENERATION
    if error is NO_ERROR and group.state is EMPTY:
        return Error.UNKNOWN_MEMBER_ID
    return error


def heartbeat(context: Context, event: HeartbeatReceived) -> None:
    """Handle Heartbeat: alive in every state, told to rejoin only in PreparingRebalance."""
    group, profile = context.group, context.profile
    error = check(context, event.member_id, event.group_instance_id, event.generation)
    completing = group.state is COMPLETING_REBALANCE
    if error is Error.COORDINATOR_LOAD_IN_PROGRESS:
        error = NO_ERROR  # the member could do nothing about it
    elif error is NO_ERROR and completing and not profile.heartbeats_count_while_completing:
        error = Error.REBALANCE_IN_PROGRESS
    elif error is NO_ERROR:
        context.keep_alive(group.members[event.member_id])
        if group.state is PREPARING_REBALANCE:
            error = Error.REBALANCE_IN_PROGRESS
    context.answer(event.request, HeartbeatResponse(error))


def sync(context: Context, event: SyncReceived) -> None:
    """Handle SyncGroup: followers wait for the leader, whose assignment is stored first."""
    group = context.group
    error = sync_error(context, event)
    if error is not NO_ERROR:
        context.answer(event.request, SyncResponse(error))
        return
    received_sync(context, event.member_id)
    settle_leader(context)
    group = context.group
    member = group.members[event.member_id]
    if group.state is STABLE:
        context.answer(event.request, sync_answer(group, member, NO_ERROR))
        if context.profile.sync_in_stable_restarts_session:
            context.keep_alive(member)
        return
    context.put(changed(member, sync=event.request))
    if group.leader == event.member_id:
        context.effects.append(
            AssignmentReceived(
                leader=event.member_id,
                generation=group.generation,
                members=len(group.members),
                static_members=len(group.static_ids),
            )
        )
        store_assignment(context, event)


def sync_error(context: Context, event: SyncReceived) -> Error:
    """Make the checks of SyncGroup, in Kafka's order."""
    group = context.group
    kind, protocol = event.protocol_type, event.protocol
    if event.api_version >= FIRST_SYNC_WITH_PROTOCOL and (kind is None or protocol is None):
        return Error.INCONSISTENT_GROUP_PROTOCOL  # before the coordinator is asked
    error = check(context, event.member_id, event.group_instance_id, event.generation)
    if error is Error.COORDINATOR_LOAD_IN_PROGRESS:
        return context.profile.sync_while_loading
    if error is not NO_ERROR:
        return error
    if kind not in (None, group.protocol_type) or protocol not in (None, group.protocol):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if group.state is PREPARING_REBALANCE:
        return Error.REBALANCE_IN_PROGRESS
    return NO_ERROR


_HANDLERS: dict[type[Event], Callable[[Context, Any], None]] = {
    HeartbeatReceived: heartbeat,
    CommitReceived: commit,
    SyncReceived: sync,
    JoinReceived: join,
    LeaveReceived: leave,
    DescribeReceived: describe,
    DeleteReceived: delete,
    TimerFired: timer_fired,
    RecordWritten: record_written,
    LoadStarted: lambda context, _: load_started(context),
    Loaded: load,
    RequestsEnabled: lambda context, _: requests_enabled(context),
    Unloaded: lambda context, _: unload(context),
    Expired: lambda context, _: remove_group(context),
}
