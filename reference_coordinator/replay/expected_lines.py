"""The lines that a coordinator must print about members that join, leave or expire.

Each comes from what a step did to the group, and is compared one to one with the lines observed.
"""

from collections.abc import Iterator

from reference_coordinator.classic.events import (
    Event,
    JoinReceived,
    LeaveReceived,
    RecordWritten,
    SyncReceived,
    TimerFired,
    TimerKind,
)
from reference_coordinator.classic.state import Group


def expected_lines(before: Group, after: Group, event: Event) -> Iterator[tuple[str, str]]:
    """Yield (line, subject): a member id, or the instance id where a member was replaced."""
    match event:
        case RecordWritten() | SyncReceived():
            return
        case JoinReceived(member_id="", group_instance_id=str(instance)):
            old, new = before.static_ids.get(instance), after.static_ids.get(instance)
            if old is None and new is not None:
                yield "static_added", new
            elif new not in (None, old):
                yield "static_replaced", instance
        case JoinReceived(member_id=""):
            yield from (("dynamic_given_id", m) for m in after.pending_joins - before.pending_joins)
            yield from (("dynamic_added", m) for m in after.members.keys() - before.members.keys())
        case JoinReceived(member_id=member_id):
            if member_id in before.pending_joins and member_id in after.members:
                yield "pending_joins", member_id
        case LeaveReceived():
            yield from (("left", m) for m in before.members.keys() - after.members.keys())
            yield from (("pending_left", m) for m in before.pending_joins - after.pending_joins)
        case TimerFired() if event.timer.kind is TimerKind.SESSION:
            member_id = event.timer.member_id
            if member_id in before.members and member_id not in after.members:
                yield "pending_expired" if event.of_pending else "session_expired", member_id
            elif member_id in before.removed_pending_joins or (
                member_id in before.pending_joins and member_id not in after.pending_joins
            ):
                yield "pending_expired", member_id
