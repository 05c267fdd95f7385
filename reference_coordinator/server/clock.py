"""The time of a broker's process, and what it does when."""

import asyncio
import time
from collections.abc import Callable


class LoopAgenda:
    """An agenda whose time is the event loop's, as UTC epoch ms.

    While it is not `going` nothing happens; what was due then happens when it goes on.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._zero_ms = time.time() * 1000 - self._loop.time() * 1000
        self._held: list[Callable[[], object]] = []
        self.going = asyncio.Event()
        self.going.set()

    @property
    def now_ms(self) -> float:
        """What time it is."""
        return self._zero_ms + self._loop.time() * 1000

    def at(self, at_ms: float, act: Callable[[], object]) -> None:
        """Let something happen at a time."""
        due = lambda: act() if self.going.is_set() else self._held.append(act)
        self._loop.call_at((at_ms - self._zero_ms) / 1000, due)

    def go_on(self) -> None:
        """Let happen what was due while it was frozen."""
        self.going.set()
        held, self._held = self._held, []
        for act in held:
            act()
