"""When the last event of a hypothesis happened: the likeliest instant, and the window around it.

Evidence gives windows, not instants. A hypothesis steps through the likeliest instants and keeps,
for each, the earliest and the latest that it can have been. All times are UTC epoch ms.
"""

from dataclasses import dataclass

from reference_coordinator.replay.candidates import Candidate


@dataclass(slots=True)
class Clock:
    """The last event happened in [earliest_ms, latest_ms], most likely at now_ms.

    A `relaxed` clock takes the window of each event by itself, whatever came before it. It allows
    more orders than are possible. What it does not allow is therefore impossible, and there are
    fewer different states to search.
    """

    earliest_ms: float = 0.0
    now_ms: float = 0.0
    latest_ms: float = 0.0
    relaxed: bool = False

    def fork(self) -> "Clock":
        """Copy the clock."""
        return Clock(self.earliest_ms, self.now_ms, self.latest_ms, self.relaxed)

    def advance(self, candidate: Candidate, until_ms: float) -> None:
        """Let a candidate happen, no later than `until_ms`; time never goes back."""
        earliest_ms, at_ms, latest_ms = candidate[:3]
        if at_ms > self.now_ms:
            self.now_ms = max(self.now_ms, min(at_ms, until_ms))
        if self.relaxed:
            self.earliest_ms, self.latest_ms = earliest_ms, latest_ms
        else:
            if earliest_ms > self.earliest_ms:
                self.earliest_ms = earliest_ms
            self.latest_ms = min(until_ms, latest_ms)

    def advance_in_order(self, candidate: Candidate) -> None:
        """Let a candidate happen that nothing else can be in the place of (the fast path)."""
        if candidate.at_ms > self.now_ms:
            self.now_ms = candidate.at_ms
        if candidate.earliest_ms > self.earliest_ms:
            self.earliest_ms = candidate.earliest_ms
        self.latest_ms = candidate.latest_ms

    def happened_by(self, latest_ms: float) -> None:
        """Narrow the window: a response shows that the last event happened by then."""
        if not self.relaxed:
            self.latest_ms = min(self.latest_ms, latest_ms)

    def within(self, from_ms: float, to_ms: float) -> None:
        """Narrow the window to where it meets another; nothing is to be narrowed by infinity."""
        if not self.relaxed and from_ms <= to_ms:
            self.earliest_ms = max(self.earliest_ms, from_ms)
            self.latest_ms = max(self.earliest_ms, min(self.latest_ms, to_ms))

    def covers(self, other: "Clock") -> bool:
        """Tell whether this window begins no later than another, so that it allows as much."""
        return self.relaxed or self.earliest_ms <= other.earliest_ms

    def widen(self, other: "Clock") -> None:
        """Let the window begin as early as another."""
        self.earliest_ms = min(self.earliest_ms, other.earliest_ms)
