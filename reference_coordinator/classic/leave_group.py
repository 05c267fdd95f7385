"""LeaveGroup: members go in one step (Java) or one by one (Scala), each with its own result."""

from kafka_protocol.errors import Error
from kafka_protocol.versions import FIRST_BATCH_LEAVE
from reference_coordinator.classic.checks import unavailable
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import JoinResponse, LeaveResponse, Reason
from reference_coordinator.classic.events import LeaveReceived, TimerKind
from reference_coordinator.classic.membership import remove_member, remove_pending
from reference_coordinator.classic.rebalance import complete_if_all_joined, prepare
from reference_coordinator.classic.state import State


def leave(context: Context, event: LeaveReceived) -> None:
    """Handle LeaveGroup."""
    group = context.group
    error = unavailable(group)
    if not group.group_id:
        error = Error.INVALID_GROUP_ID
    elif error is None and group.state is State.DEAD:
        error = Error.COORDINATOR_NOT_AVAILABLE
    if error is not None:
        context.answer(event.request, LeaveResponse(error))
        return
    results: tuple[tuple[str, str | None, Error], ...] = ()
    for member_id, instance in event.members:
        result = leave_one(context, member_id, instance)
        if result is Error.UNKNOWN_SERVER_ERROR:
            context.answer(event.request, LeaveResponse(result))
            return
        results += ((member_id, instance, result),)
    left = [member_id for member_id, _, result in results if result is Error.NONE]
    if left and context.profile.leave_is_one_step:
        go_on_without(context, left[0])
    if event.api_version >= FIRST_BATCH_LEAVE:
        context.answer(event.request, LeaveResponse(Error.NONE, results))
    else:
        context.answer(event.request, LeaveResponse(results[0][2]))


def leave_one(context: Context, member_id: str, instance_id: str | None) -> Error:
    """Take one member of a LeaveGroup out, unless it cannot be."""
    error, member_id = leaving(context, member_id, instance_id)
    if error is not Error.NONE:
        return error
    one_by_one = not context.profile.leave_is_one_step
    if member_id in context.group.pending_joins:
        remove_pending(context, member_id)
        if one_by_one:
            complete_if_all_joined(context)
    else:
        context.disarm(TimerKind.SESSION, member_id)
        context.answer_join(context.group.members[member_id], JoinResponse(Error.UNKNOWN_MEMBER_ID))
        remove_member(context, member_id)
        if one_by_one:
            go_on_without(context, member_id)
    return Error.NONE


def leaving(context: Context, member_id: str, instance_id: str | None) -> tuple[Error, str]:
    """Tell which member is meant; an instance id alone names its current member.

    UNKNOWN_SERVER_ERROR is an exception in Kafka, with which the whole request fails.
    """
    group = context.group
    owner = group.static_ids.get(instance_id) if instance_id is not None else None
    if owner is not None and member_id in ("", owner):
        # an instance may outlast its member, see `refused_instance_is_forgotten`
        return (Error.NONE if owner in group.members else Error.UNKNOWN_SERVER_ERROR), owner
    if not member_id:
        return Error.UNKNOWN_MEMBER_ID, ""
    if member_id not in group.pending_joins:
        return context.validate(member_id, instance_id), member_id
    if instance_id is None or context.profile.pending_may_name_an_instance:
        return Error.NONE, member_id
    return Error.FENCED_INSTANCE_ID if owner else Error.UNKNOWN_SERVER_ERROR, member_id


def go_on_without(context: Context, member_id: str) -> None:
    """Rebalance, or end the join phase under way, for want of those who left."""
    if context.group.state in (State.STABLE, State.COMPLETING_REBALANCE):
        prepare(context, Reason.LEAVE, member_id)
    else:
        complete_if_all_joined(context)
