"""DescribeGroups: the state of a group and its members."""

from kafka_protocol.errors import NO_ERROR, Error
from kafka_protocol.versions import (
    FIRST_DESCRIBE_WITH_GROUP_ERRORS,
    FIRST_DESCRIBE_WITH_INSTANCE_ID,
)
from reference_coordinator.classic.checks import unavailable
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import Bound, DescribedMember, DescribeResponse
from reference_coordinator.classic.events import DescribeReceived
from reference_coordinator.classic.state import DEAD, STABLE, Group
from reference_coordinator.timing import COMMITTED_WITHIN_MS


def describe(context: Context, event: DescribeReceived) -> None:
    """Handle DescribeGroups: a group that does not exist is described as Dead."""
    group = committed_group(context, event)
    if (error := unavailable(group)) is not None:
        response = DescribeResponse(error)
    elif not group.exists:
        newer = event.api_version >= FIRST_DESCRIBE_WITH_GROUP_ERRORS
        response = DescribeResponse(Error.GROUP_ID_NOT_FOUND if newer else NO_ERROR, DEAD)
    elif (
        any(member.is_static for member in group.members.values())
        and event.api_version < FIRST_DESCRIBE_WITH_INSTANCE_ID
        and not context.profile.describes_static_to_old_clients
    ):
        response = DescribeResponse(Error.UNSUPPORTED_VERSION)
    else:
        response = description(context, group)
    context.answer(event.request, response)


def committed_group(context: Context, event: DescribeReceived) -> Group:
    """Return the group as its committed records have it (Java), which may lag behind.

    A group may exist before its first record is committed, and a deleted one until its tombstone
    is, even if the name is in use again. `choices.described` decides which of these was described.
    """
    now = context.group
    described = event.choices.described
    if not context.profile.describes_committed_records or described == summary(now):
        return now
    removed = now.removed
    if removed is not None and context.at_ms - now.removed_ms <= COMMITTED_WITHIN_MS:
        earlier = [removed, Group(now.group_id)]
    elif now.exists and context.at_ms - now.created_ms <= COMMITTED_WITHIN_MS:
        earlier = [Group(now.group_id)]
    else:
        return now
    for group in earlier:
        if described == summary(group):
            context.effects.append(Bound("unconfirmed", now.group_id))
            return group
    return now


def summary(group: Group) -> tuple[str, str]:
    """Return the state and the protocol type that DescribeGroups gives for a group."""
    return (group.state, group.protocol_type or "") if group.exists else (DEAD, "")


def description(context: Context, group: Group) -> DescribeResponse:
    """Describe a group that exists; protocol and metadata appear in Stable alone.

    Kafka fails where a member has no metadata for the selected protocol, which a static rejoin
    could cause before 2.6.1 (`return_may_change_protocol`).
    """
    stable = group.state is STABLE
    if stable and not group.all_support_protocol:
        return DescribeResponse(Error.UNKNOWN_SERVER_ERROR)
    with_assignments = stable or context.profile.describes_assignments_in_every_state
    return DescribeResponse(
        NO_ERROR,
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
                assignment=member.assignment if with_assignments else "",
            )
            for member in group.members.values()
        ),
    )
