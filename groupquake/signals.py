"""SIGINT, SIGTERM and SIGHUP: the first ends a command cleanly; further ones are ignored.

SIGUSR1 ends the plan of a run early; the run is healed and judged.
"""

import signal
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from groupquake.exits import AbortedError

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOP = signal.SIGUSR1


class Signals:
    """The effect of signals: AbortedError, or a call of the current handler."""

    def __init__(self) -> None:
        """Set no handler."""
        self._handler: Callable[[str], None] | None = None
        self._stop: Callable[[], None] = self._too_early
        self._came = False
        self._why: str | None = None

    def install(self) -> None:
        """Install the signal handlers for the rest of the process."""
        for number in ENDING:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
                signal.signal(number, self._handle)
        signal.signal(STOP, lambda *_: self._stop())  # looked up at each signal, since it changes

    @contextmanager
    def handling(self, handler: Callable[[str], None]) -> Iterator[None]:
        """Inside the block, call `handler` with the signal's name; raise no AbortedError."""
        self._handler = handler
        try:
            yield
        finally:
            self._handler = None

    def end(self, why: str) -> None:
        """Have the effect of an ending signal, from any thread; `why` stands for its name."""
        self._why = why
        interrupt_main(signal.SIGTERM)  # without `install` it does nothing

    @contextmanager
    def stopping(self, handler: Callable[[], None]) -> Iterator[None]:
        """Inside the block, call `handler` on STOP. Before the block STOP ends the command.

        After the block STOP is ignored.
        """
        self._stop = handler
        try:
            yield
        finally:
            self._stop = lambda: None

    def _too_early(self) -> None:
        self._stop = lambda: None  # a second STOP is ignored
        raise AbortedError("Stop")

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self._came:
            return
        self._came = True
        name = self._why or signal.Signals(number).name
        if self._handler is not None:
            self._handler(name)
        else:
            raise AbortedError(name)


SIGNALS = Signals()
"""The signals of this process."""
