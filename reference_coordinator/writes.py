"""Record writes: what waits for them, and what their outcome does."""

from dataclasses import replace

from reference_coordinator.effects import JoinAnswer, Reason
from reference_coordinator.errors import Error
from reference_coordinator.events import RecordWritten, SyncReceived
from reference_coordinator.rebalance import (
    answer_syncs,
    generation_answer,
    member_list,
    rebalance_or_complete,
)
from reference_coordinator.state import State, Write
from reference_coordinator.turn import Turn


def store_assignment(turn: Turn, event: SyncReceived) -> None:
    """Begin to store the leader's assignment; members it leaves out get an empty one."""
    given = dict(event.assignments)
    assignment = {member_id: given.get(member_id, "") for member_id in turn.group.members}
    write = Write(event.request, turn.group.generation, assignment=assignment)
    turn.change(writes={**turn.group.writes, event.request: write})
    turn.persist(event.request, assignment)


def record_written(turn: Turn, event: RecordWritten) -> None:
    """Act on a write's outcome; Kafka ignores one that the group has moved on from."""
    write = turn.group.writes.get(event.request)
    if write is None:
        return
    turn.change(writes={k: w for k, w in turn.group.writes.items() if k != event.request})
    if write.member_id is not None:
        replacement_written(turn, write, event.error)
    elif (
        turn.group.state is State.COMPLETING_REBALANCE and turn.group.generation == write.generation
    ):
        assignment_written(turn, write, event.error)


def assignment_written(turn: Turn, write: Write, error: Error) -> None:
    """Become Stable, or rebalance again where the assignment could not be stored."""
    stored = error is Error.NONE
    for member in tuple(turn.group.members.values()):
        assignment = write.assignment.get(member.member_id, "") if stored else ""
        turn.put(replace(member, assignment=assignment))
    answer_syncs(turn, error)
    if stored:
        turn.transition(State.STABLE)
    else:
        rebalance_or_complete(turn, Reason.ASSIGNMENT_ERROR)


def replacement_written(turn: Turn, write: Write, error: Error) -> None:
    """Answer the static member that was replaced in Stable, or take the replacement back.

    Versions below 9 are told the leader from before, so nobody takes itself for the leader: the
    price is KAFKA-13435, which v9 mends (KIP-814).
    """
    group = turn.group
    member = group.members.get(write.member_id or "")
    if member is None:
        return
    if error is not Error.NONE:
        if member.join is not None and write.replaced is not None:
            turn.answer(
                member.join,
                JoinAnswer(
                    error,
                    generation=group.generation,
                    protocol_type=group.protocol_type,
                    protocol=group.protocol,
                    leader=write.leader_before or "",
                ),
            )
        revert(turn, write)
    elif write.skip_assignment_version:
        leads = group.leader == member.member_id
        if leads and group.state is State.PREPARING_REBALANCE:
            return  # Kafka cannot list the members now: the join counts for this rebalance
        everyone = member_list(group) if leads else frozenset()
        turn.answer_join(
            member, generation_answer(group, member.member_id, everyone, skip_assignment=leads)
        )
    else:
        turn.answer_join(
            member, generation_answer(group, member.member_id, leader=write.leader_before or "")
        )


def revert(turn: Turn, write: Write) -> None:
    """Put the old member id back after a failed replacement (KAFKA-18263)."""
    old, new_id = write.replaced, write.member_id or ""
    if old is None:
        return
    members = {k: m for k, m in turn.group.members.items() if k != new_id}
    turn.change(
        members=members | {old.member_id: old},
        static_ids={**turn.group.static_ids, old.group_instance_id or "": old.member_id},
        leader=old.member_id if turn.group.leader == new_id else turn.group.leader,
    )
    turn.keep_alive(old)
