"""LeaveGroup: members go in one step (Java) or one by one (Scala), each with its own result."""

from kafka_protocol.errors import Error
from reference_coordinator.classic.checks import unavailable
from reference_coordinator.classic.context import Turn
from reference_coordinator.classic.effects import JoinAnswer, LeaveAnswer, Reason
from reference_coordinator.classic.events import LeaveReceived, TimerKind
from reference_coordinator.classic.membership import remove_member, remove_pending
from reference_coordinator.classic.rebalance import complete_if_all_joined, prepare
from reference_coordinator.classic.state import State

FIRST_BATCH_LEAVE_VERSION = 3
"""From this LeaveGroup version on members are named in a list (KIP-345)."""


def leave(turn: Turn, event: LeaveReceived) -> None:
    """Handle LeaveGroup."""
    group = turn.group
    error = unavailable(group)
    if not group.group_id:
        error = Error.INVALID_GROUP_ID
    elif error is None and group.state is State.DEAD:
        error = Error.COORDINATOR_NOT_AVAILABLE
    if error is not None:
        turn.answer(event.request, LeaveAnswer(error))
        return
    results: tuple[tuple[str, str | None, Error], ...] = ()
    for member_id, instance in event.members:
        result = leave_one(turn, member_id, instance)
        if result is Error.UNKNOWN_SERVER_ERROR:
            turn.answer(event.request, LeaveAnswer(result))
            return
        results += ((member_id, instance, result),)
    left = [member_id for member_id, _, result in results if result is Error.NONE]
    if left and turn.profile.leave_is_one_step:
        go_on_without(turn, left[0])
    if event.api_version >= FIRST_BATCH_LEAVE_VERSION:
        turn.answer(event.request, LeaveAnswer(Error.NONE, results))
    else:
        turn.answer(event.request, LeaveAnswer(results[0][2]))


def leave_one(turn: Turn, member_id: str, instance_id: str | None) -> Error:
    """Take one member of a LeaveGroup out, unless it cannot be."""
    error, member_id = leaving(turn, member_id, instance_id)
    if error is not Error.NONE:
        return error
    one_by_one = not turn.profile.leave_is_one_step
    if member_id in turn.group.pending_joins:
        remove_pending(turn, member_id)
        if one_by_one:
            complete_if_all_joined(turn)
    else:
        turn.disarm(TimerKind.SESSION, member_id)
        turn.answer_join(turn.group.members[member_id], JoinAnswer(Error.UNKNOWN_MEMBER_ID))
        remove_member(turn, member_id)
        if one_by_one:
            go_on_without(turn, member_id)
    return Error.NONE


def leaving(turn: Turn, member_id: str, instance_id: str | None) -> tuple[Error, str]:
    """Tell which member is meant; an instance id alone names its current member.

    UNKNOWN_SERVER_ERROR is an exception in Kafka, with which the whole request fails.
    """
    group = turn.group
    owner = group.static_ids.get(instance_id) if instance_id is not None else None
    if owner is not None and member_id in ("", owner):
        # an instance may outlast its member, see `refused_instance_is_forgotten`
        return (Error.NONE if owner in group.members else Error.UNKNOWN_SERVER_ERROR), owner
    if not member_id:
        return Error.UNKNOWN_MEMBER_ID, ""
    if member_id not in group.pending_joins:
        return turn.validate(member_id, instance_id), member_id
    if instance_id is None or turn.profile.pending_may_name_an_instance:
        return Error.NONE, member_id
    return Error.FENCED_INSTANCE_ID if owner else Error.UNKNOWN_SERVER_ERROR, member_id


def go_on_without(turn: Turn, member_id: str) -> None:
    """Rebalance, or end the join phase under way, for want of those who left."""
    if turn.group.state in (State.STABLE, State.COMPLETING_REBALANCE):
        prepare(turn, Reason.LEAVE, member_id)
    else:
        complete_if_all_joined(turn)
