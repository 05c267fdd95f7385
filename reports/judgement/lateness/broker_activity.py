"""When a broker demonstrably worked, when it stood still, and when nothing shows either.

A broker works at the instant of each line that it writes; best of all of a request that it took up,
handled and answered at once. While the machine is busy nothing else counts, and a request that
waited within the broker does not: its group's thread may have waited for a CPU, while others ran.
Between two such signs nothing may be known:

    worked      up to WORKS_ON_MS after a sign
    stood still a source says so (see `machine_log`) and no sign of the broker lies in between
    unknown     any other time

What is late by no more than proven standstills explain is in order. What is late by no more than
the unknown time is a doubt. Only what is later than both is the broker's fault.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from reference_coordinator.replay import Parting, Stall
from reports.judgement.log.parsing import ARRIVAL_ERROR_MS
from reports.judgement.run.evidence_level import Level
from reports.judgement.run.machine_log import SHORTEST_MS, Busy, Standstill, is_busy

Row = Mapping[str, Any]
Signs = Mapping[str, Sequence[float]]
"""By broker id: the instants of its signs, in order; ms."""

WORKS_ON_MS = 250.0
"""How long a broker is taken to work on after a sign: half of the slack of a timer. A timer that
was due runs out within 15 ms on a broker that works (measured)."""
AT_ONCE_MS = 100.0
"""A request that was held up for longer than this (queues, handler, sending) is no sign of a broker
that works at its pace. Time in which it waits for others does not count."""

NEAR_MS = 5_000.0
"""How far from a finding the stall is looked for that may be why."""
BUSY_SHARE = 0.5
"""The share of a time for which the machine must be busy to make counts of that time unsure."""

RESUMES_MS = 100.0
"""How long before the entry that a pause is healed its broker may go on: the entry follows the
signal, by less than a turn of the controller's loop."""
SAME_PAUSE_MS = 5.0
"""How far the ends of one pause may lie apart in two sources: a collection, and its safepoint."""
MATTERS_MS = 250.0
"""A standstill that is shorter is not worth telling of: half of the slack of a timer."""


def lines_of(requests: Iterable[Row], lines: Iterable[Row]) -> Signs:
    """Return when each broker wrote lines; of rows of the tables `requests` and `transitions`."""
    return _in_order(
        (row["broker"], at_ms)
        for rows, name in ((requests, "logged_ms"), (lines, "at_ms"))
        for row in rows
        if (at_ms := row[name]) is not None
    )


def signs_of(
    requests: Iterable[Row],
    lines: Iterable[Row],
    busy: Sequence[Busy] = (),
    level: Level = Level.REQUESTS,
) -> Signs:
    """Return when each broker demonstrably worked at its pace; rows as above.

    While the machine is `busy`, a line alone shows nothing, nor does a request that waited: only
    those that took no time altogether do. At level `wire` these are the requests that were answered
    at once.
    """

    def is_sign(row: Row) -> bool:
        if level is Level.WIRE:
            return _answered_at_once(row)
        waited = lambda: row["logged_ms"] - row["arrived_ms"] > AT_ONCE_MS
        in_doubt = lambda: waited() and is_busy(busy, row["broker"], row["logged_ms"])
        return _handled_at_once(row) and not in_doubt()

    at_once = ((row["broker"], row["logged_ms"]) for row in requests if is_sign(row))
    written = (
        (row["broker"], row["at_ms"])
        for row in lines
        if row["at_ms"] is not None and not is_busy(busy, row["broker"], row["at_ms"])
    )
    return _in_order([*at_once, *written])


def _answered_at_once(row: Row) -> bool:
    """Tell whether a broker answered a request without delay, by the time that it took on the wire.

    `earliest_ms` is when the tap forwarded it.
    """
    earliest_ms, answered_ms = row["earliest_ms"], row["answered_ms"]
    if None in (earliest_ms, answered_ms):
        return False
    return bool(answered_ms - earliest_ms <= AT_ONCE_MS)


def _in_order(signs: Iterable[tuple[str, float]]) -> Signs:
    by_broker: dict[str, list[float]] = defaultdict(list)
    for broker, at_ms in signs:
        by_broker[broker].append(at_ms)
    return {broker: sorted(times) for broker, times in by_broker.items()}


def _handled_at_once(row: Row) -> bool:
    """Tell whether a broker took a request up, handled it and sent the answer without delay."""
    times = [row[name] for name in ("arrived_ms", "earliest_ms", "at_ms", "answered_ms")]
    if row["logged_ms"] is None or None in times:
        return False
    arrived_ms, earliest_ms, at_ms, answered_ms = times
    taken_ms = earliest_ms + ARRIVAL_ERROR_MS  # `parsing.RequestLine.times` turned round
    done_ms = 2 * at_ms - taken_ms
    held_ms = (done_ms - arrived_ms) + (row["logged_ms"] - answered_ms)
    return bool(held_ms <= AT_ONCE_MS)


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


def that_matter(
    standstills: Iterable[Standstill], from_ms: float, until_ms: float
) -> list[Standstill]:
    """Return those that lie in a time, and last long enough to change anything."""
    return [
        one
        for one in standstills
        if one.from_ms < until_ms
        and one.until_ms > from_ms
        and one.until_ms - one.from_ms >= MATTERS_MS
    ]


def possible(
    signs: Signs, brokers: Iterable[str], from_ms: float, until_ms: float
) -> tuple[Stall, ...]:
    """Return when each broker may have stood still in a time, for want of signs that it worked.

    The time before the first sign counts, too, and so does the time after the last one: a broker
    without any sign may have stood still throughout.
    """
    stalls = []
    for broker in sorted({*brokers, *signs}):
        worked_until_ms = from_ms
        for at_ms in (*signs.get(broker, ()), until_ms):
            if at_ms > worked_until_ms:
                stalls.append(Stall(broker, worked_until_ms, at_ms, proven=False))
            worked_until_ms = max(worked_until_ms, at_ms + WORKS_ON_MS)
    return tuple(stalls)


def possible_in(
    requests: Sequence[Row],
    lines: Sequence[Row],
    brokers: Iterable[str],
    busy: Sequence[Busy] = (),
    level: Level = Level.REQUESTS,
) -> tuple[Stall, ...]:
    """Return when each broker may have stood still from the first of some rows to the last."""
    times = [at_ms for broker in lines_of(requests, lines).values() for at_ms in broker]
    if not times:
        return ()
    return possible(signs_of(requests, lines, busy, level), brokers, min(times), max(times))


def as_stalls(standstills: Iterable[Standstill]) -> tuple[Stall, ...]:
    """Turn proven standstills into what the oracle is given."""
    return tuple(Stall(one.broker, one.from_ms, one.until_ms) for one in standstills)


def longest_near(stalls: Iterable[Stall], at_ms: float) -> Stall | None:
    """Return the longest of the stalls that may be why something came late, or not, at a time."""
    near = [s for s in stalls if s.from_ms <= at_ms + NEAR_MS and s.until_ms >= at_ms - NEAR_MS]
    return max(near, key=lambda s: (s.until_ms - s.from_ms, -s.from_ms), default=None)


def doubt(group: str, stall: Stall | None, busy: Sequence[Busy], *, wholly: bool = True) -> str:
    """Say why what is wrong with a group proves nothing.

    Lateness explains all of it (`wholly`), or all that missing evidence does not.
    """
    words = f"group {group}: what is wrong is explained if its brokers acted late"
    if not wholly:
        words += ", apart from what missing evidence may explain"
    if stall is None:
        return f"{words}, and nothing shows that they worked at their pace"
    words += (
        f", and nothing shows whether broker {stall.broker} worked in the"
        f" {stall.until_ms - stall.from_ms:,.0f} ms from {clock(stall.from_ms)} UTC on"
    )
    within = {
        one.because
        for one in busy
        if one.broker in ("", stall.broker)
        and one.from_ms <= stall.until_ms
        and one.until_ms >= stall.from_ms
    }
    return f"{words} ({'; '.join(sorted(within))})" if within else words


def doubt_of_threads(group: str, waits_ms: float, busy: Sequence[Busy], at_ms: float) -> str:
    """Say that what is wrong with a group may be threads that waited for a CPU."""
    nearest = min(busy, key=lambda one: max(one.from_ms - at_ms, at_ms - one.until_ms))
    return (
        f"group {group}: what is wrong is explained if single threads of its brokers waited up to"
        f" {waits_ms:,.0f} ms for a CPU while others ran ({nearest.because})"
    )


def doubt_of_writes(group: str, standstill: Standstill) -> str:
    """Say that what is wrong with a group may be writes that a standstill made fail."""
    return (
        f"group {group}: what is wrong is explained if writes failed because"
        f" {_described(standstill)}: {standstill.because}"
    )


def doubt_of_parting(group: str, parting: Parting) -> str:
    """Say that what is wrong with a group may be writes that a parted broker's replicas lack."""
    return (
        f"group {group}: what is wrong is explained if what broker {parting.broker} wrote just"
        f" before it was cut off from the others, at {clock(parting.earliest_ms)} UTC or later,"
        " did not reach them"
    )


def _described(one: Standstill) -> str:
    return (
        f"broker {one.broker} stood still for {one.until_ms - one.from_ms:,.0f} ms from"
        f" {clock(one.from_ms)} UTC on"
    )


def clock(at_ms: float) -> str:
    """Write a time of day, UTC, with ms."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%H:%M:%S.%f")[:-3]


def held_up(
    standstills: Sequence[Standstill], busy: Sequence[Busy], from_ms: float, until_ms: float
) -> str | None:
    """Say what held brokers or the load up in a time, so that counts may be off; None if nothing.

    Each standstill counts, and so does a machine that was busy for BUSY_SHARE of the time.
    """
    if within := that_matter(standstills, from_ms, until_ms):
        worst = max(within, key=lambda one: one.until_ms - one.from_ms)
        more = f", and {len(within) - 1} more times" if len(within) > 1 else ""
        return f"{_described(worst)}{more}: {worst.because}"
    spans = sorted(
        (max(one.from_ms, from_ms), min(one.until_ms, until_ms), one.because)
        for one in busy
        if one.from_ms < until_ms and one.until_ms > from_ms
    )
    total_ms, reached_ms = 0.0, from_ms
    for begun_ms, ended_ms, _ in spans:
        total_ms += max(ended_ms - max(begun_ms, reached_ms), 0.0)
        reached_ms = max(reached_ms, ended_ms)
    if not spans or total_ms < BUSY_SHARE * (until_ms - from_ms):
        return None
    longest = max(spans, key=lambda span: span[1] - span[0])
    return f"the machine was busy for {total_ms / 1_000:,.0f} s of the time: {longest[2]}"
