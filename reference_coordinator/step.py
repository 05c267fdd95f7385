"""`step`: one event in, the next state and its effects out.

Requests other than JoinGroup, and timers, are decided here.
"""

from dataclasses import replace

from reference_coordinator.checks import unavailable, validate_member
from reference_coordinator.effects import (
    AssignmentReceived,
    CommitAnswer,
    Effect,
    HeartbeatAnswer,
    JoinAnswer,
    LeaveAnswer,
    Reason,
    SyncAnswer,
)
from reference_coordinator.errors import Error
from reference_coordinator.events import (
    CommitReceived,
    Event,
    HeartbeatReceived,
    JoinReceived,
    LeaveReceived,
    Loaded,
    LoadStarted,
    RecordWritten,
    SyncReceived,
    TimerFired,
    TimerKind,
    Unloaded,
)
from reference_coordinator.join import join
from reference_coordinator.profiles import Profile
from reference_coordinator.rebalance import (
    complete_if_all_joined,
    complete_join_phase,
    initial_delay_over,
    prepare,
    rebalance_or_complete,
    remove_member,
    sync_answer,
)
from reference_coordinator.serving import load, load_started, unload
from reference_coordinator.state import Group, State
from reference_coordinator.turn import Turn
from reference_coordinator.writes import record_written, store_assignment

FIRST_BATCH_LEAVE_VERSION = 3
"""From this LeaveGroup version on members are named in a list (KIP-345)."""
FIRST_VERSION_WITH_GROUP_ERRORS = 9
"""From this OffsetCommit version on an unknown group has an error of its own (KIP-848)."""


def step(group: Group, event: Event, profile: Profile) -> tuple[Group, tuple[Effect, ...]]:
    """Decide what one event does to a group.

    Pure: the same arguments give the same result; the group given is not changed.
    """
    turn = Turn(group, profile, event.at_ms)
    match event:
        case HeartbeatReceived():
            heartbeat(turn, event)
        case CommitReceived():
            commit(turn, event)
        case SyncReceived():
            sync(turn, event)
        case JoinReceived():
            turn.choices = event.choices
            join(turn, event)
        case LeaveReceived():
            turn.choices = event.choices
            leave(turn, event)
        case TimerFired():
            turn.choices = event.choices
            timer_fired(turn, event)
        case RecordWritten():
            turn.choices = event.choices
            record_written(turn, event)
        case LoadStarted():
            load_started(turn)
        case Loaded():
            load(turn, event.record)
        case Unloaded():
            unload(turn)
    return turn.group, tuple(turn.effects)


def check(group: Group, member_id: str, instance_id: str | None, generation: int) -> Error:
    """Make the checks of Sync and Heartbeat, in Kafka's order."""
    if not group.group_id:
        return Error.INVALID_GROUP_ID
    if (error := unavailable(group)) is not None:
        return error
    if not group.exists:
        return Error.UNKNOWN_MEMBER_ID
    if group.state is State.DEAD:
        return Error.COORDINATOR_NOT_AVAILABLE
    error = validate_member(group, member_id, instance_id)
    if error is Error.NONE and generation != group.generation:
        return Error.ILLEGAL_GENERATION
    return error


def heartbeat(turn: Turn, event: HeartbeatReceived) -> None:
    """Handle Heartbeat: alive in every state, told to rejoin only in PreparingRebalance."""
    group = turn.group
    error = check(group, event.member_id, event.group_instance_id, event.generation)
    if error is Error.COORDINATOR_LOAD_IN_PROGRESS:
        error = Error.NONE  # the member could do nothing about it
    elif error is Error.NONE:
        turn.keep_alive(group.members[event.member_id])
        if group.state is State.PREPARING_REBALANCE:
            error = Error.REBALANCE_IN_PROGRESS
    turn.answer(event.request, HeartbeatAnswer(error))


def commit(turn: Turn, event: CommitReceived) -> None:
    """Handle OffsetCommit; an accepted one restarts the session in Stable and PreparingRebalance.

    Without generation and ids it is accepted only while the group is empty (simple consumers).
    """
    group = turn.group
    error = commit_error(turn, event)
    if error is Error.NONE:
        turn.change(exists=True)
        if event.member_id in group.members and group.state in (
            State.STABLE,
            State.PREPARING_REBALANCE,
        ):
            turn.keep_alive(group.members[event.member_id])
    turn.answer(event.request, CommitAnswer(error))


def commit_error(turn: Turn, event: CommitReceived) -> Error:
    """Make the checks of OffsetCommit, in Kafka's order."""
    group = turn.group
    if (error := unavailable(group)) is not None:
        return error
    if not group.exists and event.generation >= 0:
        newer = event.api_version >= FIRST_VERSION_WITH_GROUP_ERRORS
        return turn.profile.commit_to_unknown_group_v9 if newer else Error.ILLEGAL_GENERATION
    if group.state is State.DEAD:
        return Error.COORDINATOR_NOT_AVAILABLE
    if event.generation < 0 and group.state is State.EMPTY:
        return Error.NONE
    if event.generation < 0 and not event.member_id and event.group_instance_id is None:
        return Error.UNKNOWN_MEMBER_ID
    error = validate_member(group, event.member_id, event.group_instance_id)
    if error is not Error.NONE:
        return error
    if event.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    if group.state is State.COMPLETING_REBALANCE:
        return Error.REBALANCE_IN_PROGRESS
    return Error.NONE


def sync(turn: Turn, event: SyncReceived) -> None:
    """Handle SyncGroup: followers wait for the leader, whose assignment is stored first."""
    group = turn.group
    error = check(group, event.member_id, event.group_instance_id, event.generation)
    if error is Error.COORDINATOR_LOAD_IN_PROGRESS:
        error = turn.profile.sync_while_loading
    elif error is Error.NONE and (
        event.protocol_type not in (None, group.protocol_type)
        or event.protocol not in (None, group.protocol)
    ):
        error = Error.INCONSISTENT_GROUP_PROTOCOL
    elif error is Error.NONE and group.state is State.PREPARING_REBALANCE:
        error = Error.REBALANCE_IN_PROGRESS
    if error is not Error.NONE:
        turn.answer(event.request, SyncAnswer(error))
        return
    received_sync(turn, event.member_id)
    member = turn.group.members[event.member_id]
    if group.state is State.STABLE:
        turn.answer(event.request, sync_answer(group, member, Error.NONE))
        return
    turn.put(replace(member, sync=event.request))
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


def received_sync(turn: Turn, member_id: str) -> None:
    """Note that a member asked for its assignment; the last one stops the sync timer."""
    turn.change(pending_syncs=turn.group.pending_syncs - {member_id})
    if not turn.group.pending_syncs:
        turn.disarm(TimerKind.SYNC)


def leave(turn: Turn, event: LeaveReceived) -> None:
    """Handle LeaveGroup: every member's own result, then at most one rebalance."""
    group = turn.group
    error = unavailable(group)
    if not group.group_id:
        error = Error.INVALID_GROUP_ID
    elif error is None and group.state is State.DEAD:
        error = Error.COORDINATOR_NOT_AVAILABLE
    if error is not None:
        turn.answer(event.request, LeaveAnswer(error))
        return
    results = tuple(
        (member_id, instance, leave_one(turn, member_id, instance))
        for member_id, instance in event.members
    )
    if any(result is Error.NONE for _, _, result in results):
        if turn.group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            left = next(member_id for member_id, _, error in results if error is Error.NONE)
            rebalance_or_complete(turn, Reason.LEAVE, left)
        else:
            complete_if_all_joined(turn)
    if event.api_version >= FIRST_BATCH_LEAVE_VERSION:
        turn.answer(event.request, LeaveAnswer(Error.NONE, results))
    else:
        turn.answer(event.request, LeaveAnswer(results[0][2]))


def leave_one(turn: Turn, member_id: str, instance_id: str | None) -> Error:
    """Take one member of a LeaveGroup out; an instance id alone names its current member."""
    group = turn.group
    if not member_id:
        if instance_id is None or instance_id not in group.static_ids:
            return Error.UNKNOWN_MEMBER_ID
        member_id = group.static_ids[instance_id]
    elif member_id not in group.pending_joins:
        error = validate_member(group, member_id, instance_id)
        if error is not Error.NONE:
            return error
    turn.disarm(TimerKind.SESSION, member_id)
    if (member := group.members.get(member_id)) is not None:
        turn.answer_join(member, JoinAnswer(Error.UNKNOWN_MEMBER_ID))
    remove_member(turn, member_id)
    return Error.NONE


def timer_fired(turn: Turn, event: TimerFired) -> None:
    """Act on a timer that ran out."""
    kind, member_id = event.timer.kind, event.timer.member_id
    group = turn.group
    if kind is TimerKind.SESSION:
        session_expired(turn, member_id)
    elif kind is TimerKind.JOIN:
        if group.state is not State.PREPARING_REBALANCE:
            return
        if group.previous_state is State.EMPTY:
            initial_delay_over(turn)
        else:
            complete_join_phase(turn)
    elif group.pending_syncs and group.state in (State.COMPLETING_REBALANCE, State.STABLE):
        for pending in sorted(group.pending_syncs):
            remove_member(turn, pending)
            turn.disarm(TimerKind.SESSION, pending)
        prepare(turn, Reason.PENDING_SYNC)


def session_expired(turn: Turn, member_id: str) -> None:
    """Remove a member, or a pending one, whose session ended; waiting members live on."""
    group = turn.group
    member = group.members.get(member_id)
    if member_id in group.pending_joins:
        remove_member(turn, member_id)
    elif member is None or member.waits:
        return
    else:
        turn.answer_join(member, JoinAnswer(Error.UNKNOWN_MEMBER_ID))
        remove_member(turn, member_id)
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            prepare(turn, Reason.SESSION_EXPIRED, member_id)
            return
    if turn.group.state is State.PREPARING_REBALANCE and turn.group.all_joined:
        if turn.profile.expiry_ends_initial_delay:
            complete_join_phase(turn)
        else:
            complete_if_all_joined(turn)
