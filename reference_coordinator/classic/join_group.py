"""JoinGroup: Kafka's checks in Kafka's order, then new and known members.

Dynamic members join in two steps (KIP-394), static ones in one. A static member that rejoins
without its member id is in `static_rejoin`; which rejoins start a rebalance, in `rejoin_reasons`.
"""

from kafka_protocol.errors import NO_ERROR, Error
from kafka_protocol.versions import FIRST_JOIN_WITH_SKIP_ASSIGNMENT, FIRST_TWO_STEP_JOIN
from reference_coordinator.classic.checks import unavailable, validate_member
from reference_coordinator.classic.context import Context, refuse
from reference_coordinator.classic.effects import Bound, JoinResponse, Reason
from reference_coordinator.classic.events import SESSION_TIMER, JoinReceived
from reference_coordinator.classic.group_config import held_back
from reference_coordinator.classic.hot_standby import NOTHING, stands_by
from reference_coordinator.classic.membership import (
    forget_instance,
    remove_member,
    remove_pending,
    update_member,
)
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.rebalance import (
    complete_if_all_joined,
    generation_response,
    member_list,
    rebalance_or_complete,
    settle_leader,
)
from reference_coordinator.classic.rejoin_reasons import known_member_reason
from reference_coordinator.classic.state import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    Group,
    GroupFields,
    Member,
)
from reference_coordinator.classic.static_rejoin import replace_static
from reference_coordinator.frozen import replace_fields
from reference_coordinator.timing import NEW_MEMBER_JOIN_TIMEOUT_MS


def join(context: Context, event: JoinReceived) -> None:
    """Handle JoinGroup."""
    error = check_broker(context, event)
    if error is not None:
        context.answer(event.request, error)
        return
    context.create_group()
    error = check_group(context, event)
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


def check_broker(context: Context, event: JoinReceived) -> JoinResponse | None:
    """Make the checks before those of the group: settings, coordinator, existence."""
    group, profile = context.group, context.profile
    if not group.group_id:
        return refuse(event.member_id, Error.INVALID_GROUP_ID)
    invalid = absent = None
    shortest = profile.settings.min_session_timeout_ms
    longest = profile.settings.max_session_timeout_ms
    if not shortest <= event.session_timeout_ms <= longest:
        invalid = refuse(event.member_id, Error.INVALID_SESSION_TIMEOUT)
    if (error := unavailable(group)) is not None:
        absent = refuse(event.member_id if profile.unserved_join_keeps_member_id else "", error)
    first, second = (invalid, absent) if profile.session_range_comes_first else (absent, invalid)
    if first or second:
        return first or second
    if not group.exists and event.member_id:
        return refuse(event.member_id, Error.UNKNOWN_MEMBER_ID)
    return None


def check_group(context: Context, event: JoinReceived) -> JoinResponse | None:
    """Make the checks before those of the member: `group.max.size`, Dead, protocols."""
    group = context.group
    if not accepts_size(group, event, context.profile):
        remove_refused(context, event)
        return refuse("", Error.GROUP_MAX_SIZE_REACHED)
    if group.state is DEAD:
        return refuse(event.member_id, Error.COORDINATOR_NOT_AVAILABLE)
    if not supports(group, event):
        return refuse(event.member_id, Error.INCONSISTENT_GROUP_PROTOCOL)
    return None


def accepts_size(group: Group, event: JoinReceived, profile: Profile) -> bool:
    """Tell whether `group.max.size` lets this JoinGroup in (KIP-389)."""
    if accepts_member(group, event.member_id, profile):
        return True
    known_id = group.static_ids.get(event.group_instance_id or "")
    if event.member_id or known_id is None:
        return False
    return profile.instance_keeps_its_place and accepts_member(group, known_id, profile)


def accepts_member(group: Group, member_id: str, profile: Profile) -> bool:
    """Tell whether `group.max.size` lets a JoinGroup with this member id in; it may be empty."""
    max_size = profile.settings.max_size
    member = group.members.get(member_id)
    is_waiting = member is not None and member.join is not None
    if not profile.last_to_rejoin_are_refused:
        if member_id:
            return member is None or is_waiting or len(group.members) <= max_size
        return len(group.members) < max_size
    if group.state is PREPARING_REBALANCE:
        return is_waiting or group.awaiting < max_size
    if group.state in (STABLE, COMPLETING_REBALANCE):
        return member is not None or len(group.members) < max_size
    return True


def remove_refused(context: Context, event: JoinReceived) -> None:
    """Remove a member that `group.max.size` refuses."""
    profile, instances = context.profile, context.group.static_ids
    if event.member_id not in context.group.pending_joins:
        remove_member(context, event.member_id)
    elif not profile.refused_pending_stays:
        remove_pending(context, event.member_id)
    if profile.refused_instance_is_forgotten:
        context.change(static_ids=instances)
        forget_instance(context, event.group_instance_id)


def supports(group: Group, event: JoinReceived) -> bool:
    """Tell whether all members support one of the protocols offered."""
    if group.state is EMPTY:
        return bool(event.protocol_type) and bool(event.protocols)
    if event.protocol_type != group.protocol_type:
        return False
    return any(group.members.all_support(name) for name, _ in event.protocols)


def new_member_id(context: Context, event: JoinReceived) -> str:
    """Bind the random part of a new member id: `<instance or client id>-<uuid>`, not in use.

    Any other choice is refused; the id is then one that no request can name.
    """
    prefix = f"{event.group_instance_id or event.client_id}-"
    chosen = event.choices.new_member_id
    used = chosen in context.group.members or chosen in context.group.pending_joins
    if chosen.startswith(prefix) and not used:
        context.effects.append(Bound("member_id", chosen))
        return chosen
    placeholder = f"{prefix}?{event.request}"
    context.effects.append(Bound("member_id", placeholder, refused=chosen))
    return placeholder


def join_dynamic(context: Context, event: JoinReceived) -> None:
    """Handle a dynamic member without an id; from v4 on it gets one and has to join again."""
    member_id = new_member_id(context, event)
    if event.api_version >= FIRST_TWO_STEP_JOIN:
        context.change(pending_joins=context.group.pending_joins | {member_id})
        context.arm(SESSION_TIMER, event.session_timeout_ms, member_id)
        context.answer(event.request, JoinResponse(Error.MEMBER_ID_REQUIRED, member_id))
    else:
        add_member(context, event, member_id)


def join_static(context: Context, event: JoinReceived, instance_id: str) -> None:
    """Handle a static member without a member id: a new one, or a static rejoin."""
    group = context.group
    if instance_id not in group.static_ids:
        if not held_back(context, event, instance_id):
            add_member(context, event, new_member_id(context, event))
        return
    old = group.members.get(group.static_ids[instance_id])
    if old is None or group.state is EMPTY:  # see `refused_instance_is_forgotten`
        context.fail(event, refuse("", Error.UNKNOWN_SERVER_ERROR))
    else:
        replace_static(context, event, old, new_member_id(context, event))


def add_member(context: Context, event: JoinReceived, member_id: str) -> None:
    """Add a member that has not been in the group before."""
    group = context.group
    member = Member(
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
    changes: GroupFields = {
        "members": group.members.put(member),
        "pending_joins": group.pending_joins - {member_id},
    }
    if delays_initial_rebalance(context):
        changes["new_member_added"] = True
    if not group.members:
        changes["protocol_type"] = event.protocol_type
    if group.leader is None and not group.open_leaders:
        changes["leader"] = member_id
    if event.group_instance_id is not None:
        changes["static_ids"] = {**group.static_ids, event.group_instance_id: member_id}
    context.change(**changes)
    if stands_by(group, event):
        standby = replace_fields(
            member, join=None, is_new=False, is_standby=True, assignment=NOTHING
        )
        context.put(standby)
        context.keep_alive(standby)
        context.persist(None)
        context.answer(event.request, generation_response(context.group, member_id))
        return
    # A new member sends no heartbeats before it has its response, so its JoinGroup times out;
    # otherwise a client that has died would stay in the group.
    context.arm(SESSION_TIMER, NEW_MEMBER_JOIN_TIMEOUT_MS, member_id)
    rebalance_or_complete(context, Reason.NEW_MEMBER, member_id)


def delays_initial_rebalance(context: Context) -> bool:
    """Tell whether a new member extends the initial delay."""
    group = context.group
    return (
        group.state is PREPARING_REBALANCE
        and group.previous_state is EMPTY
        and (context.profile.new_members_extend_every_initial_delay or group.generation == 0)
    )


def join_known(context: Context, event: JoinReceived) -> None:
    """Handle a JoinGroup with a member id: of a pending member, or of a member."""
    group = context.group
    if event.member_id in group.pending_joins:
        if event.group_instance_id is not None:
            context.fail(event, refuse("", Error.UNKNOWN_SERVER_ERROR))
        else:
            add_member(context, event, event.member_id)
        return
    error = validate_member(group, event.member_id, event.group_instance_id)
    if error is not NO_ERROR:
        context.answer(event.request, refuse(event.member_id, error))
        return
    member = group.members[event.member_id]
    if group.state is PREPARING_REBALANCE:
        update_member(context, event, member)
        complete_if_all_joined(context)
    elif group.state is EMPTY:  # unreachable, as in Kafka: an Empty group has no members
        context.answer(event.request, refuse(event.member_id, Error.UNKNOWN_MEMBER_ID))
    elif member.is_called and group.state is STABLE:
        context.put(replace_fields(member, is_called=False))
        answer_unchanged(context, event)
    elif (reason := known_member_reason(context, event, member)) is not None:
        update_member(context, event, member)
        rebalance_or_complete(context, reason, event.member_id)
    else:
        answer_unchanged(context, event)


def answer_unchanged(context: Context, event: JoinReceived) -> None:
    """Answer a known member whose JoinGroup changes nothing; a leader gets the members.

    In Stable, from v9 on, a leader also gets skipAssignment (KIP-814).

    Kafka fails where a member has no metadata for the selected protocol (see `store_assignment`).
    """
    group = context.group
    leads = group.leader == event.member_id
    if leads and not group.all_support_protocol:
        context.fail(event, refuse("", Error.UNKNOWN_SERVER_ERROR))
        return
    skips = event.api_version >= FIRST_JOIN_WITH_SKIP_ASSIGNMENT and group.state is STABLE
    members = member_list(group) if leads else frozenset()
    skip_assignment = leads and skips
    response = generation_response(group, event.member_id, members, skip_assignment=skip_assignment)
    context.answer(event.request, response)
