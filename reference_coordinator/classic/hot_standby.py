"""Hot standby: members beyond the group's target size hold no partitions (KIP-345, future work).

One takes the place of a member that is removed. `docs/never-shipped.md` is the specification.
"""

from base64 import b64encode
from collections.abc import Sequence

from kafka_protocol.consumer_protocol import Assignment
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.events import JoinReceived
from reference_coordinator.classic.state import STABLE, Group, Member
from reference_coordinator.frozen import replace_fields

NOTHING = b64encode(Assignment(()).encode()).decode()
"""What a standby is assigned: no partitions. Without a blob a Java consumer fails."""


def stands_by(group: Group, event: JoinReceived) -> bool:
    """Tell whether a new member becomes a standby at once: enough work, and it could take over."""
    target = group.config.target_size
    if target is None or group.state is not STABLE or group.workers < target:
        return False
    return group.protocol in dict(event.protocols)


def choose_workers(context: Context) -> None:
    """Let as many members work as the target says: who works already, then who waits longest."""
    group = context.group
    ranked = sorted(group.members.values(), key=lambda one: (one.is_new, one.is_standby))
    working = {one.member_id for one in ranked[: group.config.target_size]}

    def chosen(member: Member) -> Member:
        by = member.member_id not in working
        return replace_fields(member, is_standby=by, is_called=False)

    context.change(members=group.members.each(chosen))


def take_places(context: Context, gone: Sequence[Member], led: str | None) -> bool:
    """Let standbys take the places of members that were removed; tell whether there are enough.

    `led` is who led the group. Nothing moves: a standby gets the partitions of one member, and
    is called to fetch them by its next heartbeat.
    """
    left = [one for one in gone if not one.is_standby]
    spare = [one for one in context.group.members.values() if one.is_standby]
    if context.group.config.target_size is None or len(spare) < len(left):
        return False
    for old, new in zip(left, spare, strict=False):
        context.put(
            replace_fields(new, is_standby=False, is_called=True, assignment=old.assignment)
        )
        if old.member_id == led:
            context.change(leader=new.member_id, open_leaders=frozenset())
    context.persist(None)
    return True
