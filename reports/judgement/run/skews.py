"""When faults set the wall clocks of brokers off, and what the lines of such a time show.

The journal tells when, and by how much. The lines of the broker show its wall clock, and from 4.0
on its monotonic clock, too. How far the two are apart is taken from lines of other times, and
places all lines; that the wall clock is off then, by so much, is no doubt about a line.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from reports.judgement.run.disturbance import Disturbance
from reports.judgement.run.journal import Fault, healed_ms
from reports.timing import CLOCK_OFF_MS

UNPLACED = "its clock was set off by a fault, and its lines have no other that is known"


@dataclass(frozen=True, slots=True)
class Skew:
    """The clock of a broker (id) was ahead by so much; times in ms, from the intent to the heal."""

    broker: str
    from_ms: float
    to_ms: float
    by_ms: float

    def may_show(self, shown_ms: float) -> bool:
        """Whether a line that shows this time may be of then, by the wrong clock or the right."""
        return self.lasts_at(shown_ms) or self.lasts_at(shown_ms - self.by_ms)

    def lasts_at(self, at_ms: float) -> bool:
        """Whether the clock may be off at a time."""
        return self.from_ms - CLOCK_OFF_MS <= at_ms <= self.to_ms + CLOCK_OFF_MS


def skews(faults: Iterable[Fault]) -> Iterator[Skew]:
    """Yield the skews of a run; one that was not healed lasts to the end."""
    for fault in faults:
        if fault["clock_by_ms"] is not None and fault["broker"] is not None:
            from_ms, by_ms = fault["meant_at_ms"], fault["clock_by_ms"]
            yield Skew(fault["broker"], from_ms, healed_ms(fault), by_ms)


def of_broker(all_skews: Sequence[Skew], broker: str) -> tuple[Skew, ...]:
    """Return those of one broker."""
    return tuple(skew for skew in all_skews if skew.broker == broker)


def on_right_clock(seen: Iterable[Disturbance], of_one: Sequence[Skew]) -> Iterator[Disturbance]:
    """Yield the standstills that a broker's JVM logged by its wall clock, and when else they were.

    Its log has no other clock, so both times count where a fault may have set it off.
    """
    for one in seen:
        yield one
        for skew in of_one:
            if skew.may_show(one.until_ms):
                from_ms, until_ms = one.from_ms - skew.by_ms, one.until_ms - skew.by_ms
                yield replace(one, from_ms=from_ms, until_ms=until_ms)
