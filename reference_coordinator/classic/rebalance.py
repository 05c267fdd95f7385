"""The rebalance: enter PreparingRebalance, await the members, start the next generation.

Source: `GroupCoordinator` (Scala) and `GroupMetadataManager` (Java); where they differ a rule of
the `Profile` decides. `transitions` lists every change of state.
"""

from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import Bound, JoinResponse, Reason, SyncResponse
from reference_coordinator.classic.events import JOIN_TIMER, SESSION_TIMER, SYNC_TIMER
from reference_coordinator.classic.hot_standby import choose_workers
from reference_coordinator.classic.membership import remove_member
from reference_coordinator.classic.state import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    Group,
    Member,
)
from reference_coordinator.frozen import replace_fields

CAN_REBALANCE = frozenset({EMPTY, STABLE, COMPLETING_REBALANCE})


def rebalance_or_complete(context: Context, reason: Reason, member_id: str = "") -> None:
    """Start a rebalance; if one is under way, complete its join phase once all have joined."""
    if context.group.state in CAN_REBALANCE:
        prepare(context, reason, member_id)
    else:
        complete_if_all_joined(context)


def prepare(context: Context, reason: Reason, member_id: str = "") -> None:
    """Enter PreparingRebalance; pending SyncGroups are answered REBALANCE_IN_PROGRESS."""
    if context.group.state is COMPLETING_REBALANCE:
        context.change(
            members=context.group.members.each(lambda member: replace_fields(member, assignment=""))
        )
        answer_syncs(context, Error.REBALANCE_IN_PROGRESS)
    context.change(pending_syncs=frozenset(), owes_rebalance=False)
    context.disarm(SYNC_TIMER)
    initial = context.group.state is EMPTY
    if initial:
        delay = context.profile.settings.initial_rebalance_delay_ms
        context.change(initial_delay_left_ms=max(context.group.rebalance_timeout_ms - delay, 0))
        context.arm(JOIN_TIMER, delay)
    context.transition(PREPARING_REBALANCE, reason, member_id)
    if initial:
        return
    if context.group.all_joined:
        complete_join_phase(context)
    else:
        context.arm(JOIN_TIMER, context.group.rebalance_timeout_ms)


def complete_if_all_joined(context: Context) -> None:
    """Complete the join phase if all members have joined, except during the initial delay."""
    group = context.group
    if (
        group.state is PREPARING_REBALANCE
        and group.previous_state is not EMPTY
        and group.all_joined
    ):
        complete_join_phase(context)


def initial_delay_over(context: Context) -> None:
    """Extend the initial delay while new members join, up to the rebalance timeout."""
    left = context.group.initial_delay_left_ms
    if context.group.extends_delay:
        delay = min(context.profile.settings.initial_rebalance_delay_ms, left)
        context.change(new_member_added=False, initial_delay_left_ms=max(left - delay, 0))
        context.arm(JOIN_TIMER, delay)
    else:
        complete_join_phase(context)


def complete_join_phase(context: Context) -> None:
    """Complete the join phase: absent dynamic members are removed, static ones stay (KIP-345)."""
    context.disarm(JOIN_TIMER)
    for member in tuple(context.group.members.values()):
        if member.join is None and not member.is_static:
            remove_member(context, member.member_id)
            context.disarm(SESSION_TIMER, member.member_id)
    if not context.group.members:
        become_empty(context)
    elif context.group.awaiting == 0:
        # No member can lead: wait another rebalance timeout, or until the sessions expire.
        context.arm(JOIN_TIMER, context.group.rebalance_timeout_ms)
    else:
        start_generation(context)


def become_empty(context: Context) -> None:
    """Enter Empty, with a generation of its own."""
    context.transition(
        EMPTY,
        generation=context.group.generation + 1,
        protocol=None,
        leader=None,
        open_leaders=frozenset(),
        pending_syncs=frozenset(),
    )
    context.persist(None)


def start_generation(context: Context) -> None:
    """Enter CompletingRebalance: pick leader and protocol, answer every pending JoinGroup."""
    if context.profile.standbys_hold_no_partitions:
        choose_workers(context)
    leader = context.bind("leader", context.choices.leader, allowed_leaders(context.group))
    protocol = context.bind("protocol", context.choices.protocol, allowed_protocols(context.group))
    awaited = context.group.members if context.profile.pending_sync_timer else ()
    context.transition(
        COMPLETING_REBALANCE,
        generation=context.group.generation + 1,
        leader=leader,
        open_leaders=frozenset(),
        protocol=protocol,
        pending_syncs=frozenset(awaited),
    )
    all_members = member_list(context.group)
    members = context.group.members
    for member in members.values():
        if member.join is not None:
            listed = all_members if member.member_id == leader else frozenset()
            context.answer(
                member.join, generation_response(context.group, member.member_id, listed)
            )
        context.keep_alive(member)
    context.change(
        members=members.each(lambda member: replace_fields(member, join=None, is_new=False))
    )
    if context.profile.pending_sync_timer:
        context.arm(SYNC_TIMER, context.group.rebalance_timeout_ms)


def allowed_leaders(group: Group) -> frozenset[str]:
    """Return the members that may lead the next generation.

    A leader that rejoined stays. If the leader was removed, Kafka picked one of the members left at
    that time; if that one has not rejoined, any member with a pending JoinGroup may lead.
    """
    joined = [one for one in group.members.values() if one.join is not None]
    working = [one for one in joined if not one.is_standby]
    waiting = frozenset(one.member_id for one in working or joined)
    if group.leader in waiting:
        return frozenset({group.leader}) if group.leader else waiting
    candidates = group.open_leaders
    if not group.leader and candidates and candidates <= waiting:
        return candidates
    return waiting


def settle_leader(context: Context) -> None:
    """Bind the leader of a group whose leader was removed without a rebalance.

    Only releases before 2.6.0 do so: they remove a member that `group.max.size` refuses, and pick
    another leader at once. A later response shows which.
    """
    group, leader = context.group, context.choices.leader
    settled = group.leader is not None or group.state is PREPARING_REBALANCE
    if not settled and leader in group.open_leaders:
        context.effects.append(Bound("leader", leader))
        context.change(leader=leader, open_leaders=frozenset())


def allowed_protocols(group: Group) -> frozenset[str]:
    """Return the protocols with the most votes among those that every member supports."""
    votes = group.members.votes
    most = max(votes.values())
    return frozenset(name for name, count in votes.items() if count == most)


def member_list(group: Group) -> frozenset[tuple[str, str | None, str]]:
    """Return the members as a leader's JoinGroup response lists them."""
    return frozenset(
        (m.member_id, m.group_instance_id, m.metadata(group.protocol))
        for m in group.members.values()
        if not m.is_standby
    )


def generation_response(
    group: Group,
    member_id: str,
    members: frozenset[tuple[str, str | None, str]] = frozenset(),
    *,
    leader: str | None = None,
    skip_assignment: bool = False,
) -> JoinResponse:
    """Build the JoinGroup response that gives a member the current generation."""
    return JoinResponse(
        error=NO_ERROR,
        member_id=member_id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=(leader if leader is not None else group.leader) or "",
        skip_assignment=skip_assignment,
        members=members,
    )


def answer_syncs(context: Context, error: Error) -> None:
    """Answer every pending SyncGroup, and restart the sessions of these members."""
    members = context.group.members
    for member in members.values():
        if member.sync is not None:
            context.answer(member.sync, sync_response(context.group, member, error))
            context.keep_alive(member)
    context.change(members=members.each(_without_sync))


def _without_sync(member: Member) -> Member:
    return member if member.sync is None else replace_fields(member, sync=None)


def sync_response(group: Group, member: Member, error: Error) -> SyncResponse:
    """Build a member's SyncGroup response."""
    if error is not NO_ERROR:
        return SyncResponse(error, assignment=member.assignment)
    return SyncResponse(error, group.protocol_type, group.protocol, member.assignment)
