"""The processes that wrote a broker's log, and the gaps in their lines.

The serial number of a numbered line counts every line that a process writes. So a number that is
missing is a line that is missing, and one that stands twice is a line that was added.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


def line_counts(processes: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Sum up numbers of lines by `STATUSES`."""
    total = Counter[str]()
    for one in processes:
        total.update({status: one[status] for status in STATUSES})
    return total


def is_patchy(processes: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a line in ten is rejected, of those that tell something.

    Then what the others show proves nothing, and takes minutes to search an explanation for.
    """
    lines = line_counts(processes)
    return lines["rejected"] > 0.1 * (lines["rejected"] + lines["used"])


def runs(placed: Iterable[Placed]) -> Iterator[Run]:
    """Join lines, ordered by serial number and line, to runs; one that is repeated begins a run."""
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


def missing(ordered: Iterable[Run]) -> Iterator[tuple[Run, int]]:
    """Yield how many numbers are missing before a run; they are ordered by `first` and `line`."""
    highest: int | None = None
    for run in ordered:
        if highest is not None and run.first > highest + 1:
            yield run, run.first - highest - 1
        highest = run.last if highest is None else max(highest, run.last)


def doubled(ordered: Iterable[Run]) -> Sequence[tuple[int, int]]:
    """List the serial numbers, from first to last, that stand in several of such runs."""
    found: list[tuple[int, int]] = []
    highest = -1
    for run in ordered:
        if run.first <= highest:
            found.append((run.first, min(run.last, highest)))
        highest = max(highest, run.last)
    return found


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
