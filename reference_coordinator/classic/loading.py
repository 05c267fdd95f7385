"""The coming and going of the coordinator: load, unload. Only what was stored survives."""

from kafka_protocol.errors import Error
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import JoinResponse, Reason, SyncResponse
from reference_coordinator.classic.events import Loaded, RecordWritten, TimerKind
from reference_coordinator.classic.members import Members
from reference_coordinator.classic.rebalance import prepare
from reference_coordinator.classic.record_writes import record_written
from reference_coordinator.classic.state import Group, Service, State


def load_started(context: Context) -> None:
    """Start loading: nothing is known of the group yet."""
    context.group = Group(context.group.group_id, service=Service.LOADING)


def load(context: Context, event: Loaded) -> None:
    """Take the group over as last stored: Stable or Empty, every session begins anew."""
    group_id, record = context.group.group_id, event.record
    if record is None:
        context.group = Group(group_id)
        return
    context.group = Group(
        group_id,
        sessions_deferred=event.requests_disabled and context.profile.sessions_wait_for_clients,
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
    if not context.group.sessions_deferred:
        _start_sessions(context)
    if len(record.members) > context.profile.settings.max_size:
        prepare(context, Reason.OVER_CAPACITY)


def requests_enabled(context: Context) -> None:
    """Let sessions begin that waited for the broker to take requests."""
    if context.group.sessions_deferred:
        context.change(sessions_deferred=False)
        _start_sessions(context)


def _start_sessions(context: Context) -> None:
    for member in context.group.members.values():
        context.keep_alive(member)


def unload(context: Context) -> None:
    """Give the group up: whoever waits is sent to the new coordinator."""
    for request in tuple(context.group.writes):
        record_written(context, RecordWritten(context.at_ms, request, Error.NOT_COORDINATOR))
    for member in context.group.members.values():
        if member.join is not None and context.profile.unload_answers_waiting:
            context.answer(member.join, JoinResponse(Error.NOT_COORDINATOR, member.member_id))
        if member.sync is not None and context.profile.unload_answers_waiting:
            context.answer(member.sync, SyncResponse(Error.NOT_COORDINATOR))
        context.disarm(TimerKind.SESSION, member.member_id)
    for pending in context.group.pending_joins:
        context.disarm(TimerKind.SESSION, pending)
    context.disarm(TimerKind.JOIN)
    context.disarm(TimerKind.SYNC)
    context.group = Group(context.group.group_id, service=Service.ABSENT)
