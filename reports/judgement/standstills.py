"""When brokers stood still: what the journal and other sources say, as far as their lines allow it.

A broker works at the instant of each line that it writes. Of a time in which a source says that it
stood still, the longest part without a line counts. The replay gives it to the timers and answers
of that broker; what is later than that is not explained by it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from reference_coordinator.replay import Stall
from reference_coordinator.replay.lateness import Lateness
from reports.judgement.run.disturbance import Disturbance
from reports.judgement.run.run_folder import RunFolder
from reports.timing import RESUMES_MS, SAME_PAUSE_MS, STANDSTILL_MS

Signs = Mapping[str, Sequence[float]]
"""By broker id: the instants of its lines, in order; ms."""
Still = TypeVar("Still", Stall, Disturbance)


def spans_of(run: RunFolder) -> Sequence[tuple[float, float]]:
    """Return when brokers may have stood still: the times of their lines then are asked for."""
    return Lateness.of([*run.stalls, *as_stalls(run.standstills)]).spans


def stood_still(
    pauses: Iterable[Stall], standstills: Iterable[Disturbance], lines: Signs
) -> tuple[tuple[Stall, ...], tuple[Disturbance, ...]]:
    """Return when brokers stood still: paused by faults, and because of what other sources say.

    Only what their `lines` do not contradict; no standstill of a fault's pause is listed twice.
    """
    paused = silent(pauses, lines, RESUMES_MS)
    planned = [(one.broker, one.from_ms, one.until_ms) for one in paused]
    others = [
        one
        for one in standstills
        if not any(name == one.broker and one.meets(*span) for name, *span in planned)
    ]
    return tuple(paused), tuple(apart(silent(others, lines)))


def silent(said: Iterable[Still], lines: Signs, resumes_ms: float = 0.0) -> list[Still]:
    """Keep of each time the longest part in which its broker wrote no line.

    The broker may have gone on by `resumes_ms` earlier than its source says.
    """
    kept = []
    for one in said:
        end_ms = one.until_ms - resumes_ms
        from_ms, until_ms = _longest(one.from_ms, end_ms, lines.get(one.broker, ()))
        if until_ms == end_ms:
            until_ms = one.until_ms
        if until_ms - from_ms >= STANDSTILL_MS:
            kept.append(replace(one, from_ms=from_ms, until_ms=until_ms))
    return kept


def _longest(from_ms: float, until_ms: float, times: Sequence[float]) -> tuple[float, float]:
    """Return the longest part of a time without one of these instants."""
    inside = times[bisect_left(times, from_ms) : bisect_right(times, until_ms)]
    return max(pairwise([from_ms, *inside, until_ms]), key=lambda part: part[1] - part[0])


def apart(standstills: Iterable[Disturbance]) -> list[Disturbance]:
    """Leave out each standstill that lies within another one of its broker."""
    found: list[Disturbance] = []
    for one in sorted(standstills, key=lambda one: (one.from_ms, one.broker, -one.until_ms)):
        if not any(
            other.broker == one.broker
            and other.from_ms <= one.from_ms + SAME_PAUSE_MS
            and other.until_ms >= one.until_ms - SAME_PAUSE_MS
            for other in found
        ):
            found.append(one)
    return found


def as_stalls(standstills: Iterable[Disturbance]) -> Iterable[Stall]:
    """Turn standstills into what the oracle is given."""
    return (Stall(one.broker, one.from_ms, one.until_ms) for one in standstills)
