"""`step`: one event in, the next state and its effects out.

Heartbeat and SyncGroup are decided here.
"""

from collections.abc import Callable
from typing import Any, Protocol

from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.classic.admin import delete, describe, remove_group
from reference_coordinator.classic.changed import changed
from reference_coordinator.classic.checks import unavailable
from reference_coordinator.classic.context import Turn
from reference_coordinator.classic.effects import (
    AssignmentReceived,
    Effect,
    HeartbeatAnswer,
    SyncAnswer,
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
    Opened,
    RecordWritten,
    SyncReceived,
    TimerFired,
    Unloaded,
)
from reference_coordinator.classic.join_group import join
from reference_coordinator.classic.leave_group import leave
from reference_coordinator.classic.loading import load, load_started, opened, unload
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

FIRST_SYNC_WITH_PROTOCOL = 5
"""From this SyncGroup version on type and name of the protocol have to be given (KIP-559)."""


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
    turn = Turn(group, profile, event.at_ms, getattr(event, "choices", NO_CHOICES))
    _HANDLERS[type(event)](turn, event)
    return turn.group, tuple(turn.effects)


def check(turn: Turn, member_id: str, instance_id: str | None, generation: int) -> Error:
    """Make the checks of Sync and Heartbeat, in Kafka's order."""
    group = turn.group
    if not group.group_id:
        return Error.INVALID_GROUP_ID
    if (error := unavailable(group)) is not None:
        return error
    if not group.exists:
        return Error.UNKNOWN_MEMBER_ID
    if group.state is DEAD:
        return Error.COORDINATOR_NOT_AVAILABLE
    error = turn.validate(member_id, instance_id)
    if error is NO_ERROR and generation != group.generation:
        return Error.ILLEGAL_GENERATION
    if error is NO_ERROR and group.state is EMPTY:
        return Error.UNKNOWN_MEMBER_ID
    return error


def heartbeat(turn: Turn, event: HeartbeatReceived) -> None:
    """Handle Heartbeat: alive in every state, told to rejoin only in PreparingRebalance."""
    group, profile = turn.group, turn.profile
    error = check(turn, event.member_id, event.group_instance_id, event.generation)
    completing = group.state is COMPLETING_REBALANCE
    if error is Error.COORDINATOR_LOAD_IN_PROGRESS:
        error = NO_ERROR  # the member could do nothing about it
    elif error is NO_ERROR and completing and not profile.heartbeats_count_while_completing:
        error = Error.REBALANCE_IN_PROGRESS
    elif error is NO_ERROR:
        turn.keep_alive(group.members[event.member_id])
        if group.state is PREPARING_REBALANCE:
            error = Error.REBALANCE_IN_PROGRESS
    turn.answer(event.request, HeartbeatAnswer(error))


def sync(turn: Turn, event: SyncReceived) -> None:
    """Handle SyncGroup: followers wait for the leader, whose assignment is stored first."""
    group = turn.group
    error = sync_error(turn, event)
    if error is not NO_ERROR:
        turn.answer(event.request, SyncAnswer(error))
        return
    received_sync(turn, event.member_id)
    settle_leader(turn)
    group = turn.group
    member = group.members[event.member_id]
    if group.state is STABLE:
        turn.answer(event.request, sync_answer(group, member, NO_ERROR))
        if turn.profile.sync_in_stable_restarts_session:
            turn.keep_alive(member)
        return
    turn.put(changed(member, sync=event.request))
    if group.leader == event.member_id:
        turn.effects.append(
            AssignmentReceived(
                leader=event.member_id,
                generation=group.generation,
                members=len(group.members),
                static_members=len(group.static_ids),
            )
        )
        store_assignment(turn, event)


def sync_error(turn: Turn, event: SyncReceived) -> Error:
    """Make the checks of SyncGroup, in Kafka's order."""
    group = turn.group
    kind, protocol = event.protocol_type, event.protocol
    if event.api_version >= FIRST_SYNC_WITH_PROTOCOL and (kind is None or protocol is None):
        return Error.INCONSISTENT_GROUP_PROTOCOL  # before the coordinator is asked
    error = check(turn, event.member_id, event.group_instance_id, event.generation)
    if error is Error.COORDINATOR_LOAD_IN_PROGRESS:
        return turn.profile.sync_while_loading
    if error is not NO_ERROR:
        return error
    if kind not in (None, group.protocol_type) or protocol not in (None, group.protocol):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if group.state is PREPARING_REBALANCE:
        return Error.REBALANCE_IN_PROGRESS
    return NO_ERROR


_HANDLERS: dict[type[Event], Callable[[Turn, Any], None]] = {
    HeartbeatReceived: heartbeat,
    CommitReceived: commit,
    SyncReceived: sync,
    JoinReceived: join,
    LeaveReceived: leave,
    DescribeReceived: describe,
    DeleteReceived: delete,
    TimerFired: timer_fired,
    RecordWritten: record_written,
    LoadStarted: lambda turn, _: load_started(turn),
    Loaded: load,
    Opened: lambda turn, _: opened(turn),
    Unloaded: lambda turn, _: unload(turn),
    Expired: lambda turn, _: remove_group(turn),
}
