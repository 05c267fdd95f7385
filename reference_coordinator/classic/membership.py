"""A group's members and their ids: who is taken out, who takes whose place, with what."""

from kafka_protocol.errors import Error
from reference_coordinator.classic.changed import changed
from reference_coordinator.classic.context import Context, refuse
from reference_coordinator.classic.effects import SyncResponse
from reference_coordinator.classic.events import JoinReceived, TimerKind
from reference_coordinator.classic.state import Member


def remove_member(context: Context, member_id: str) -> None:
    """Take a member out; if it led the group, its successor stays open until the join phase ends.

    Its timers run on; a session timer of an unknown member does nothing.
    """
    group = context.group
    removed = group.members.get(member_id)
    members = group.members.without(member_id)
    changes: dict[str, object] = {
        "members": members,
        "pending_joins": group.pending_joins - {member_id},
        "pending_syncs": group.pending_syncs - {member_id},
    }
    if group.leader == member_id:
        changes |= {"leader": None, "open_leaders": frozenset(members)}
    elif member_id in group.open_leaders:
        # It may have been the one picked, and then somebody was picked anew.
        changes["open_leaders"] = frozenset(members)
    context.change(**changes)
    if removed is not None and removed.is_static:
        forget_instance(context, removed.group_instance_id)


def forget_instance(context: Context, instance_id: str | None) -> None:
    """Take an instance's mapping away and leave its member."""
    known = context.group.static_ids.items()
    context.change(static_ids={key: owner for key, owner in known if key != instance_id})


def update_member(context: Context, event: JoinReceived, member: Member) -> None:
    """Adopt what a member's new join says, and park the join."""
    context.put(changed(member, **said_by(context, event)))


def said_by(context: Context, event: JoinReceived) -> dict[str, object]:
    """Return what a member's new join says of it, the join itself included, by its fields."""
    fields: dict[str, object] = {"protocols": event.protocols, "join": event.request}
    if context.profile.joins_update_timeouts:
        fields["rebalance_timeout_ms"] = event.rebalance_timeout_ms
        fields["session_timeout_ms"] = event.session_timeout_ms
    if context.profile.describes_latest_client:
        fields["client_id"], fields["client_host"] = event.client_id, event.client_host
    return fields


def received_sync(context: Context, member_id: str) -> None:
    """Note that nobody waits for a member's SyncGroup any longer; the last one stops the timer."""
    if member_id in context.group.pending_syncs:
        context.change(pending_syncs=context.group.pending_syncs - {member_id})
    if not context.group.pending_syncs:
        context.disarm(TimerKind.SYNC)


def remove_pending(context: Context, member_id: str) -> None:
    """Take a pending member out that left or was refused, and see to its timer."""
    remove_member(context, member_id)
    if context.profile.forgotten_pending_timer_runs_on:
        context.change(forgotten_joins=context.group.forgotten_joins | {member_id})
    else:
        context.disarm(TimerKind.SESSION, member_id)


def swap_member(context: Context, old: Member, new_id: str, **fields: object) -> Member:
    """Put a static member's other id in the place of its old one; fence requests of the old.

    `fields` are what else is new of it.
    """
    group = context.group
    if old.join is not None:
        context.answer(old.join, refuse(old.member_id, Error.FENCED_INSTANCE_ID))
    if old.sync is not None:
        context.answer(old.sync, SyncResponse(Error.FENCED_INSTANCE_ID))
    is_new = old.is_new and context.profile.replaced_newcomer_stays_new
    alone = {"member_id": new_id, "join": None, "sync": None, "is_new": is_new}
    newcomer = changed(old, **(alone | fields))
    leaders = group.open_leaders
    if old.member_id in leaders:
        leaders = leaders - {old.member_id} | {new_id}
    context.change(
        members=group.members.swapped(old.member_id, newcomer),
        static_ids={**group.static_ids, old.group_instance_id or "": new_id},
        leader=new_id if group.leader == old.member_id else group.leader,
        open_leaders=leaders,
    )
    if not context.profile.replaced_id_stays_pending_sync and old.member_id in group.pending_syncs:
        received_sync(context, old.member_id)
    return newcomer
