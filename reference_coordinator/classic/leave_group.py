"""LeaveGroup: members are removed in one step (Java) or one by one (Scala), each with a result.

Errors of the whole request come first (`leave`): INVALID_GROUP_ID, then NOT_COORDINATOR or
COORDINATOR_LOAD_IN_PROGRESS, then COORDINATOR_NOT_AVAILABLE of a Dead group. No member leaves then.

Precedence of one member's errors (`leaving_member`); the first that applies counts:

1. A known instance id, alone or with the id of its member: no error.
2. An empty member id: UNKNOWN_MEMBER_ID.
3. The id of a pending member: no error (before 3.0 not with an instance id).
4. An unknown instance id: UNKNOWN_MEMBER_ID (before 3.0 it is ignored).
5. The instance id of another member: FENCED_INSTANCE_ID.
6. An unknown member id: UNKNOWN_MEMBER_ID.

From v3 on the response has a result for each member; before, one error for its only member.
"""

from kafka_protocol.errors import NO_ERROR, Error
from kafka_protocol.versions import FIRST_BATCH_LEAVE
from reference_coordinator.classic.checks import unavailable
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import JoinResponse, LeaveResponse, Reason
from reference_coordinator.classic.events import SESSION_TIMER, LeaveReceived
from reference_coordinator.classic.group_config import gone_quietly
from reference_coordinator.classic.membership import remove_member, remove_pending
from reference_coordinator.classic.rebalance import complete_if_all_joined, prepare
from reference_coordinator.classic.state import COMPLETING_REBALANCE, DEAD, STABLE


def leave(context: Context, event: LeaveReceived) -> None:
    """Handle LeaveGroup."""
    group = context.group
    error = unavailable(group)
    if not group.group_id:
        error = Error.INVALID_GROUP_ID
    elif error is None and group.state is DEAD:
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
    left = [member_id for member_id, _, result in results if result is NO_ERROR]
    if left and context.profile.leave_is_one_step and not gone_quietly(context, group):
        rebalance_after_leave(context, left[0])
    if event.api_version >= FIRST_BATCH_LEAVE:
        context.answer(event.request, LeaveResponse(NO_ERROR, results))
    else:
        context.answer(event.request, LeaveResponse(results[0][2]))


def leave_one(context: Context, member_id: str, instance_id: str | None) -> Error:
    """Remove one member that a LeaveGroup names, and return its result."""
    error, member_id = leaving_member(context, member_id, instance_id)
    if error is not NO_ERROR:
        return error
    one_by_one = not context.profile.leave_is_one_step
    if member_id in context.group.pending_joins:
        remove_pending(context, member_id)
        if one_by_one:
            complete_if_all_joined(context)
    else:
        context.disarm(SESSION_TIMER, member_id)
        context.answer_join(context.group.members[member_id], JoinResponse(Error.UNKNOWN_MEMBER_ID))
        remove_member(context, member_id)
        if one_by_one:
            rebalance_after_leave(context, member_id)
    return NO_ERROR


def leaving_member(context: Context, member_id: str, instance_id: str | None) -> tuple[Error, str]:
    """Return the error for one entry of the request, and the id of the member that it names.

    UNKNOWN_SERVER_ERROR stands for an exception in Kafka, with which the whole request fails.
    """
    group = context.group
    owner = group.static_ids.get(instance_id) if instance_id is not None else None
    if owner is not None and member_id in ("", owner):
        # a mapping may outlive its member, see `refused_instance_is_forgotten`
        return (NO_ERROR if owner in group.members else Error.UNKNOWN_SERVER_ERROR), owner
    if not member_id:
        return Error.UNKNOWN_MEMBER_ID, ""
    if member_id not in group.pending_joins:
        return context.validate(member_id, instance_id), member_id
    if instance_id is None or context.profile.pending_may_name_an_instance:
        return NO_ERROR, member_id
    return Error.FENCED_INSTANCE_ID if owner else Error.UNKNOWN_SERVER_ERROR, member_id


def rebalance_after_leave(context: Context, member_id: str) -> None:
    """Start a rebalance after members left, or complete the join phase that waited for them."""
    if context.group.state in (STABLE, COMPLETING_REBALANCE):
        prepare(context, Reason.LEAVE, member_id)
    else:
        complete_if_all_joined(context)
