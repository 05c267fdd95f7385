"""Checks every `step` of a test run against the table of transitions.

`checked_steps` wraps the handlers of `step`, so plays, replays and mutants are all checked.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from reference_coordinator.classic.context import Context
from reference_coordinator.classic.step import _HANDLERS
from reference_coordinator.classic.transitions import Row, row_of, taken

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
        for transition in taken(before, event, context.effects, context.group):
            row = row_of(transition)
            assert row is not None, f"{transition} has no row in classic.transitions"
            TAKEN.add(row)

    return handle
