"""Members of a group: removed, updated by their JoinGroup, or given a new member id."""

from kafka_protocol.errors import Error
from reference_coordinator.classic.context import Context, refuse
from reference_coordinator.classic.effects import SyncResponse
from reference_coordinator.classic.events import SESSION_TIMER, SYNC_TIMER, JoinReceived
from reference_coordinator.classic.state import GroupFields, Member, MemberFields
from reference_coordinator.frozen import replace_fields


def remove_member(context: Context, member_id: str) -> None:
    """Remove a member; if it led the group, the next leader stays open until the join phase ends.

    Its timers are not stopped: the session timer of an unknown member does nothing.
    """
    group = context.group
    removed = group.members.get(member_id)
    members = group.members.without(member_id)
    changes: GroupFields = {
        "members": members,
        "pending_joins": group.pending_joins - {member_id},
        "pending_syncs": group.pending_syncs - {member_id},
    }
    if group.leader == member_id:
        changes |= {"leader": None, "open_leaders": frozenset(members)}
    elif member_id in group.open_leaders:
        # Kafka may have picked it, and has then picked another.
        changes["open_leaders"] = frozenset(members)
    context.change(**changes)
    if removed is not None and removed.is_static:
        forget_instance(context, removed.group_instance_id)


def forget_instance(context: Context, instance_id: str | None) -> None:
    """Remove the mapping of an instance id, and leave its member."""
    known = context.group.static_ids.items()
    context.change(static_ids={key: owner for key, owner in known if key != instance_id})


def update_member(context: Context, event: JoinReceived, member: Member) -> None:
    """Update a member from its new JoinGroup, which waits for its response."""
    context.put(replace_fields(member, **fields_of_join(context, event, member)))


def fields_of_join(context: Context, event: JoinReceived, member: Member) -> MemberFields:
    """Return the fields of a member that its new JoinGroup sets, the pending request included."""
    fields: MemberFields = {"protocols": event.protocols, "join": event.request}
    if member.is_called:
        fields["is_called"] = False
    rebalance_ms, session_ms = timeouts = event.rebalance_timeout_ms, event.session_timeout_ms
    if timeouts != (member.rebalance_timeout_ms, member.session_timeout_ms) and (
        context.profile.joins_update_timeouts
    ):
        fields["rebalance_timeout_ms"], fields["session_timeout_ms"] = rebalance_ms, session_ms
    client = event.client_id, event.client_host
    if client != (member.client_id, member.client_host) and context.profile.describes_latest_client:
        fields["client_id"], fields["client_host"] = client
    return fields


def received_sync(context: Context, member_id: str) -> None:
    """Note a member's SyncGroup; the last one that was awaited stops the pending-sync timer."""
    if member_id in context.group.pending_syncs:
        context.change(pending_syncs=context.group.pending_syncs - {member_id})
    if not context.group.pending_syncs:
        context.disarm(SYNC_TIMER)


def remove_pending(context: Context, member_id: str) -> None:
    """Remove a pending member that left or was refused; its timer stops, except in Scala."""
    remove_member(context, member_id)
    if context.profile.removed_pending_timer_runs_on:
        context.change(removed_pending_joins=context.group.removed_pending_joins | {member_id})
    else:
        context.disarm(SESSION_TIMER, member_id)


NO_FIELDS: MemberFields = {}


def replace_member_id(
    context: Context, old: Member, new_id: str, fields: MemberFields = NO_FIELDS
) -> Member:
    """Replace the member id of a static member; fence pending requests that use the old id.

    `fields` are other fields of the member that change.
    """
    group = context.group
    if old.join is not None:
        context.answer(old.join, refuse(old.member_id, Error.FENCED_INSTANCE_ID))
    if old.sync is not None:
        context.answer(old.sync, SyncResponse(Error.FENCED_INSTANCE_ID))
    is_new = old.is_new and context.profile.replaced_new_member_stays_new
    own: MemberFields = {"member_id": new_id, "join": None, "sync": None, "is_new": is_new}
    member = replace_fields(old, **(own | fields))
    leaders = group.open_leaders
    if old.member_id in leaders:
        leaders = leaders - {old.member_id} | {new_id}
    context.change(
        members=group.members.with_new_id(old.member_id, member),
        static_ids={**group.static_ids, old.group_instance_id or "": new_id},
        leader=new_id if group.leader == old.member_id else group.leader,
        open_leaders=leaders,
    )
    if old.member_id in group.pending_syncs and not context.profile.replaced_id_stays_pending_sync:
        received_sync(context, old.member_id)
    return member
