"""When brokers stood still: what the journal and other sources say, as far as their lines allow it.

A broker works at the instant of each line that it writes. Of a time in which a source says that it
stood still, the longest part without a line counts. The replay gives it to the timers and answers
of that broker; what is later than that is not explained by it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

from reference_coordinator.replay import Stall
from reports.judgement.run.machine_log import SHORTEST_MS, Standstill

Signs = Mapping[str, Sequence[float]]
"""By broker id: the instants of its lines, in order; ms."""

RESUMES_MS = 100.0
"""How long before the entry that a pause is healed its broker may go on: the entry follows the
signal, by less than a turn of the controller's loop."""
SAME_PAUSE_MS = 5.0
"""How far the ends of one pause may lie apart in two sources: a collection, and its safepoint."""


def stood_still(
    pauses: Iterable[Stall], standstills: Iterable[Standstill], lines: Signs
) -> tuple[tuple[Stall, ...], list[Standstill]]:
    """Return when brokers stood still: paused by faults, and because of what other sources say.

    Only what their `lines` do not contradict; no standstill of a fault's pause is listed twice.
    """
    paused = silent(pauses, lines)
    return paused, proven(unjournalled(standstills, paused), lines)


def proven(standstills: Iterable[Standstill], lines: Signs) -> list[Standstill]:
    """Keep of each standstill the longest part in which its broker wrote no line.

    One that lies within another of its broker is left out.
    """
    kept = []
    for one in standstills:
        from_ms, until_ms = _longest_silence(one.broker, one.from_ms, one.until_ms, lines)
        if until_ms - from_ms >= SHORTEST_MS:
            kept.append(Standstill(one.broker, from_ms, until_ms, one.because))
    kept.sort(key=lambda one: (one.from_ms, one.broker, -one.until_ms))
    return [one for place, one in enumerate(kept) if not _is_within(one, kept[:place])]


def silent(pauses: Iterable[Stall], lines: Signs) -> tuple[Stall, ...]:
    """Keep of each pause in the journal the longest part in which its broker wrote no line.

    A broker goes on up to RESUMES_MS before the journal says so.
    """
    kept = []
    for pause in pauses:
        resumes_ms = pause.until_ms - RESUMES_MS
        from_ms, until_ms = _longest_silence(pause.broker, pause.from_ms, resumes_ms, lines)
        if until_ms == resumes_ms:
            until_ms = pause.until_ms
        if until_ms - from_ms >= SHORTEST_MS:
            kept.append(replace(pause, from_ms=from_ms, until_ms=until_ms))
    return tuple(kept)


def _longest_silence(
    broker: str, from_ms: float, until_ms: float, lines: Signs
) -> tuple[float, float]:
    """Return the longest part of a time in which a broker wrote no line."""
    times = lines.get(broker, ())
    inside = times[bisect_left(times, from_ms) : bisect_right(times, until_ms)]
    return max(pairwise([from_ms, *inside, until_ms]), key=lambda span: span[1] - span[0])


def _is_within(one: Standstill, others: Iterable[Standstill]) -> bool:
    return any(
        other.broker == one.broker
        and other.from_ms <= one.from_ms + SAME_PAUSE_MS
        and other.until_ms >= one.until_ms - SAME_PAUSE_MS
        for other in others
    )


def unjournalled(standstills: Iterable[Standstill], paused: Iterable[Stall]) -> list[Standstill]:
    """Leave out those of brokers that a fault paused on purpose at that time."""
    spans = [(stall.broker, stall.from_ms, stall.until_ms) for stall in paused]
    return [
        one
        for one in standstills
        if not any(
            broker == one.broker and from_ms <= one.until_ms and until_ms >= one.from_ms
            for broker, from_ms, until_ms in spans
        )
    ]


def as_stalls(standstills: Iterable[Standstill]) -> tuple[Stall, ...]:
    """Turn proven standstills into what the oracle is given."""
    return tuple(Stall(one.broker, one.from_ms, one.until_ms) for one in standstills)


def clock(at_ms: float) -> str:
    """Write a time of day, UTC, with ms."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%H:%M:%S.%f")[:-3]
