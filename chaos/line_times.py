"""When a broker wrote the lines of its log, whether its wall clock is set off meanwhile or not."""

from kafka_protocol.log_line import monotonic_ms, written_ms

SET_OFF_MS = 400
"""Two clocks of one line that part by more than this: the wall clock was set. `clock.skew` sets it
by 500 ms at least."""
_SWAPPED = 100
"""How many lines a thread may be late with its own."""


class LineTimes:
    """Places the lines of one broker, which are given in the order of its log.

    A line shows the wall clock, and from 4.0 on the monotonic clock, which nothing sets. It has no
    fixed zero: how far the two are apart is learned from the lines of a process, until they part.
    """

    def __init__(self) -> None:
        self._number = 0
        self._apart_ms: float | None = None

    def at_ms(self, line: str) -> int:
        """Return when a line was written, in UTC epoch ms. Raises ValueError for half a line."""
        shown_ms = written_ms(line)
        if (monotonic := monotonic_ms(line)) is None:
            return shown_ms
        number, at_ms = monotonic
        if number == 1 or number < self._number - _SWAPPED:
            self._apart_ms, self._number = None, 0  # another process
        self._number = max(number, self._number)
        apart_ms = shown_ms - at_ms
        if self._apart_ms is None:
            self._apart_ms = apart_ms
        if abs(apart_ms - self._apart_ms) > SET_OFF_MS:
            return round(at_ms + self._apart_ms)
        # The monotonic clock is read last, and the thread may be suspended before.
        self._apart_ms = max(apart_ms, self._apart_ms)
        return shown_ms
