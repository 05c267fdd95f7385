"""Checks that several requests share."""

from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.classic.state import ABSENT, ACTIVE, Group


def unavailable(group: Group) -> Error | None:
    """Return why this broker cannot act for the group; None if it can."""
    if group.service is ACTIVE:
        return None
    if group.service is ABSENT:
        return Error.NOT_COORDINATOR
    return Error.COORDINATOR_LOAD_IN_PROGRESS


def validate_member(
    group: Group, member_id: str, instance_id: str | None, *, ignore_unknown_instance: bool = False
) -> Error:
    """Check a member's two ids (KIP-345): the instance first, then the member.

    A request without an instance id passes with a static member's id: older versions of the
    requests have no field for it. `ignore_unknown_instance`: an instance id that no member has
    counts as none.
    """
    if instance_id is not None:
        owner = group.static_ids.get(instance_id)
        if owner is None:
            if not ignore_unknown_instance:
                return Error.UNKNOWN_MEMBER_ID
        elif owner != member_id:
            return Error.FENCED_INSTANCE_ID
    return NO_ERROR if member_id in group.members else Error.UNKNOWN_MEMBER_ID
