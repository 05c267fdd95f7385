"""Checks that several requests share."""

from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.classic.state import ABSENT, ACTIVE, Group


def unavailable(group: Group) -> Error | None:
    """Tell why this broker cannot act for the group, if it cannot."""
    if group.service is ACTIVE:
        return None
    if group.service is ABSENT:
        return Error.NOT_COORDINATOR
    return Error.COORDINATOR_LOAD_IN_PROGRESS


def validate_member(
    group: Group, member_id: str, instance_id: str | None, *, known_instances_alone: bool = False
) -> Error:
    """Check a member's two ids (KIP-345): the instance first, then the member.

    A request that names no instance passes with a static member's id: older versions of the
    requests have no field for it. With `known_instances_alone` so does an instance nobody has.
    """
    if instance_id is not None:
        owner = group.static_ids.get(instance_id)
        if owner is None:
            if not known_instances_alone:
                return Error.UNKNOWN_MEMBER_ID
        elif owner != member_id:
            return Error.FENCED_INSTANCE_ID
    return NO_ERROR if member_id in group.members else Error.UNKNOWN_MEMBER_ID
