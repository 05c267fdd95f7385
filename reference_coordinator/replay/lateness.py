"""Lateness: the latest time of an event that is due, given the stalls of brokers."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Self

from reference_coordinator.replay.evidence import Stall


@dataclass(frozen=True, slots=True)
class Lateness:
    """The stalls that may hold something up: `proven` ones, and those that are only `possible`.

    Both are in order of time. What is due in or before a proven stall may come within its slack
    after that stall. Possible stalls count for as long as they last, and no longer: they do not
    begin the slack anew, so that many of them excuse no more than the time that they take.
    """

    proven: tuple[Stall, ...] = ()
    possible: tuple[Stall, ...] = ()
    possible_ends_ms: tuple[float, ...] = ()

    @classmethod
    def of(cls, stalls: Iterable[Stall]) -> Self:
        """Sort stalls."""
        in_order = sorted(stalls, key=attrgetter("from_ms", "until_ms"))
        possible = tuple(stall for stall in in_order if not stall.proven)
        return cls(
            tuple(stall for stall in in_order if stall.proven),
            possible,
            tuple(stall.until_ms for stall in possible),
        )

    def latest(self, due_ms: float, slack_ms: float) -> float:
        """Return until when something due at `due_ms` may happen."""
        limit_ms = due_ms + slack_ms
        for stall in self.proven:
            if stall.from_ms <= limit_ms and stall.until_ms >= due_ms:
                limit_ms = max(limit_ms, stall.until_ms + slack_ms)
        # those of one broker do not overlap, so that their ends are in order, too
        for stall in self.possible[bisect_right(self.possible_ends_ms, due_ms) :]:
            if stall.from_ms >= limit_ms:
                break
            limit_ms += stall.until_ms - max(stall.from_ms, due_ms)
        return limit_ms


NEVER_LATE = Lateness()
"""Of a broker that worked all the time."""
