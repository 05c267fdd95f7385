"""What operators ask of a group: DescribeGroups, DeleteGroups; and its end when nobody asks."""

from kafka_protocol.errors import Error
from kafka_protocol.versions import (
    FIRST_DESCRIBE_WITH_GROUP_ERRORS,
    FIRST_DESCRIBE_WITH_INSTANCE_ID,
)
from reference_coordinator.classic.changed import changed
from reference_coordinator.classic.checks import unavailable
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import (
    Bound,
    DeleteResponse,
    DescribedMember,
    DescribeResponse,
    Persist,
)
from reference_coordinator.classic.events import DeleteReceived, DescribeReceived, TimerKind
from reference_coordinator.classic.state import Group, State, Write

CONFIRMED_WITHIN_MS = 1_000
"""How long the first record of a group, or its last, may be on its way (a bound; brokers gather
records for `group.coordinator.append.linger.ms`, 10 at most by default, before they write)."""


def describe(context: Context, event: DescribeReceived) -> None:
    """Handle DescribeGroups: a group that does not exist is told as a Dead one."""
    group = as_confirmed(context, event)
    if (error := unavailable(group)) is not None:
        answer = DescribeResponse(error)
    elif not group.exists:
        newer = event.api_version >= FIRST_DESCRIBE_WITH_GROUP_ERRORS
        answer = DescribeResponse(Error.GROUP_ID_NOT_FOUND if newer else Error.NONE, State.DEAD)
    elif (
        any(member.is_static for member in group.members.values())
        and event.api_version < FIRST_DESCRIBE_WITH_INSTANCE_ID
        and not context.profile.describes_static_to_old_clients
    ):
        answer = DescribeResponse(Error.UNSUPPORTED_VERSION)
    else:
        answer = description(context, group)
    context.answer(event.request, answer)


def as_confirmed(context: Context, event: DescribeReceived) -> Group:
    """Return the group, or what it was when what is on its way to the disk had not come there.

    A new group may not be there yet, one that was deleted may be there still, even if another one
    has begun since. What was described decides.
    """
    now = context.group
    if not context.profile.describes_what_is_confirmed or event.choices.described == told(now):
        return now
    removed = now.removed
    if removed is not None and context.at_ms - now.removed_ms <= CONFIRMED_WITHIN_MS:
        earlier = [removed, Group(now.group_id)]
    elif now.exists and context.at_ms - now.created_ms <= CONFIRMED_WITHIN_MS:
        earlier = [Group(now.group_id)]
    else:
        return now
    for group in earlier:
        if event.choices.described == told(group):
            context.effects.append(Bound("unconfirmed", now.group_id))
            return group
    return now


def told(group: Group) -> tuple[str, str]:
    """Return the state and the protocol type that a group is told to have."""
    return (group.state, group.protocol_type or "") if group.exists else (State.DEAD, "")


def description(context: Context, group: Group) -> DescribeResponse:
    """Tell what a group is; protocol and metadata are settled in Stable alone.

    Kafka fails where a member has no metadata for the protocol, as it may be after a return before
    2.6.1 (`return_may_change_protocol`).
    """
    stable = group.state is State.STABLE
    if stable and not group.all_support_protocol:
        return DescribeResponse(Error.UNKNOWN_SERVER_ERROR)
    tells_work = stable or context.profile.describes_assignment_at_all_times
    return DescribeResponse(
        Error.NONE,
        group.state,
        group.protocol_type or "",
        (group.protocol or "") if stable else "",
        frozenset(
            DescribedMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                metadata=member.metadata(group.protocol) if stable else "",
                assignment=member.assignment if tells_work else "",
            )
            for member in group.members.values()
        ),
    )


def delete(context: Context, event: DeleteReceived) -> None:
    """Handle DeleteGroups: only an Empty group goes, and where it is Dead first, in two steps."""
    group = context.group
    error = unavailable(group)
    if error is None and (not group.exists or group.state is State.DEAD):
        error = Error.GROUP_ID_NOT_FOUND
    elif error is None and group.state is not State.EMPTY:
        error = Error.NON_EMPTY_GROUP
    elif error is None and context.profile.deleted_group_is_dead_first:
        write = Write(event.request, group.generation, deletes=True)
        context.change(state=State.DEAD, writes={**group.writes, event.request: write})
        context.effects.append(Persist(event.request, None))
        return
    elif error is None:
        remove_group(context)
    context.answer(event.request, DeleteResponse(Error.NONE if error is None else error))


def remove_group(context: Context) -> None:
    """Forget an Empty group, on disk as well."""
    removed = changed(context.group, removed=None)
    forget_group(context)
    context.change(removed=removed, removed_ms=context.at_ms)
    context.effects.append(Persist(None, None))


def forget_group(context: Context) -> None:
    """Forget a group without members; whoever was given an id there begins anew."""
    group = context.group
    for pending in group.pending_joins | group.forgotten_joins:
        context.disarm(TimerKind.SESSION, pending)
    context.group = Group(group.group_id)
