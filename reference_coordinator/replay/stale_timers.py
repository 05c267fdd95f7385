"""Timers of members that are gone, or go by another id: they do nothing, and are dropped."""

from collections.abc import Iterable, MutableMapping
from itertools import filterfalse
from operator import itemgetter

from reference_coordinator.classic.events import Event, JoinReceived, Timer, TimerKind
from reference_coordinator.classic.state import Group
from reference_coordinator.replay.candidates import Due

_MEMBER_ID = itemgetter(Timer._fields.index("member_id"))


def drop_stale_timers(
    timers: MutableMapping[Timer, Due], before: Group, after: Group, event: Event
) -> None:
    """Drop the timers of nobody, if anybody may have gone."""
    grown = len(after.members.by_id) - len(before.members.by_id)
    as_many = not grown and len(after.pending_joins) == len(before.pending_joins)
    one_came = grown == 1  # and nobody went with it
    if one_came or (as_many and after.static_ids is before.static_ids):
        return
    ids: Iterable[str] = map(_MEMBER_ID, timers)
    if as_many and isinstance(event, JoinReceived) and not event.member_id:
        replaced = before.static_ids.get(event.group_instance_id or "")
        if replaced is not None:  # nobody else went, or there were fewer
            ids = (replaced,)
    without_member = filterfalse(after.members.by_id.__contains__, ids)
    known = {*after.pending_joins, *after.removed_pending_joins, ""}
    for member_id in [stranger for stranger in without_member if stranger not in known]:
        timers.pop(Timer(TimerKind.SESSION, member_id), None)
