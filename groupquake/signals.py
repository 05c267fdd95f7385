"""SIGINT and SIGTERM: the first ends a command cleanly, more of them change nothing."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from groupquake.exits import AbortedError

ENDING = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """What a signal does: it raises AbortedError, or gives an order while there is one to give."""

    def __init__(self) -> None:
        """Nothing came yet."""
        self._order: Callable[[str], None] | None = None
        self._came = False

    def install(self) -> None:
        """Take the signals over, for the rest of the process."""
        for number in ENDING:
            signal.signal(number, self._handle)

    @contextmanager
    def ordering(self, order: Callable[[str], None]) -> Iterator[None]:
        """Inside the block, call `order` with the signal's name instead of raising."""
        self._order = order
        try:
            yield
        finally:
            self._order = None

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self._came:
            return
        self._came = True
        name = signal.Signals(number).name
        if self._order is not None:
            self._order(name)
        else:
            raise AbortedError(name)
