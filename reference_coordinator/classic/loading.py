"""Failover: a broker loads the group from its last record, or gives it up.

Only what was stored survives. The sessions of all members restart when the group is loaded, each
with its full timeout (KIP-345), even if the broker does not accept requests yet.
"""

from kafka_protocol.errors import Error
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import JoinResponse, Reason, SyncResponse
from reference_coordinator.classic.events import (
    JOIN_TIMER,
    SESSION_TIMER,
    SYNC_TIMER,
    WAIT_TIMER,
    Loaded,
    RecordWritten,
)
from reference_coordinator.classic.group_config import go_by
from reference_coordinator.classic.members import Members
from reference_coordinator.classic.rebalance import prepare
from reference_coordinator.classic.record_writes import record_written
from reference_coordinator.classic.state import ABSENT, EMPTY, LOADING, STABLE, Group


def load_started(context: Context) -> None:
    """Begin to load: the coordinator does not know the group yet."""
    context.group = Group(context.group.group_id, service=LOADING)


def load(context: Context, event: Loaded) -> None:
    """Load the group as last stored, Stable or Empty, and restart every session."""
    group_id, record = context.group.group_id, event.record
    if record is None:
        context.group = Group(group_id)
        return
    context.group = Group(
        group_id,
        sessions_deferred=event.requests_disabled and context.profile.sessions_wait_for_clients,
        exists=True,
        state=STABLE if record.members else EMPTY,
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
    go_by(context, record.config)
    if not context.group.sessions_deferred:
        _start_sessions(context)
    if len(record.members) > context.profile.settings.max_size:
        prepare(context, Reason.OVER_CAPACITY)


def requests_enabled(context: Context) -> None:
    """Start the sessions that waited for the broker to accept requests.

    Only under `sessions_wait_for_clients`, a promise of KIP-345 that no release keeps.
    """
    if context.group.sessions_deferred:
        context.change(sessions_deferred=False)
        _start_sessions(context)


def _start_sessions(context: Context) -> None:
    for member in context.group.members.values():
        context.keep_alive(member)


def unload(context: Context) -> None:
    """Give the group up; pending requests are answered NOT_COORDINATOR."""
    for request in tuple(context.group.writes):
        record_written(context, RecordWritten(context.at_ms, request, Error.NOT_COORDINATOR))
    for member in context.group.members.values():
        if member.join is not None and context.profile.unload_answers_waiting:
            context.answer(member.join, JoinResponse(Error.NOT_COORDINATOR, member.member_id))
        if member.sync is not None and context.profile.unload_answers_waiting:
            context.answer(member.sync, SyncResponse(Error.NOT_COORDINATOR))
        context.disarm(SESSION_TIMER, member.member_id)
    for held in context.group.held_back.values():
        context.answer(held.request, JoinResponse(Error.NOT_COORDINATOR))
    for pending in context.group.pending_joins:
        context.disarm(SESSION_TIMER, pending)
    context.disarm(JOIN_TIMER)
    context.disarm(SYNC_TIMER)
    context.disarm(WAIT_TIMER)
    context.group = Group(context.group.group_id, service=ABSENT)
