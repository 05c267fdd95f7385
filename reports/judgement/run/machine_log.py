"""Causes of late brokers: samples of the machine and logs of JVMs in; standstills, busy times out.

Pure functions. `machine.jsonl` is that of `groupquake.machine_sampler`; a broker's `jvm-*.log` is
what `-Xlog:safepoint*,gc*` with `timemillis` writes (JEP 158, JDK 17 to 25). These files prove that
a broker stood still, and never that it worked.

A broker works at the instant of each line that it writes. Of a time in which a source says that it
stood still, the longest part without a line counts. The replay gives it to the timers and answers
of that broker; what is later than that is not explained by it.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import inf
from typing import TypeVar

from reference_coordinator.replay import Stall
from reference_coordinator.replay.lateness import Lateness
from reports.judgement.run.disturbance import Disturbance, Source
from reports.judgement.run.journal import LARGEST, Account, Entry, Form, entry
from reports.timing import (
    LATE_UNDER_PRESSURE_MS,
    RESUMES_MS,
    SAME_PAUSE_MS,
    SAMPLED_UNTIL_MS,
    STANDSTILL_MS,
    WRITES_FAIL_MS,
)

Signs = Mapping[str, Sequence[float]]
"""By broker id: the instants of its lines, in order; ms."""
Still = TypeVar("Still", Stall, Disturbance)
BUSY_WAITING = 0.8
"""The share of an interval in which something waited for a CPU, from which on brokers may, too."""
BUSY_STOLEN = 0.25
"""The share of the CPU time that the hypervisor gave to others, from which on the same goes."""
BUSY_THROTTLED = 0.25  # the share of an interval for which a control group was throttled

_NUMBER = int | float
_EVERY: Form = {"event": str, "at_ms": _NUMBER}
_FORMS: dict[str, Form] = {
    "stopped": {"broker": str, "from_ms": _NUMBER, "until_ms": _NUMBER},
    "late": {"from_ms": _NUMBER, "until_ms": _NUMBER},
    "sample": {
        "interval_ms": _NUMBER,
        "cpu_waiting": _NUMBER | None,
        "cpu_stolen": _NUMBER | None,
        "throttled_ms": dict | None,
    },
}  # the fields that are read, by event
_SAFEPOINT = re.compile(r'\[(\d+)ms\]\[safepoint *\] Safepoint "(\w+)".* Total: *(\d+) ns')
_PAUSE = re.compile(r"\[(\d+)ms\]\[gc *\] GC\(\d+\) (Pause [\w ]+?) \(.* (\d+\.\d+)ms$")


def read(content: bytes) -> tuple[list[Entry], Account]:
    """Return the entries of `machine.jsonl`, and the account of its lines."""
    account = Account()
    of_line = partial(entry, every=_EVERY, forms=_FORMS)
    return [*account.entries(content.splitlines(), of_line)], account


def standstills(samples: Iterable[Entry]) -> list[Disturbance]:
    """Return when processes of brokers were stopped."""
    return [
        _stood(sample["broker"], from_ms, until_ms, "its process was stopped")
        for sample in samples
        if sample["event"] == "stopped"
        for from_ms, until_ms in _span(sample)
    ]


def busy(from_ms: float, until_ms: float, cause: str, broker: str = "") -> Disturbance:
    """Return a time in which a broker may have got no CPU; without a `broker`, any of them."""
    return Disturbance(broker, from_ms, until_ms, cause, Source.PRESSURE)


def busy_times(samples: Iterable[Entry]) -> list[Disturbance]:
    """Return when the machine gave the brokers too little CPU time to rely on it."""
    found = []
    for sample in samples:
        if sample["event"] == "late":
            for from_ms, until_ms in _span(sample):
                cause = f"the runner itself ran {until_ms - from_ms:,.0f} ms late"
                found.append(busy(from_ms, until_ms, cause))
        elif sample["event"] == "sample" and sample["interval_ms"] > 0:
            found += _starved(sample)
    return found


def late_ms(samples: Iterable[Entry], busy: Iterable[Disturbance]) -> float:
    """Return how late all of a machine may have been in `busy` times; 0 if that is not known.

    The runner, which takes the samples, shows it. It shows nothing of a single broker that is
    throttled, or of a time without samples. A machine that is so late that writes may fail shows
    nothing, too.
    """
    if not any(one.is_of_machine for one in busy):
        return 0.0
    late = (span for one in samples if one["event"] == "late" for span in _span(one))
    longest_ms = max((until_ms - from_ms for from_ms, until_ms in late), default=0.0)
    all_ms = LATE_UNDER_PRESSURE_MS + longest_ms
    return all_ms if all_ms < WRITES_FAIL_MS else 0.0


def unsampled(samples: Iterable[Entry], until_ms: float) -> list[Disturbance]:
    """Return the time after the last sample, if that does not come up to a time."""
    last_ms = max(
        (
            sample[name]
            for sample in samples
            for name in ("at_ms", "until_ms")
            if name in {**_EVERY, **_FORMS.get(sample["event"], {})}
        ),
        default=-inf,
    )
    if last_ms >= until_ms - SAMPLED_UNTIL_MS:
        return []
    return [busy(last_ms, inf, "nothing tells how busy the machine was")]


def _starved(sample: Entry) -> Iterator[Disturbance]:
    """Yield what a sample tells of an interval in which brokers may have got no CPU."""
    until_ms, interval_ms = sample["at_ms"], sample["interval_ms"]
    from_ms = until_ms - interval_ms
    waiting, stolen = sample.get("cpu_waiting") or 0.0, sample.get("cpu_stolen") or 0.0
    if waiting >= BUSY_WAITING:
        cause = f"something waited for a CPU in {waiting:.0%} of the time"
        yield busy(from_ms, until_ms, cause)
    if stolen >= BUSY_STOLEN:
        yield busy(from_ms, until_ms, f"the hypervisor gave {stolen:.0%} of the CPU time to others")
    for broker, throttled_ms in (sample.get("throttled_ms") or {}).items():
        held_ms = min(throttled_ms, LARGEST) if type(throttled_ms) in (int, float) else 0.0
        if broker != "runner" and held_ms >= BUSY_THROTTLED * interval_ms:
            cause = f"its control group was throttled for {held_ms:,.0f} ms"
            yield busy(from_ms, until_ms, cause, broker)


def of_jvm(broker: str, log: Iterable[str]) -> list[Disturbance]:
    """Return when a broker's JVM held all its threads up, from the lines of its log."""
    found = []
    for line in log:
        if safepoint := _SAFEPOINT.match(line):
            until_ms, lasted_ms = float(safepoint[1]), float(safepoint[3]) / 1e6
            cause = f"its JVM was at a safepoint ({safepoint[2]})"
        elif pause := _PAUSE.match(line):
            until_ms, lasted_ms = float(pause[1]), float(pause[3])
            cause = f"its JVM collected garbage ({pause[2]})"
        else:
            continue
        if lasted_ms >= STANDSTILL_MS:
            found.append(_stood(broker, until_ms - lasted_ms, until_ms, cause))
    return found


def _stood(broker: str, from_ms: float, until_ms: float, cause: str) -> Disturbance:
    return Disturbance(broker, from_ms, until_ms, cause, Source.STANDSTILL)


def _span(sample: Entry) -> Iterator[tuple[float, float]]:
    """Yield from when until when an entry tells of something, if that is long enough."""
    if sample["until_ms"] - sample["from_ms"] >= STANDSTILL_MS:
        yield sample["from_ms"], sample["until_ms"]


def spans_of(
    pauses: Iterable[Stall], standstills: Iterable[Disturbance]
) -> Sequence[tuple[float, float]]:
    """Return when brokers may have stood still: the times of their lines then are asked for."""
    return Lateness.of([*pauses, *as_stalls(standstills)]).spans


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
