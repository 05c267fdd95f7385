"""The coming and going of the coordinator: load, unload. Only what was stored survives."""

from kafka_protocol.errors import Error
from reference_coordinator.classic.context import Turn
from reference_coordinator.classic.effects import JoinAnswer, Reason, SyncAnswer
from reference_coordinator.classic.events import Loaded, RecordWritten, TimerKind
from reference_coordinator.classic.members import Members
from reference_coordinator.classic.rebalance import prepare
from reference_coordinator.classic.record_writes import record_written
from reference_coordinator.classic.state import Group, Service, State


def load_started(turn: Turn) -> None:
    """Start loading: nothing is known of the group yet."""
    turn.group = Group(turn.group.group_id, service=Service.LOADING)


def load(turn: Turn, event: Loaded) -> None:
    """Take the group over as last stored: Stable or Empty, every session begins anew."""
    group_id, record = turn.group.group_id, event.record
    if record is None:
        turn.group = Group(group_id)
        return
    turn.group = Group(
        group_id,
        closed=event.closed and turn.profile.sessions_wait_for_clients,
        exists=True,
        state=State.STABLE if record.members else State.EMPTY,
        generation=record.generation,
        protocol_type=record.protocol_type,
        protocol=record.protocol,
        leader=record.leader,
        members=Members.of(record.members),
        static_ids={
            member.group_instance_id: member.member_id
            for member in record.members
            if member.group_instance_id is not None
        },
        stored=record,
    )
    if not turn.group.closed:
        _start_sessions(turn)
    if len(record.members) > turn.profile.settings.max_size:
        prepare(turn, Reason.OVER_CAPACITY)


def opened(turn: Turn) -> None:
    """Let sessions begin that waited for the broker to take requests."""
    if turn.group.closed:
        turn.change(closed=False)
        _start_sessions(turn)


def _start_sessions(turn: Turn) -> None:
    for member in turn.group.members.values():
        turn.keep_alive(member)


def unload(turn: Turn) -> None:
    """Give the group up: whoever waits is sent to the new coordinator."""
    for request in tuple(turn.group.writes):
        record_written(turn, RecordWritten(turn.at_ms, request, Error.NOT_COORDINATOR))
    for member in turn.group.members.values():
        if member.join is not None and turn.profile.unload_answers_waiting:
            turn.answer(member.join, JoinAnswer(Error.NOT_COORDINATOR, member.member_id))
        if member.sync is not None and turn.profile.unload_answers_waiting:
            turn.answer(member.sync, SyncAnswer(Error.NOT_COORDINATOR))
        turn.disarm(TimerKind.SESSION, member.member_id)
    for pending in turn.group.pending_joins:
        turn.disarm(TimerKind.SESSION, pending)
    turn.disarm(TimerKind.JOIN)
    turn.disarm(TimerKind.SYNC)
    turn.group = Group(turn.group.group_id, service=Service.ABSENT)
