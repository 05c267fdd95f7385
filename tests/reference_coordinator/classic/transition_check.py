"""Checks every `step` of a test run against the table of transitions.

`checked_steps` wraps the handlers of `step`, so plays, replays and mutants are all checked.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from kafka_protocol.errors import NO_ERROR
from reference_coordinator.classic.context import Context
from reference_coordinator.classic.effects import Effect, Reason, Transition
from reference_coordinator.classic.events import (
    CommitReceived,
    ConfigureReceived,
    DeleteReceived,
    Event,
    Expired,
    JoinReceived,
    LeaveReceived,
    Loaded,
    LoadStarted,
    RecordWritten,
    TimerFired,
    TimerKind,
    Unloaded,
)
from reference_coordinator.classic.group_config import settle
from reference_coordinator.classic.join_group import join
from reference_coordinator.classic.state import ABSENT, LOADING, Group
from reference_coordinator.classic.step import _HANDLERS
from reference_coordinator.classic.transitions import (
    ANY,
    LOADING_GROUP,
    NO_GROUP,
    NOT_COORDINATOR,
    TABLE,
    Cause,
    Row,
)

TAKEN: set[Row] = set()
"""The rows that were taken so far."""


@contextmanager
def checked_steps() -> Iterator[None]:
    """Fail, while this is open, a step that takes a transition without a row."""
    handlers = dict(_HANDLERS)
    for event, handler in handlers.items():
        _HANDLERS[event] = _checked(handler)
    try:
        yield
    finally:
        _HANDLERS.update(handlers)


def _checked(handler: Callable[[Context, Any], None]) -> Callable[[Context, Any], None]:
    def handle(context: Context, event: Any) -> None:
        before = context.group
        handler(context, event)
        if context.group.is_unsettled:  # `step` does so after the handler, and finds nothing to do
            for held in settle(context):
                join(context, held)
        for transition in taken(before, event, context.effects, context.group):
            row = row_of(transition)
            assert row is not None, f"{transition} has no row in classic.transitions"
            TAKEN.add(row)

    return handle


class Taken(NamedTuple):
    """A transition that one step took."""

    before: str
    cause: Cause
    after: str
    reason: Reason | None = None


def status(group: Group) -> str:
    """Return the state of a group on this broker, as the table names it."""
    if group.service is ABSENT:
        return NOT_COORDINATOR
    if group.service is LOADING:
        return LOADING_GROUP
    return str(group.state) if group.exists else NO_GROUP


def taken(before: Group, event: Event, effects: Iterable[Effect], after: Group) -> Iterator[Taken]:
    """Yield the transitions of one step: its `Transition` effects, and the changes between them."""
    now = status(before)
    for effect in effects:
        if isinstance(effect, Transition):
            if effect.before != now:
                yield Taken(now, cause_of(event), effect.before)
            yield Taken(effect.before, cause_of(event), effect.after, effect.reason)
            now = effect.after
    if now != status(after):
        yield Taken(now, cause_of(event), status(after))


def row_of(transition: Taken) -> Row | None:
    """Find the row of a transition; None if the table has none."""
    return _ROWS.get(transition) or _ROWS.get(transition._replace(before=ANY))


def cause_of(event: Event) -> Cause:
    """Return the cause that an event stands for; KeyError for one that changes no state."""
    if isinstance(event, TimerFired):
        return _BY_TIMER[event.timer.kind]
    if isinstance(event, RecordWritten):
        return Cause.STORED if event.error is NO_ERROR else Cause.NOT_STORED
    return _BY_EVENT[type(event)]


_ROWS = {Taken(row.before, row.cause, row.after, row.reason): row for row in TABLE}
_BY_TIMER = {
    TimerKind.SESSION: Cause.SESSION_TIMER,
    TimerKind.JOIN: Cause.JOIN_TIMER,
    TimerKind.SYNC: Cause.SYNC_TIMER,
    TimerKind.WAIT: Cause.WAIT_TIMER,
}
_BY_EVENT: dict[type[Event], Cause] = {
    JoinReceived: Cause.JOIN,
    LeaveReceived: Cause.LEAVE,
    CommitReceived: Cause.COMMIT,
    ConfigureReceived: Cause.CONFIGURE,
    DeleteReceived: Cause.DELETE,
    Expired: Cause.OFFSETS_EXPIRED,
    LoadStarted: Cause.LOAD_STARTED,
    Loaded: Cause.LOADED,
    Unloaded: Cause.UNLOADED,
}
