"""Timers that expired: session, join phase, pending SyncGroups (KAFKA-12890)."""

from kafka_protocol.errors import Error
from kafka_protocol.jvm import in_scala_set_order
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.events import JOIN_TIMER, SESSION_TIMER, WAIT_TIMER, TimerFired
from reference_coordinator.classic.group_config import end_wait, gone_quietly
from reference_coordinator.classic.membership import remove_member
from reference_coordinator.classic.rebalance import (
    complete_if_all_joined,
    complete_join_phase,
    initial_delay_over,
    prepare,
)
from reference_coordinator.classic.state import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)


def timer_fired(context: Context, event: TimerFired) -> None:
    """Handle an expired timer."""
    kind, member_id = event.timer.kind, event.timer.member_id
    group = context.group
    if kind is SESSION_TIMER:
        session_expired(context, member_id, of_pending=event.of_pending)
    elif kind is JOIN_TIMER:
        if group.state is not PREPARING_REBALANCE:
            return
        if group.previous_state is EMPTY:
            initial_delay_over(context)
        else:
            complete_join_phase(context)
    elif kind is WAIT_TIMER:
        end_wait(context)
    elif group.state in (COMPLETING_REBALANCE, STABLE):
        pending_syncs_expired(context)


def pending_syncs_expired(context: Context) -> None:
    """Remove the members that have not sent SyncGroup; start a rebalance if there are any.

    These include absent static members (`sync_timer_spares_statics`) and member ids that a static
    rejoin in Stable replaced (`replaced_id_stays_pending_sync`), which KIP-345 does not allow. In
    2.8.1 and 2.8.2 a replaced id ends the removal with an exception (`stale_sync_id_stops_timer`).
    """
    group, profile = context.group, context.profile
    overdue = group.pending_syncs
    statics = overdue & set(group.static_ids.values())
    if statics and profile.sync_timer_spares_statics:
        overdue -= statics
    for pending in in_scala_set_order(overdue):
        if profile.stale_sync_id_stops_timer and pending not in group.members:
            return
        remove_member(context, pending)
        context.disarm(SESSION_TIMER, pending)
    if overdue:
        prepare(context, Reason.PENDING_SYNC)


def session_expired(context: Context, member_id: str, *, of_pending: bool = False) -> None:
    """Remove a member, or a pending one, whose session expired; not one with a pending request.

    A timer `of_pending` removes its member even if that has joined meanwhile: its JoinGroup is not
    answered, and no rebalance starts for it.
    """
    group = context.group
    member = group.members.get(member_id)
    if member_id in group.pending_joins or (of_pending and member is not None):
        remove_member(context, member_id)
    elif member_id in group.removed_pending_joins:
        context.change(removed_pending_joins=group.removed_pending_joins - {member_id})
    elif member is None or member.is_awaiting:
        return
    else:
        context.answer_join(member, JoinResponse(Error.UNKNOWN_MEMBER_ID))
        remove_member(context, member_id)
        if group.state in (STABLE, COMPLETING_REBALANCE):
            if not gone_quietly(context, group):
                prepare(context, Reason.SESSION_EXPIRED, member_id)
            return
    if context.group.state is PREPARING_REBALANCE and context.group.all_joined:
        if context.profile.expiry_ends_initial_delay:
            complete_join_phase(context)
        else:
            complete_if_all_joined(context)
