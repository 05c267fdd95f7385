"""Lateness: until when something that is due may happen, given when brokers stood still."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Self

from reference_coordinator.replay.evidence import Stall

_BEGIN_MS, _END_MS = itemgetter(0), itemgetter(1)


@dataclass(frozen=True, slots=True)
class Lateness:
    """The stalls that may hold something up: those that are `proven`, and the time of all.

    `spans` are the times in which any of them lasts, in order and apart from each other. A stall
    excuses lateness of its own length and no more: it does not begin the slack anew, and time in
    two stalls counts once.
    """

    proven: tuple[Stall, ...] = ()
    spans: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of(cls, stalls: Iterable[Stall]) -> Self:
        """Sort stalls, and merge those that overlap."""
        spans: list[tuple[float, float]] = []
        in_order = sorted(stalls, key=attrgetter("from_ms", "until_ms"))
        for stall in in_order:
            if spans and stall.from_ms <= spans[-1][1]:
                spans[-1] = spans[-1][0], max(spans[-1][1], stall.until_ms)
            else:
                spans.append((stall.from_ms, stall.until_ms))
        return cls(tuple(stall for stall in in_order if stall.proven), tuple(spans))

    def latest(self, due_ms: float, slack_ms: float) -> float:
        """Return until when something due at `due_ms` may happen."""
        limit_ms = due_ms + slack_ms
        if not self.spans:
            return limit_ms
        for from_ms, until_ms in self.spans[bisect_right(self.spans, due_ms, key=_END_MS) :]:
            if from_ms >= limit_ms:
                break
            limit_ms += until_ms - max(from_ms, due_ms)
        return limit_ms

    def earliest(self, at_ms: float, slack_ms: float) -> float:
        """Return from when on something may have happened that shows at `at_ms`."""
        limit_ms = at_ms - slack_ms
        if not self.spans:
            return limit_ms
        begun = bisect_right(self.spans, at_ms, key=_BEGIN_MS)
        for from_ms, until_ms in reversed(self.spans[:begun]):
            if until_ms <= limit_ms:
                break
            limit_ms -= min(until_ms, at_ms) - from_ms
        return limit_ms

    def stalled_ms(self, from_ms: float, until_ms: float) -> float:
        """Return for how long stalls lasted within a time."""
        return sum(
            max(min(ended_ms, until_ms) - max(begun_ms, from_ms), 0.0)
            for begun_ms, ended_ms in self.spans
        )


def lateness_of(brokers: Iterable[str], stalls: Sequence[Stall]) -> dict[str, Lateness]:
    """Return what may hold up each of some brokers: its own stalls, and all that are proven."""
    return {
        broker: Lateness.of(one for one in stalls if one.proven or one.broker == broker)
        for broker in brokers
    }


NEVER_LATE = Lateness()
"""Of a broker that worked all the time."""
