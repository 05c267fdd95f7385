"""JoinGroup: Kafka's checks in Kafka's order, then new and known members.

Dynamic members join in two steps (KIP-394), static ones in one; those that return are another
matter (`returns`).
"""

from kafka_protocol.errors import Error
from kafka_protocol.versions import FIRST_JOIN_WITH_SKIP_ASSIGNMENT, FIRST_TWO_STEP_JOIN
from reference_coordinator.classic.checks import unavailable, validate_member
from reference_coordinator.classic.context import Context, refuse
from reference_coordinator.classic.effects import Bound, JoinResponse, Reason
from reference_coordinator.classic.events import JoinReceived, TimerKind
from reference_coordinator.classic.join_reasons import wants_rebalance
from reference_coordinator.classic.membership import (
    forget_instance,
    remove_member,
    remove_pending,
    update_member,
)
from reference_coordinator.classic.profiles import NEW_MEMBER_JOIN_TIMEOUT_MS, Profile
from reference_coordinator.classic.rebalance import (
    complete_if_all_joined,
    generation_answer,
    member_list,
    rebalance_or_complete,
    settle_leader,
)
from reference_coordinator.classic.state import Group, Member, State
from reference_coordinator.classic.static_rejoin import (
    replace_static,
)


def join(context: Context, event: JoinReceived) -> None:
    """Handle JoinGroup."""
    error = unserved(context, event)
    if error is not None:
        context.answer(event.request, error)
        return
    create_group(context)
    error = refusal(context, event)
    if error is not None:
        context.answer(event.request, error)
        if context.profile.refused_join_may_end_join_phase:
            complete_if_all_joined(context)
        return
    settle_leader(context)
    if event.member_id:
        join_known(context, event)
    elif event.group_instance_id is not None:
        join_static(context, event, event.group_instance_id)
    else:
        join_dynamic(context, event)


def unserved(context: Context, event: JoinReceived) -> JoinResponse | None:
    """Make the checks that come before the group is looked at, in Kafka's order."""
    group, profile = context.group, context.profile
    if not group.group_id:
        return refuse(event.member_id, Error.INVALID_GROUP_ID)
    off_range = away = None
    shortest = profile.settings.min_session_timeout_ms
    longest = profile.settings.max_session_timeout_ms
    if not shortest <= event.session_timeout_ms <= longest:
        off_range = refuse(event.member_id, Error.INVALID_SESSION_TIMEOUT)
    if (error := unavailable(group)) is not None:
        away = refuse(event.member_id if profile.unserved_join_keeps_member_id else "", error)
    first, second = (off_range, away) if profile.session_range_comes_first else (away, off_range)
    if first or second:
        return first or second
    if not group.exists and event.member_id:
        return refuse(event.member_id, Error.UNKNOWN_MEMBER_ID)
    return None


def create_group(context: Context) -> None:
    """Create the group with the first join that is served, whether or not it gets in."""
    if not context.group.exists:
        context.change(exists=True, created_ms=context.at_ms)
        if context.profile.stores_new_group:
            context.persist(None)


def refusal(context: Context, event: JoinReceived) -> JoinResponse | None:
    """Make the checks that come before the member is looked at, in Kafka's order."""
    group = context.group
    if not has_room(group, event, context.profile):
        shed(context, event)
        return refuse("", Error.GROUP_MAX_SIZE_REACHED)
    if group.state is State.DEAD:
        return refuse(event.member_id, Error.COORDINATOR_NOT_AVAILABLE)
    if not supports(group, event):
        return refuse(event.member_id, Error.INCONSISTENT_GROUP_PROTOCOL)
    return None


def has_room(group: Group, event: JoinReceived, profile: Profile) -> bool:
    """Tell whether `group.max.size` lets this join in."""
    max_size, member_id = profile.settings.max_size, event.member_id
    if not member_id and profile.instance_keeps_its_place:
        member_id = group.static_ids.get(event.group_instance_id or "", "")
    member = group.members.get(member_id)
    waits = member is not None and member.join is not None
    if not profile.last_to_rejoin_are_shed:
        if member_id:
            return member is None or waits or len(group.members) <= max_size
        return len(group.members) < max_size
    if group.state is State.PREPARING_REBALANCE:
        return waits or group.awaiting < max_size
    if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
        return member is not None or len(group.members) < max_size
    return True


def shed(context: Context, event: JoinReceived) -> None:
    """Take a member out that is refused for want of room."""
    profile, instances = context.profile, context.group.static_ids
    if event.member_id not in context.group.pending_joins:
        remove_member(context, event.member_id)
    elif not profile.refused_pending_stays:
        remove_pending(context, event.member_id)
    if profile.refused_instance_is_forgotten:
        context.change(static_ids=instances)
        forget_instance(context, event.group_instance_id)


def supports(group: Group, event: JoinReceived) -> bool:
    """Tell whether the group could go on with one of the protocols offered."""
    if group.state is State.EMPTY:
        return bool(event.protocol_type) and bool(event.protocols)
    if event.protocol_type != group.protocol_type:
        return False
    return any(group.members.all_support(name) for name, _ in event.protocols)


def new_member_id(context: Context, event: JoinReceived) -> str:
    """Bind the random part of a new member id: `<instance or client id>-<uuid>`, not in use.

    An offer that is none of that is refused; the id is then one that no request can name.
    """
    prefix = f"{event.group_instance_id or event.client_id}-"
    offered = event.choices.new_member_id
    used = offered in context.group.members or offered in context.group.pending_joins
    if offered.startswith(prefix) and not used:
        context.effects.append(Bound("member_id", offered))
        return offered
    unnamed = f"{prefix}?{event.request}"
    context.effects.append(Bound("member_id", unnamed, refused=offered))
    return unnamed


def join_dynamic(context: Context, event: JoinReceived) -> None:
    """Take a dynamic member without an id: give it one, and from v4 on ask it to come again."""
    member_id = new_member_id(context, event)
    if event.api_version >= FIRST_TWO_STEP_JOIN:
        context.change(pending_joins=context.group.pending_joins | {member_id})
        context.arm(TimerKind.SESSION, event.session_timeout_ms, member_id)
        context.answer(event.request, JoinResponse(Error.MEMBER_ID_REQUIRED, member_id))
    else:
        add_member(context, event, member_id)


def join_static(context: Context, event: JoinReceived, instance_id: str) -> None:
    """Take a static member without an id: new, or the return of a known instance."""
    group = context.group
    if instance_id not in group.static_ids:
        add_member(context, event, new_member_id(context, event))
        return
    old = group.members.get(group.static_ids[instance_id])
    if old is None or group.state is State.EMPTY:  # see `refused_instance_is_forgotten`
        context.fail(event, refuse("", Error.UNKNOWN_SERVER_ERROR))
    else:
        replace_static(context, event, old, new_member_id(context, event))


def add_member(context: Context, event: JoinReceived, member_id: str) -> None:
    """Add a member that has not been in the group before."""
    group = context.group
    if delays_initial_rebalance(context):
        context.change(new_member_added=True)
    if not group.members:
        context.change(protocol_type=event.protocol_type)
    if group.leader is None and not group.open_leaders:
        context.change(leader=member_id)
    if event.group_instance_id is not None:
        context.change(static_ids={**group.static_ids, event.group_instance_id: member_id})
    context.put(
        Member(
            member_id=member_id,
            group_instance_id=event.group_instance_id,
            session_timeout_ms=event.session_timeout_ms,
            rebalance_timeout_ms=event.rebalance_timeout_ms,
            protocol_type=event.protocol_type,
            protocols=event.protocols,
            join=event.request,
            is_new=True,
            client_id=event.client_id,
            client_host=event.client_host,
        )
    )
    context.change(pending_joins=context.group.pending_joins - {member_id})
    # A new member cannot send heartbeats before it has its answer; a client that is gone would
    # stay for ever, so its join itself times out.
    context.arm(TimerKind.SESSION, NEW_MEMBER_JOIN_TIMEOUT_MS, member_id)
    rebalance_or_complete(context, Reason.NEW_MEMBER, member_id)


def delays_initial_rebalance(context: Context) -> bool:
    """Tell whether a new member lets the initial delay begin again."""
    group = context.group
    return (
        group.state is State.PREPARING_REBALANCE
        and group.previous_state is State.EMPTY
        and (context.profile.newcomers_extend_every_initial_delay or group.generation == 0)
    )


def join_known(context: Context, event: JoinReceived) -> None:
    """Take a member that comes with an id: pending, or a member already."""
    group = context.group
    if event.member_id in group.pending_joins:
        if event.group_instance_id is not None:
            context.fail(event, refuse("", Error.UNKNOWN_SERVER_ERROR))
        else:
            add_member(context, event, event.member_id)
        return
    error = validate_member(group, event.member_id, event.group_instance_id)
    if error is not Error.NONE:
        context.answer(event.request, refuse(event.member_id, error))
        return
    member = group.members[event.member_id]
    if group.state is State.PREPARING_REBALANCE:
        update_member(context, event, member)
        complete_if_all_joined(context)
    elif group.state is State.EMPTY:  # cannot be
        context.answer(event.request, refuse(event.member_id, Error.UNKNOWN_MEMBER_ID))
    elif (reason := reason_to_rebalance(context, event, member)) is not None:
        update_member(context, event, member)
        rebalance_or_complete(context, reason, event.member_id)
    else:
        answer_as_it_is(context, event)


def reason_to_rebalance(context: Context, event: JoinReceived, member: Member) -> Reason | None:
    """Tell why a known member's join makes a group rebalance that is not at it yet, if it does."""
    leads = context.group.leader == member.member_id
    unchanged = member.protocols == event.protocols
    if context.group.state is State.STABLE:
        asks = wants_rebalance(context, event, leads=leads, otherwise=leads) if unchanged else leads
        if asks:
            return Reason.LEADER_REJOIN if leads else Reason.JOIN_REASON
    return None if unchanged else Reason.MEMBER_METADATA


def answer_as_it_is(context: Context, event: JoinReceived) -> None:
    """Answer a known member that changes nothing; a leader is told the members.

    Kafka fails where one of these has no metadata for the protocol (see `store_assignment`).
    """
    group = context.group
    leads = group.leader == event.member_id
    if leads and not group.all_support_protocol:
        context.fail(event, refuse("", Error.UNKNOWN_SERVER_ERROR))
        return
    skips = event.api_version >= FIRST_JOIN_WITH_SKIP_ASSIGNMENT and group.state is State.STABLE
    members = member_list(group) if leads else frozenset()
    skip_assignment = leads and skips
    answer = generation_answer(group, event.member_id, members, skip_assignment=skip_assignment)
    context.answer(event.request, answer)
