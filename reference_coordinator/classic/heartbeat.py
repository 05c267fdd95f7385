"""Heartbeat, and the checks that it shares with SyncGroup."""

from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.classic.checks import unavailable
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import HeartbeatResponse
from reference_coordinator.classic.events import HeartbeatReceived
from reference_coordinator.classic.state import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
)


def heartbeat(context: Context, event: HeartbeatReceived) -> None:
    """Handle Heartbeat: it restarts the session, and only PreparingRebalance asks for a rejoin.

    While the group loads the answer is NONE: the member could do nothing about it.
    """
    group, profile = context.group, context.profile
    error = request_error(context, event.member_id, event.group_instance_id, event.generation)
    completing = group.state is COMPLETING_REBALANCE
    if error is Error.COORDINATOR_LOAD_IN_PROGRESS:
        error = NO_ERROR
    elif error is NO_ERROR and completing and not profile.heartbeats_count_while_completing:
        error = Error.REBALANCE_IN_PROGRESS
    elif error is NO_ERROR:
        context.keep_alive(group.members[event.member_id])
        if group.state is PREPARING_REBALANCE or group.members[event.member_id].is_called:
            error = Error.REBALANCE_IN_PROGRESS
    context.answer(event.request, HeartbeatResponse(error))


def request_error(
    context: Context, member_id: str, instance_id: str | None, generation: int
) -> Error:
    """Make the checks of SyncGroup and Heartbeat, in Kafka's order.

    Group id, coordinator, existence, Dead, instance id, member id, generation, Empty.
    """
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
