"""Record writes: what waits for them, and what their outcome does."""

from kafka_protocol.errors import Error
from reference_coordinator.classic.admin import forget_group
from reference_coordinator.classic.changed import changed
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import DeleteResponse, JoinResponse, Reason, SyncResponse
from reference_coordinator.classic.events import RecordWritten, SyncReceived
from reference_coordinator.classic.membership import swap_member
from reference_coordinator.classic.rebalance import (
    answer_syncs,
    generation_answer,
    member_list,
    rebalance_or_complete,
)
from reference_coordinator.classic.state import Member, State, Write


def store_assignment(context: Context, event: SyncReceived) -> None:
    """Begin to store the leader's assignment; members it leaves out get an empty one.

    Kafka fails where a member has no metadata for the protocol, as it may be after a return before
    2.5.0 (`return_makes_completing_group_rebalance`). The leader is told so, or is not, and waits
    all the same: it may be answered once more.
    """
    if not context.group.all_support_protocol:
        context.fail(event, SyncResponse(Error.UNKNOWN_SERVER_ERROR))
        return
    given = dict(event.assignments)
    assignment = {member_id: given.get(member_id, "") for member_id in context.group.members}
    write = Write(event.request, context.group.generation, assignment=assignment)
    writes = {**context.group.writes, event.request: write}
    context.persist(event.request, assignment, writes=writes)


def record_written(context: Context, event: RecordWritten) -> None:
    """Act on a write's outcome; Kafka ignores one that the group has moved on from."""
    write = context.group.writes.get(event.request)
    if write is None:
        return
    context.change(writes={k: w for k, w in context.group.writes.items() if k != event.request})
    if write.deletes:
        forget_group(context)
        context.answer(event.request, DeleteResponse(Error.NONE))
    elif write.member_id is not None:
        replacement_written(context, write, event.error)
    elif (
        context.group.state is State.COMPLETING_REBALANCE
        and context.group.generation == write.generation
    ):
        assignment_written(context, write, event.error)


def assignment_written(context: Context, write: Write, error: Error) -> None:
    """Become Stable, or rebalance again where the assignment could not be stored."""
    stored = error is Error.NONE
    shares = write.assignment if stored else {}

    def share(member: Member) -> Member:
        return changed(member, assignment=shares.get(member.member_id, ""))

    context.change(members=context.group.members.each(share))
    answer_syncs(context, error)
    if stored:
        context.transition(State.STABLE)
    else:
        rebalance_or_complete(context, Reason.ASSIGNMENT_ERROR)


def replacement_written(context: Context, write: Write, error: Error) -> None:
    """Answer the static member that was replaced in Stable, or take the replacement back.

    Versions below 9 are told the leader from before, so nobody takes itself for the leader: the
    price is KAFKA-13435, which v9 mends (KIP-814).
    """
    group = context.group
    new_id = write.member_id or ""
    if error is not Error.NONE:
        replacement_failed(context, write, error)
        return
    member = answered_by(context, write)
    if member is None:
        return
    if not write.skip_assignment_version:
        context.answer_join(
            member, generation_answer(group, new_id, leader=write.leader_before or "")
        )
        return
    leads = group.leader == new_id
    if leads and group.state is State.PREPARING_REBALANCE:
        return  # Kafka cannot list the members now: the join counts for this rebalance
    everyone = member_list(group) if leads else frozenset()
    context.answer_join(member, generation_answer(group, new_id, everyone, skip_assignment=leads))


def answered_by(context: Context, write: Write) -> Member | None:
    """Return the member whose JoinGroup the write of a return answers, if it is still there."""
    group = context.group
    member_id = write.member_id
    if write.replaced is not None and context.profile.store_answers_latest_return:
        member_id = group.static_ids.get(write.replaced.group_instance_id or "")
    member = group.members.get(member_id or "")
    return None if member is None or member.is_new else member


def replacement_failed(context: Context, write: Write, error: Error) -> None:
    """Put the old member id back (KAFKA-18263), unless the member is gone or was replaced again."""
    group, old = context.group, write.replaced
    member = group.members.get(write.member_id or "")
    if member is None or old is None:
        return
    reverted = changed(
        swap_member(context, changed(member, join=None), old.member_id),
        session_timeout_ms=old.session_timeout_ms,
        rebalance_timeout_ms=old.rebalance_timeout_ms,
    )
    if context.profile.failed_return_restores_protocols:
        reverted = changed(reverted, protocols=old.protocols)
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
