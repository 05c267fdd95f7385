"""Timers of members that are gone, or go by another id: they do nothing, and are dropped."""

from collections.abc import MutableMapping
from itertools import filterfalse
from operator import itemgetter

from reference_coordinator.events import Timer, TimerKind
from reference_coordinator.replay.candidates import Due
from reference_coordinator.state import Group

_MEMBER_ID = itemgetter(Timer._fields.index("member_id"))


def forget_strangers(timers: MutableMapping[Timer, Due], before: Group, after: Group) -> None:
    """Drop the timers of nobody, if anybody may have gone."""
    if (
        after.static_ids is before.static_ids
        and len(after.members) == len(before.members)
        and len(after.pending_joins) == len(before.pending_joins)
    ):
        return
    strange = filterfalse(after.members.by_id.__contains__, map(_MEMBER_ID, timers))
    known = {*after.pending_joins, *after.forgotten_joins, ""}
    for member_id in [stranger for stranger in strange if stranger not in known]:
        del timers[Timer(TimerKind.SESSION, member_id)]
