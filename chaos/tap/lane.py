"""One way of a connection: frames in their order, some of which have to wait."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from chaos.tap.exchange import Exchange
from chaos.tap.rules import RuleTable, Way

FULL_BYTES = 8 << 20
"""When so much waits, no more is read."""


class Waiting(NamedTuple):
    """A frame that waits, or the end of the connection, and the earliest time that it may pass."""

    exchange: Exchange | None
    frame: bytes | None
    due_ns: int


@dataclass(slots=True, eq=False)
class Lane:
    """Delivers what is pushed, in order, when the rules let it pass and the lane `is_open`.

    `deliver` gets frames, `end` is called for the end of the connection, and `pace` with False when
    so much waits that no more should be read. As with TCP, what waits holds up what follows it.
    """

    _way: Way
    _rules: RuleTable
    _deliver: Callable[[Exchange, bytes], None]
    _end: Callable[[], None]
    _pace: Callable[[bool], None]
    is_open: bool
    _waiting: deque[Waiting] = field(default_factory=deque)
    _bytes: int = 0
    _timer: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Let frames pass from now on."""
        self.is_open = True
        self.drain()

    def push(self, exchange: Exchange, frame: bytes) -> None:
        """Deliver a frame, now or when it may pass."""
        if not self._waiting and self.is_open and not self._rules:
            self._deliver(exchange, frame)
            return
        latency_ns = self._rules.latency_ns(exchange, self._way)
        item = Waiting(exchange, frame, time.monotonic_ns() + latency_ns)
        self._append(item)
        # behind what a rule delayed it waits, too, when that rule has been removed
        if self._waiting and self._waiting[-1] is item and (self._rules or self.is_open):
            exchange.waited = True

    def finish(self, last: Exchange | None) -> None:
        """Deliver the end of the connection, whose last request is given, after what waits."""
        latency_ns = 0 if last is None else self._rules.latency_ns(last, self._way)
        self._append(Waiting(last, None, time.monotonic_ns() + latency_ns))

    def _append(self, item: Waiting) -> None:
        self._waiting.append(item)
        self._count(len(item.frame or b""))
        self.drain()

    def _count(self, more: int) -> None:
        was_full = self._bytes > FULL_BYTES
        self._bytes += more
        if (self._bytes > FULL_BYTES) != was_full:
            self._pace(was_full)

    def drain(self) -> None:
        """Deliver what may pass now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting and self.is_open:
            item = self._waiting[0]
            left_ns = item.due_ns - time.monotonic_ns()
            if left_ns > 0:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(left_ns / 1e9, self.drain)
                return
            if self._is_held(item):
                return
            self._waiting.popleft()
            if item.frame is None:
                self._end()
            elif item.exchange is not None:
                self._count(-len(item.frame))
                self._deliver(item.exchange, item.frame)

    def _is_held(self, item: Waiting) -> bool:
        if item.exchange is None:
            return False
        return self._rules.holding(item.exchange, self._way, end=item.frame is None)

    @property
    def is_held(self) -> bool:
        """Whether a rule holds the first frame, or the lane is not open."""
        return bool(self._waiting) and (not self.is_open or self._is_held(self._waiting[0]))

    def discard(self) -> list[tuple[Exchange, bytes]]:
        """Take out all frames that wait; the end of the connection stays."""
        frames = [(item.exchange, item.frame) for item in self._waiting
                  if item.frame is not None and item.exchange is not None]  # fmt: skip
        self._waiting = deque(item for item in self._waiting if item.frame is None)
        self._count(-self._bytes)
        self.drain()
        return frames
