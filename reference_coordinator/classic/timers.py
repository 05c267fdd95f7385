"""Timers that ran out: sessions, the join phase, SyncGroups that did not come."""

from kafka_protocol.errors import Error
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.events import TimerFired, TimerKind
from reference_coordinator.classic.membership import remove_member
from reference_coordinator.classic.rebalance import (
    complete_if_all_joined,
    complete_join_phase,
    initial_delay_over,
    prepare,
)
from reference_coordinator.classic.scala_set_order import in_set_order
from reference_coordinator.classic.state import State


def timer_fired(context: Context, event: TimerFired) -> None:
    """Act on a timer that ran out."""
    kind, member_id = event.timer.kind, event.timer.member_id
    group = context.group
    if kind is TimerKind.SESSION:
        session_expired(context, member_id, of_pending=event.of_pending)
    elif kind is TimerKind.JOIN:
        if group.state is not State.PREPARING_REBALANCE:
            return
        if group.previous_state is State.EMPTY:
            initial_delay_over(context)
        else:
            complete_join_phase(context)
    elif group.state in (State.COMPLETING_REBALANCE, State.STABLE):
        syncs_overdue(context)


def syncs_overdue(context: Context) -> None:
    """Remove who has not sent SyncGroup, and rebalance if there is anybody."""
    group, profile = context.group, context.profile
    overdue = group.pending_syncs
    if profile.sync_timer_spares_statics:
        overdue -= set(group.static_ids.values())
    for pending in in_set_order(overdue):
        if profile.stale_sync_id_stops_timer and pending not in group.members:
            return
        remove_member(context, pending)
        context.disarm(TimerKind.SESSION, pending)
    if overdue:
        prepare(context, Reason.PENDING_SYNC)


def session_expired(context: Context, member_id: str, *, of_pending: bool = False) -> None:
    """Remove a member, or a pending one, whose session ended; waiting members live on.

    One `of_pending` removes its member though that has joined meanwhile: without a word to it, and
    without a rebalance of its own.
    """
    group = context.group
    member = group.members.get(member_id)
    if member_id in group.pending_joins or (of_pending and member is not None):
        remove_member(context, member_id)
    elif member_id in group.forgotten_joins:
        context.change(forgotten_joins=group.forgotten_joins - {member_id})
    elif member is None or member.waits:
        return
    else:
        context.answer_join(member, JoinResponse(Error.UNKNOWN_MEMBER_ID))
        remove_member(context, member_id)
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            prepare(context, Reason.SESSION_EXPIRED, member_id)
            return
    if context.group.state is State.PREPARING_REBALANCE and context.group.all_joined:
        if context.profile.expiry_ends_initial_delay:
            complete_join_phase(context)
        else:
            complete_if_all_joined(context)
