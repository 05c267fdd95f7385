"""The clock of a broker that nobody runs: what it is set to, and what it shows."""

from chaos.clusters.clock import Reading


class FakeClock:
    """Shows what it is set to, unless `shows` has something else; it is always off by a zone."""

    def __init__(self) -> None:
        self.shows: dict[int, int | None] = {}
        self.always_ms = 0
        self._by_ms = 0

    def set_off(self, by_ms: int) -> None:
        self._by_ms = by_ms

    def read(self) -> Reading | None:
        shown_ms = self.shows.get(self._by_ms, self._by_ms)
        if shown_ms is None:
            return None
        return Reading(self.always_ms + shown_ms - 4, self.always_ms + shown_ms + 7)
