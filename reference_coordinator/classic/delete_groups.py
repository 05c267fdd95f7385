"""DeleteGroups, and the removal of a group whose offsets have expired."""

from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.classic.checks import unavailable
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import DeleteResponse, Persist
from reference_coordinator.classic.events import SESSION_TIMER, DeleteReceived
from reference_coordinator.classic.state import DEAD, EMPTY, Group, Write
from reference_coordinator.frozen import replace_fields


def delete(context: Context, event: DeleteReceived) -> None:
    """Handle DeleteGroups: only an Empty group is removed.

    In Scala it is Dead until its tombstone is written, and the response waits for that.
    """
    group = context.group
    error = unavailable(group)
    if error is None and (not group.exists or group.state is DEAD):
        error = Error.GROUP_ID_NOT_FOUND
    elif error is None and group.state is not EMPTY:
        error = Error.NON_EMPTY_GROUP
    elif error is None and context.profile.deleted_group_is_dead_first:
        write = Write(event.request, group.generation, deletes=True)
        context.change(state=DEAD, writes={**group.writes, event.request: write})
        context.effects.append(Persist(event.request, None))
        return
    elif error is None:
        remove_group(context)
    context.answer(event.request, DeleteResponse(NO_ERROR if error is None else error))


def remove_group(context: Context) -> None:
    """Remove an Empty group, and write its tombstone."""
    removed = replace_fields(context.group, removed=None)
    forget_group(context)
    context.change(removed=removed, removed_ms=context.at_ms)
    context.effects.append(Persist(None, None))


def forget_group(context: Context) -> None:
    """Remove a group without members; the ids of its pending members become unknown."""
    group = context.group
    for pending in group.pending_joins | group.removed_pending_joins:
        context.disarm(SESSION_TIMER, pending)
    context.group = Group(group.group_id)
