"""SIGINT and SIGTERM: the first ends a command cleanly, more of them change nothing.

SIGUSR1 stops a run early and cleanly, to be judged by what happened so far.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from groupquake.exits import AbortedError

ENDING = (signal.SIGINT, signal.SIGTERM)
STOP = signal.SIGUSR1


class Signals:
    """What a signal does: it raises AbortedError, or gives an order while there is one to give."""

    def __init__(self) -> None:
        """Nothing came yet."""
        self._order: Callable[[str], None] | None = None
        self._stop: Callable[[], None] = self._too_early
        self._came = False

    def install(self) -> None:
        """Take the signals over, for the rest of the process."""
        for number in ENDING:
            signal.signal(number, self._handle)
        signal.signal(STOP, lambda *_: self._stop())  # read anew each time: it changes

    @contextmanager
    def ordering(self, order: Callable[[str], None]) -> Iterator[None]:
        """Inside the block, call `order` with the signal's name instead of raising."""
        self._order = order
        try:
            yield
        finally:
            self._order = None

    @contextmanager
    def stopping(self, order: Callable[[], None]) -> Iterator[None]:
        """Inside the block, call `order` on STOP, which before it ends the command.

        Behind the block there is nothing left to stop.
        """
        self._stop = order
        try:
            yield
        finally:
            self._stop = _too_late

    def _too_early(self) -> None:
        self._stop = _too_late  # once more changes nothing, as with the others
        raise AbortedError("Stop")

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self._came:
            return
        self._came = True
        name = signal.Signals(number).name
        if self._order is not None:
            self._order(name)
        else:
            raise AbortedError(name)


def _too_late() -> None:
    pass


SIGNALS = Signals()
"""Those of this process."""
