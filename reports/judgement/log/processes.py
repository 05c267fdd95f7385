"""The processes that wrote a broker's log: what splits of it hold of each in; the whole, and gaps.

The serial number of a numbered line counts every line that a process writes. So a number that is
missing is a line that is missing, and one that stands twice is a line that was added.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec

END_MISSING = "the log's end is missing"
"""The gap of a process whose lines do not end with the last line of a coordinator, or the tap."""
START_MISSING = "the log's start is missing"
"""The gap of a broker process whose first lines are not in the log."""
STATUSES = ("used", "irrelevant", "rejected")
"""What a line counts as."""

Placed = tuple[int, int, Any]
"""Serial number, line and time of a line that has all three."""
Lost = tuple[str, int, float, int, str]
"""A row of the table `lost`."""


class Run(msgspec.Struct, array_like=True, gc=False):
    """Serial numbers `first` to `last` without a gap, and where the first of them stands.

    `at` is the time of that one, as it is known: what its line shows, or ms.
    """

    first: int
    last: int
    line: int
    at: Any


@dataclass(slots=True)
class ProcessPart:
    """What a part of a broker's log holds of one process; a restarted broker goes on in its log.

    `partition` is the highest partition of `__consumer_offsets` that a line names, `ended` whether
    the last line is there, the coordinator's or the tap's. Lines and times are those of the lines
    that have a serial number: the first and the last. `counts` are numbers of lines by `STATUSES`.
    What the tap saw (`on_wire`) is one process, without the line that begins that of a broker.
    """

    number: int
    counts: dict[str, int]
    last_ms: float | None = None
    partition: int | None = None
    ended: bool = False
    lines: tuple[int, int] | None = None
    times_ms: tuple[float, float] | None = None
    runs: list[Run] = field(default_factory=list)
    on_wire: bool = False


@dataclass(frozen=True, slots=True)
class BrokerProcess:
    """What the lines of one broker process tell; `last_ms` is the time of its latest line."""

    number: int
    last_ms: float | None
    partition: int | None
    statuses: Counter[str]


def line_counts(processes: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Sum up numbers of lines by `STATUSES`."""
    total = Counter[str]()
    for one in processes:
        total.update({status: one[status] for status in STATUSES})
    return total


def is_patchy(counts: Iterable[Mapping[str, int]]) -> bool:
    """Whether a line in ten is rejected, by numbers of lines by `STATUSES`.

    Then what the others show proves nothing, and takes minutes to search an explanation for.
    """
    pairs = [(one.get("rejected", 0), one.get("used", 0)) for one in counts]
    rejected, used = map(sum, zip(*pairs, strict=True)) if pairs else (0, 0)
    return rejected > 0.1 * (rejected + used)


def runs(placed: Iterable[Placed]) -> Iterator[Run]:
    """Join lines, ordered by serial number and line, to runs; a number that is repeated begins one.

    A run may be the end of a longer one only where its first number stands twice.
    """
    run: Run | None = None
    for sn, line, at in placed:
        if run is not None and sn == run.last + 1:
            run.last = sn
            continue
        if run is not None:
            yield run
        run = Run(sn, sn, line, at)
    if run is not None:
        yield run


def entangled(parts: Sequence[ProcessPart]) -> list[int]:
    """List the processes (numbers) of which two parts hold the same serial numbers.

    `parts` are those of one broker, in the order of its log. The runs of such a process do not tell
    which line is the second of its number: it takes the runs of all its lines.
    """
    of: dict[int, list[tuple[Run, int]]] = defaultdict(list)
    for place, part in enumerate(parts):
        of[part.number] += ((run, place) for run in part.runs)
    return [number for number, found in of.items() if _overlap(found)]


def _overlap(found: list[tuple[Run, int]]) -> bool:
    found.sort(key=lambda one: (one[0].first, one[0].line))
    highest, its_place = -1, 0
    for run, place in found:
        if run.first <= highest and place != its_place:
            return True
        if run.last >= highest:
            highest, its_place = run.last, place
    return False


def whole(broker: str, parts: Iterable[ProcessPart]) -> tuple[list[BrokerProcess], list[Lost]]:
    """Join the parts of a broker's log, in its order, to its processes; and find their gaps."""
    of: dict[int, list[ProcessPart]] = defaultdict(list)
    for part in parts:
        of[part.number].append(part)
    processes: list[BrokerProcess] = []
    lost: list[Lost] = []
    for number, found in sorted(of.items()):
        statuses = sum((Counter(part.counts) for part in found), Counter[str]())
        if not statuses:
            continue  # a log that begins with a process's first line has nothing before it
        last_ms = [part.last_ms for part in found if part.last_ms is not None]
        named = [part.partition for part in found if part.partition is not None]
        processes.append(
            BrokerProcess(number, max(last_ms, default=None), max(named, default=None), statuses)
        )
        lost += ((broker, number, *gap) for gap in _gaps(number, found))
    return processes, lost


def ends_of_brokers(
    processes: Iterable[Mapping[str, Any]], lost: Iterable[Mapping[str, Any]]
) -> dict[str, float]:
    """Return when each broker wrote its last line, ms; without those whose log's end is missing.

    `processes` have `broker`, `process` and `last_ms`, `lost` are rows of the table `lost`.
    """
    last = {row["broker"]: row for row in sorted(processes, key=lambda row: row["process"])}
    cut = {(row["broker"], row["process"]) for row in lost if row["what"] == END_MISSING}
    return {
        broker: row["last_ms"]
        for broker, row in last.items()
        if row["last_ms"] is not None and (broker, row["process"]) not in cut
    }


def _gaps(number: int, parts: Sequence[ProcessPart]) -> Iterator[tuple[float, int, str]]:
    """Find the gaps of a process: in its serial numbers, its start and its end."""
    found = sorted((r for part in parts for r in part.runs), key=lambda r: (r.first, r.line))
    if not found:
        return
    for before, run in pairwise(found):
        sn = run.first
        if sn == before.last:
            yield run.at, run.line, f"serial number {sn} stands twice"
        elif sn > before.last + 1:
            missing = sn - before.last - 1
            yield run.at, run.line, f"{missing} lines missing before serial number {sn}"
    lines = [line for part in parts for line in part.lines or ()]
    times_ms = [at_ms for part in parts for at_ms in part.times_ms or ()]
    on_wire = any(part.on_wire for part in parts)
    if found[0].first != 1 or (number == 0 and not on_wire):
        yield min(times_ms), min(lines), START_MISSING
    if not any(part.ended for part in parts):
        yield max(times_ms), max(lines), END_MISSING
