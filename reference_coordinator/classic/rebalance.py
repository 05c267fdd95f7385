"""The rebalance itself: prepare, wait for the members, start the next generation.

Source: Kafka's classic protocol as its coordinators have it; where they differ a rule of the
`Profile` decides.
"""

from kafka_protocol.errors import Error
from reference_coordinator.classic.changed import changed
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import Bound, JoinResponse, Reason, SyncResponse
from reference_coordinator.classic.events import TimerKind
from reference_coordinator.classic.membership import remove_member
from reference_coordinator.classic.state import Group, Member, State

CAN_REBALANCE = frozenset({State.EMPTY, State.STABLE, State.COMPLETING_REBALANCE})


def rebalance_or_complete(context: Context, reason: Reason, member_id: str = "") -> None:
    """Start a rebalance; where one is under way already, see whether this ends its join phase."""
    if context.group.state in CAN_REBALANCE:
        prepare(context, reason, member_id)
    else:
        complete_if_all_joined(context)


def prepare(context: Context, reason: Reason, member_id: str = "") -> None:
    """Enter PreparingRebalance. Members that wait in SyncGroup are told to join again."""
    if context.group.state is State.COMPLETING_REBALANCE:
        context.change(
            members=context.group.members.each(lambda member: changed(member, assignment=""))
        )
        answer_syncs(context, Error.REBALANCE_IN_PROGRESS)
    context.change(pending_syncs=frozenset())
    context.disarm(TimerKind.SYNC)
    initial = context.group.state is State.EMPTY
    if initial:
        delay = context.profile.settings.initial_rebalance_delay_ms
        context.change(initial_delay_left_ms=max(context.group.rebalance_timeout_ms - delay, 0))
        context.arm(TimerKind.JOIN, delay)
    context.transition(State.PREPARING_REBALANCE, reason, member_id)
    if initial:
        return
    if context.group.all_joined:
        complete_join_phase(context)
    else:
        context.arm(TimerKind.JOIN, context.group.rebalance_timeout_ms)


def complete_if_all_joined(context: Context) -> None:
    """End the join phase if nobody is missing; the initial delay always runs out."""
    group = context.group
    if (
        group.state is State.PREPARING_REBALANCE
        and group.previous_state is not State.EMPTY
        and group.all_joined
    ):
        complete_join_phase(context)


def initial_delay_over(context: Context) -> None:
    """Extend the initial delay while members keep coming, up to the rebalance timeout."""
    left = context.group.initial_delay_left_ms
    if context.group.extends_delay:
        delay = min(context.profile.settings.initial_rebalance_delay_ms, left)
        context.change(new_member_added=False, initial_delay_left_ms=max(left - delay, 0))
        context.arm(TimerKind.JOIN, delay)
    else:
        complete_join_phase(context)


def complete_join_phase(context: Context) -> None:
    """End the join phase: absent dynamic members go, absent static ones stay (KIP-345)."""
    context.disarm(TimerKind.JOIN)
    for member in tuple(context.group.members.values()):
        if member.join is None and not member.is_static:
            remove_member(context, member.member_id)
            context.disarm(TimerKind.SESSION, member.member_id)
    if not context.group.members:
        become_empty(context)
    elif context.group.awaiting == 0:
        # Nobody is there to lead: wait for another rebalance timeout (or for sessions to end).
        context.arm(TimerKind.JOIN, context.group.rebalance_timeout_ms)
    else:
        start_generation(context)


def become_empty(context: Context) -> None:
    """Enter Empty, with a generation of its own."""
    context.transition(
        State.EMPTY,
        generation=context.group.generation + 1,
        protocol=None,
        leader=None,
        open_leaders=frozenset(),
        pending_syncs=frozenset(),
    )
    context.persist(None)


def start_generation(context: Context) -> None:
    """Enter CompletingRebalance: settle leader and protocol, answer every waiting member."""
    leader = context.bind("leader", context.choices.leader, allowed_leaders(context.group))
    protocol = context.bind("protocol", context.choices.protocol, allowed_protocols(context.group))
    awaited = context.group.members if context.profile.pending_sync_timer else ()
    context.transition(
        State.COMPLETING_REBALANCE,
        generation=context.group.generation + 1,
        leader=leader,
        open_leaders=frozenset(),
        protocol=protocol,
        pending_syncs=frozenset(awaited),
    )
    everyone = member_list(context.group)
    members = context.group.members
    for member in members.values():
        if member.join is not None:
            told = everyone if member.member_id == leader else frozenset()
            context.answer(member.join, generation_answer(context.group, member.member_id, told))
        context.keep_alive(member)
    context.change(members=members.each(lambda member: changed(member, join=None, is_new=False)))
    if context.profile.pending_sync_timer:
        context.arm(TimerKind.SYNC, context.group.rebalance_timeout_ms)


def allowed_leaders(group: Group) -> frozenset[str]:
    """Return who may lead the next generation.

    The leader stays if it rejoined. An open leader may be any that was left when the old one went;
    whoever is picked must wait in JoinGroup, otherwise any waiting member may take over.
    """
    waiting = frozenset(key for key, member in group.members.items() if member.join is not None)
    if group.leader in waiting:
        return frozenset({group.leader}) if group.leader else waiting
    candidates = group.open_leaders
    if not group.leader and candidates and candidates <= waiting:
        return candidates
    return waiting


def settle_leader(context: Context) -> None:
    """Take over who leads a group whose leader went and nobody joined again, once that is told.

    Only before 2.6.0, which takes a member out that it refuses for want of room and leaves it at
    that. Kafka picks another at once, whom it does not tell.
    """
    group, told = context.group, context.choices.leader
    settled = group.leader is not None or group.state is State.PREPARING_REBALANCE
    if not settled and told in group.open_leaders:
        context.effects.append(Bound("leader", told))
        context.change(leader=told, open_leaders=frozenset())


def allowed_protocols(group: Group) -> frozenset[str]:
    """Return the protocols with the most votes among those that every member supports."""
    votes = group.members.votes
    most = max(votes.values())
    return frozenset(name for name, count in votes.items() if count == most)


def member_list(group: Group) -> frozenset[tuple[str, str | None, str]]:
    """Return what a leader is told of the members."""
    return frozenset(
        (m.member_id, m.group_instance_id, m.metadata(group.protocol))
        for m in group.members.values()
    )


def generation_answer(
    group: Group,
    member_id: str,
    members: frozenset[tuple[str, str | None, str]] = frozenset(),
    *,
    leader: str | None = None,
    skip_assignment: bool = False,
) -> JoinResponse:
    """Build the answer that takes a member into the current generation."""
    return JoinResponse(
        error=Error.NONE,
        member_id=member_id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=(leader if leader is not None else group.leader) or "",
        skip_assignment=skip_assignment,
        members=members,
    )


def answer_syncs(context: Context, error: Error) -> None:
    """Answer everyone who waits in SyncGroup, and restart their sessions."""
    members = context.group.members
    for member in members.values():
        if member.sync is not None:
            context.answer(member.sync, sync_answer(context.group, member, error))
            context.keep_alive(member)
    context.change(members=members.each(lambda member: changed(member, sync=None)))


def sync_answer(group: Group, member: Member, error: Error) -> SyncResponse:
    """Build SyncGroup's answer for a member."""
    if error is not Error.NONE:
        return SyncResponse(error, assignment=member.assignment)
    return SyncResponse(error, group.protocol_type, group.protocol, member.assignment)
