"""JoinGroup: Kafka's checks in Kafka's order, then new, returning and known members.

Dynamic members join in two steps (KIP-394), static ones in one; a static member that returns is
replaced, in every state of the group (KIP-345, KAFKA-9801, KIP-814).
"""

from dataclasses import replace

from reference_coordinator.checks import unavailable, validate_member
from reference_coordinator.effects import Bound, JoinAnswer, Reason, SyncAnswer
from reference_coordinator.errors import Error
from reference_coordinator.events import JoinReceived, TimerKind
from reference_coordinator.profiles import NEW_MEMBER_JOIN_TIMEOUT_MS
from reference_coordinator.rebalance import (
    allowed_protocols,
    complete_if_all_joined,
    generation_answer,
    member_list,
    prepare,
    rebalance_or_complete,
    remove_member,
)
from reference_coordinator.state import Group, Member, State, Write
from reference_coordinator.turn import Turn, refuse

FIRST_TWO_STEP_VERSION = 4
"""From this JoinGroup version on a dynamic member is first given its id (KIP-394)."""
FIRST_SKIP_ASSIGNMENT_VERSION = 9
"""From this JoinGroup version on a replaced leader is told that it leads (KIP-814)."""


def join(turn: Turn, event: JoinReceived) -> None:
    """Handle JoinGroup."""
    error = unserved(turn, event)
    if error is None:
        create_group(turn)
        error = refusal(turn, event)
    if error is not None:
        turn.answer(event.request, error)
    elif event.member_id:
        join_known(turn, event)
    elif event.group_instance_id is not None:
        join_static(turn, event, event.group_instance_id)
    else:
        join_dynamic(turn, event)


def unserved(turn: Turn, event: JoinReceived) -> JoinAnswer | None:
    """Make the checks that come before the group is looked at, in Kafka's order."""
    group, settings = turn.group, turn.profile.settings
    if not group.group_id:
        return refuse(event.member_id, Error.INVALID_GROUP_ID)
    shortest, longest = settings.min_session_timeout_ms, settings.max_session_timeout_ms
    if not shortest <= event.session_timeout_ms <= longest:
        return refuse(event.member_id, Error.INVALID_SESSION_TIMEOUT)
    if (error := unavailable(group)) is not None:
        return refuse("", error)
    if not group.exists and event.member_id:
        return refuse(event.member_id, Error.UNKNOWN_MEMBER_ID)
    return None


def create_group(turn: Turn) -> None:
    """Create the group with the first join that is served, whether or not it gets in."""
    if not turn.group.exists:
        turn.change(exists=True)
        if turn.profile.stores_new_group:
            turn.persist(None)


def refusal(turn: Turn, event: JoinReceived) -> JoinAnswer | None:
    """Make the checks that come before the member is looked at, in Kafka's order."""
    group = turn.group
    if not has_room(group, event.member_id, turn.profile.settings.max_size):
        remove_member(turn, event.member_id)
        return refuse("", Error.GROUP_MAX_SIZE_REACHED)
    if group.state is State.DEAD:
        return refuse(event.member_id, Error.COORDINATOR_NOT_AVAILABLE)
    if not supports(group, event):
        return refuse(event.member_id, Error.INCONSISTENT_GROUP_PROTOCOL)
    return None


def has_room(group: Group, member_id: str, max_size: int) -> bool:
    """Tell whether `group.max.size` lets this join in; the last to rejoin are the ones shed."""
    if group.state is State.PREPARING_REBALANCE:
        member = group.members.get(member_id)
        return (member is not None and member.join is not None) or group.awaiting < max_size
    if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
        return member_id in group.members or len(group.members) < max_size
    return True


def supports(group: Group, event: JoinReceived) -> bool:
    """Tell whether the group could go on with one of the protocols offered."""
    if group.state is State.EMPTY:
        return bool(event.protocol_type) and bool(event.protocols)
    if event.protocol_type != group.protocol_type:
        return False
    offered = {name for name, _ in event.protocols}
    return any(
        all(name in {p for p, _ in member.protocols} for member in group.members.values())
        for name in offered
    )


def new_member_id(turn: Turn, event: JoinReceived) -> str:
    """Bind the random part of a new member id: `<instance or client id>-<uuid>`, not in use.

    An offer that is none of that is refused; the id is then one that no request can name.
    """
    prefix = f"{event.group_instance_id or event.client_id}-"
    offered = event.choices.new_member_id
    used = offered in turn.group.members or offered in turn.group.pending_joins
    if offered.startswith(prefix) and not used:
        turn.effects.append(Bound("member_id", offered))
        return offered
    unnamed = f"{prefix}?{event.request}"
    turn.effects.append(Bound("member_id", unnamed, refused=offered))
    return unnamed


def join_dynamic(turn: Turn, event: JoinReceived) -> None:
    """Take a dynamic member without an id: give it one, and from v4 on ask it to come again."""
    member_id = new_member_id(turn, event)
    if event.api_version >= FIRST_TWO_STEP_VERSION:
        turn.change(pending_joins=turn.group.pending_joins | {member_id})
        turn.arm(TimerKind.SESSION, event.session_timeout_ms, member_id)
        turn.answer(event.request, JoinAnswer(Error.MEMBER_ID_REQUIRED, member_id))
    else:
        add_member(turn, event, member_id)


def join_static(turn: Turn, event: JoinReceived, instance_id: str) -> None:
    """Take a static member without an id: new, or the return of a known instance."""
    if instance_id in turn.group.static_ids:
        replace_static(turn, event, instance_id)
    else:
        add_member(turn, event, new_member_id(turn, event))


def add_member(turn: Turn, event: JoinReceived, member_id: str) -> None:
    """Add a member that has not been in the group before."""
    group = turn.group
    if group.state is State.PREPARING_REBALANCE and group.previous_state is State.EMPTY:
        turn.change(new_member_added=True)
    if not group.members:
        turn.change(protocol_type=event.protocol_type)
    if group.leader is None and not group.open_leaders:
        turn.change(leader=member_id)
    if event.group_instance_id is not None:
        turn.change(static_ids={**group.static_ids, event.group_instance_id: member_id})
    turn.put(
        Member(
            member_id=member_id,
            group_instance_id=event.group_instance_id,
            session_timeout_ms=event.session_timeout_ms,
            rebalance_timeout_ms=event.rebalance_timeout_ms,
            protocol_type=event.protocol_type,
            protocols=event.protocols,
            join=event.request,
            is_new=True,
        )
    )
    turn.change(pending_joins=turn.group.pending_joins - {member_id})
    # A new member cannot send heartbeats before it has its answer; a client that is gone would
    # stay for ever, so its join itself times out.
    turn.arm(TimerKind.SESSION, NEW_MEMBER_JOIN_TIMEOUT_MS, member_id)
    rebalance_or_complete(turn, Reason.NEW_MEMBER, member_id)


def join_known(turn: Turn, event: JoinReceived) -> None:
    """Take a member that comes with an id: pending, or a member already."""
    group = turn.group
    if event.member_id in group.pending_joins:
        if event.group_instance_id is not None:
            turn.answer(event.request, refuse("", Error.UNKNOWN_SERVER_ERROR))
        else:
            add_member(turn, event, event.member_id)
        return
    error = validate_member(group, event.member_id, event.group_instance_id)
    if error is not Error.NONE:
        turn.answer(event.request, refuse(event.member_id, error))
        return
    member = group.members[event.member_id]
    leads = group.leader == event.member_id
    unchanged = member.protocols == event.protocols
    if group.state is State.PREPARING_REBALANCE:
        update_member(turn, event, member)
        complete_if_all_joined(turn)
    elif group.state is State.COMPLETING_REBALANCE and unchanged:
        everyone = member_list(group) if leads else frozenset()
        turn.answer(event.request, generation_answer(group, event.member_id, everyone))
    elif group.state is State.STABLE and unchanged and not leads:
        turn.answer(event.request, generation_answer(group, event.member_id))
    else:
        update_member(turn, event, member)
        leader_asks = group.state is State.STABLE and leads
        reason = Reason.LEADER_REJOIN if leader_asks else Reason.MEMBER_METADATA
        rebalance_or_complete(turn, reason, event.member_id)


def update_member(turn: Turn, event: JoinReceived, member: Member) -> None:
    """Adopt what a member's new join says, and park the join."""
    turn.put(
        replace(
            member,
            protocols=event.protocols,
            rebalance_timeout_ms=event.rebalance_timeout_ms,
            session_timeout_ms=event.session_timeout_ms,
            join=event.request,
        )
    )


def replace_static(turn: Turn, event: JoinReceived, instance_id: str) -> None:
    """Give a returning instance a new member id; whoever still waits with the old one is fenced.

    Stable: no rebalance as long as the selected protocol stays (KAFKA-10284 stores the new id).
    CompletingRebalance: a rebalance, or the leader would assign to the old id (KAFKA-9801).
    PreparingRebalance: the join counts for the rebalance under way.
    """
    group = turn.group
    old = group.members[group.static_ids[instance_id]]
    leader_before = group.leader
    new_id = new_member_id(turn, event)
    newcomer = swap_member(turn, old, new_id)
    # As in Kafka, the first session still runs with the old timeout.
    turn.keep_alive(newcomer)
    update_member(turn, event, newcomer)
    if group.state is State.COMPLETING_REBALANCE:
        prepare(turn, Reason.STATIC_REPLACED, new_id)
    elif group.state is State.PREPARING_REBALANCE:
        complete_if_all_joined(turn)
    elif group.protocol in (allowed := allowed_protocols(turn.group)) and (
        len(allowed) == 1 or event.choices.protocol in ("", group.protocol)
    ):
        write = Write(
            request=event.request,
            generation=group.generation,
            member_id=new_id,
            replaced=replace(old, join=None, sync=None),
            skip_assignment_version=event.api_version >= FIRST_SKIP_ASSIGNMENT_VERSION,
            leader_before=leader_before,
        )
        turn.change(writes={**turn.group.writes, event.request: write})
        turn.persist(event.request)
    else:
        rebalance_or_complete(turn, Reason.PROTOCOL_CHANGE, new_id)


def swap_member(turn: Turn, old: Member, new_id: str) -> Member:
    """Put a static member's new id in the place of its old one; fence requests of the old."""
    group = turn.group
    if old.join is not None:
        turn.answer(old.join, refuse(old.member_id, Error.FENCED_INSTANCE_ID))
    if old.sync is not None:
        turn.answer(old.sync, SyncAnswer(Error.FENCED_INSTANCE_ID))
    newcomer = replace(old, member_id=new_id, join=None, sync=None, is_new=False)
    instance = old.group_instance_id or ""
    turn.change(
        members={k: m for k, m in group.members.items() if k != old.member_id} | {new_id: newcomer},
        static_ids={**group.static_ids, instance: new_id},
        leader=new_id if group.leader == old.member_id else group.leader,
        open_leaders=frozenset(
            new_id if key == old.member_id else key for key in group.open_leaders
        ),
    )
    return newcomer
