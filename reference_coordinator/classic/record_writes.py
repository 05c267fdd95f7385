"""Outcomes of record writes: pending requests are answered, the group moves on or steps back."""

from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.delete_groups import forget_group
from reference_coordinator.classic.effects import DeleteResponse, JoinResponse, Reason, SyncResponse
from reference_coordinator.classic.events import RecordWritten, SyncReceived
from reference_coordinator.classic.hot_standby import NOTHING
from reference_coordinator.classic.membership import replace_member_id
from reference_coordinator.classic.rebalance import (
    answer_syncs,
    generation_response,
    member_list,
    rebalance_or_complete,
)
from reference_coordinator.classic.state import (
    COMPLETING_REBALANCE,
    PREPARING_REBALANCE,
    STABLE,
    Member,
    Write,
)
from reference_coordinator.frozen import replace_fields


def store_assignment(context: Context, event: SyncReceived) -> None:
    """Begin to store the leader's assignment; members that it leaves out get an empty one.

    Kafka fails where a member has no metadata for the selected protocol, which a static rejoin
    could cause before 2.5.0 (`return_makes_completing_group_rebalance`). The leader's SyncGroup
    stays pending even if it was answered with that error, so it may be answered once more.
    """
    if not context.group.all_support_protocol:
        context.fail(event, SyncResponse(Error.UNKNOWN_SERVER_ERROR))
        return
    assigned = dict(event.assignments)
    assignment = {
        member_id: NOTHING if member.is_standby else assigned.get(member_id, "")
        for member_id, member in context.group.members.items()
    }
    write = Write(event.request, context.group.generation, assignment=assignment)
    writes = {**context.group.writes, event.request: write}
    context.persist(event.request, assignment, writes=writes)


def record_written(context: Context, event: RecordWritten) -> None:
    """Handle the outcome of a write; that of an earlier generation's assignment is ignored."""
    write = context.group.writes.get(event.request)
    if write is None:
        return
    context.change(writes={k: w for k, w in context.group.writes.items() if k != event.request})
    if write.deletes:
        forget_group(context)
        context.answer(event.request, DeleteResponse(NO_ERROR))
    elif write.member_id is not None:
        replacement_written(context, write, event.error)
    elif (
        context.group.state is COMPLETING_REBALANCE and context.group.generation == write.generation
    ):
        assignment_written(context, write, event.error)


def assignment_written(context: Context, write: Write, error: Error) -> None:
    """Become Stable, or start another rebalance if the assignment was not stored."""
    stored = error is NO_ERROR
    assignments = write.assignment if stored else {}

    def assigned(member: Member) -> Member:
        return replace_fields(member, assignment=assignments.get(member.member_id, ""))

    context.change(members=context.group.members.each(assigned))
    answer_syncs(context, error)
    if stored:
        context.transition(STABLE)
    else:
        rebalance_or_complete(context, Reason.ASSIGNMENT_ERROR)


def replacement_written(context: Context, write: Write, error: Error) -> None:
    """Answer the static member that was replaced in Stable, or undo the replacement.

    Versions below 9 get the former leader's id, so that a replaced leader does not assign again;
    the price is KAFKA-13435. From v9 on it learns that it leads, with skipAssignment (KIP-814).
    """
    group = context.group
    new_id = write.member_id or ""
    if error is not NO_ERROR:
        replacement_failed(context, write, error)
        return
    member = member_to_answer(context, write)
    if member is None:
        return
    if not write.skip_assignment_version:
        context.answer_join(
            member, generation_response(group, new_id, leader=write.leader_before or "")
        )
        return
    leads = group.leader == new_id
    if leads and group.state is PREPARING_REBALANCE:
        return  # Kafka cannot list the members now: the JoinGroup counts for this rebalance
    listed = member_list(group) if leads else frozenset()
    context.answer_join(member, generation_response(group, new_id, listed, skip_assignment=leads))


def member_to_answer(context: Context, write: Write) -> Member | None:
    """Return the member whose JoinGroup the write of a static rejoin answers, if it is there."""
    group = context.group
    member_id = write.member_id
    if write.replaced is not None and context.profile.store_answers_latest_return:
        member_id = group.static_ids.get(write.replaced.group_instance_id or "")
    member = group.members.get(member_id or "")
    return None if member is None or member.is_new else member


def replacement_failed(context: Context, write: Write, error: Error) -> None:
    """Restore the old member id (KAFKA-18263), unless the member is gone or replaced again."""
    group, old = context.group, write.replaced
    member = group.members.get(write.member_id or "")
    if member is None or old is None:
        return
    reverted = replace_fields(
        replace_member_id(context, replace_fields(member, join=None), old.member_id),
        session_timeout_ms=old.session_timeout_ms,
        rebalance_timeout_ms=old.rebalance_timeout_ms,
    )
    if context.profile.failed_replacement_restores_protocols:
        reverted = replace_fields(reverted, protocols=old.protocols)
    context.put(reverted)
    context.keep_alive(reverted)
    if member.join == write.request:
        context.answer(
            write.request,
            JoinResponse(
                error,
                generation=group.generation,
                protocol_type=group.protocol_type,
                protocol=group.protocol,
                leader=write.leader_before or "",
            ),
        )
