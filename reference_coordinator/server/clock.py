"""The time of a served cluster, and what a broker's process does when."""

import asyncio
import time
from collections.abc import Callable


class LoopAgenda:
    """An agenda of a broker whose time is the event loop's, as UTC epoch ms.

    While it is frozen nothing happens; what was due then happens when it goes on.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._zero_ms = time.time() * 1000 - self._loop.time() * 1000
        self._held: list[Callable[[], object]] = []
        self.frozen = False

    @property
    def now_ms(self) -> float:
        """What time it is."""
        return self._zero_ms + self._loop.time() * 1000

    def at(self, at_ms: float, act: Callable[[], object]) -> None:
        """Let something happen at a time."""
        self._loop.call_at((at_ms - self._zero_ms) / 1000, self._act, act)

    def after(self, ms: float, act: Callable[[], object]) -> None:
        """Let something happen after a time."""
        self.at(self.now_ms + ms, act)

    def _act(self, act: Callable[[], object]) -> None:
        if self.frozen:
            self._held.append(act)
        else:
            act()

    def go_on(self) -> None:
        """Let happen what was due while it was frozen."""
        self.frozen = False
        held, self._held = self._held, []
        for act in held:
            act()
