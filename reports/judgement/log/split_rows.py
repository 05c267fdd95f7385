"""What a split of a log gives: its rows, packed by bucket of group, and its summary."""

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from math import inf
from typing import Any, NamedTuple

import msgspec

from reports.judgement.run.deliveries import NOTHING_HELD, Deliveries

BLOCK = 32 << 20  # after so many bytes of lines the rows are given out
APART = 2_000
"""From so many rows of a block on, a group has a blob to itself: a large one is never whole in
memory."""

Time = tuple[int | None, int | None]
"""What a line shows of its time: ms, by the wall clock, and a tick. That is the nano clock or, on
lines without one, the place among those around it of the same ms. A line without a time shows that
of the line before, without a tick."""
GOES_ON = -(1 << 40)
"""What such a place is counted from at the start of a split: the split before may end with others
of the same ms."""
Row = tuple[Any, ...]
REQUEST_ROW = (
    "line", "process", "sn", "ms", "tick", "api", "api_version", "client_id", "connection",
    "correlation_id", "request", "response", "error_code", "times_ms", "readable",
)  # fmt: skip
"""The values of a request's row; `process` counts those of the split, `line` its lines from 1."""
LINE_ROW = (
    "line", "process", "sn", "ms", "tick", "level", "template", "partition", "group", "member",
    "instance", "generation", "members", "static_members", "reason", "epoch", "message",
)  # fmt: skip
"""The values of the row of a coordinator's line."""
_MS, _TIMES_MS = REQUEST_ROW.index("ms"), REQUEST_ROW.index("times_ms")
_LINE_MS = LINE_ROW.index("ms")


class Rows(NamedTuple):
    """The rows of a group: requests and lines; without a group also those of unused lines.

    `said` is what the client history says of the group, as tuples of `history.Said`.
    """

    group: str | None
    requests: list[Row]
    lines: list[Row]
    unused: list[Row]
    said: list[Row]

    @classmethod
    def of(cls, group: str | None) -> "Rows":
        """Begin with no row."""
        return cls(group, [], [], [], [])

    @property
    def total(self) -> int:
        """How many rows these are."""
        return sum(map(len, self[1:]))

    @property
    def since_ms(self) -> float:
        """None of these counts before, by the clock that lines show."""
        began = (
            row[_MS] - row[_TIMES_MS][0] if row[_MS] is not None and row[_TIMES_MS] else -inf
            for row in self.requests
        )
        said = (-inf if row[_LINE_MS] is None else row[_LINE_MS] for row in self.lines)
        return float(min(chain(began, said, (row[0] for row in self.said))))


class Blob(NamedTuple):
    """Packed `Rows`: those of a large `group`, or ("") of a bucket's others.

    None of them counts before `since_ms`.
    """

    bucket: int
    group: str
    rows: int
    since_ms: float
    data: bytes


unpacked = msgspec.msgpack.Decoder(list[Rows]).decode
packed = msgspec.msgpack.Encoder().encode


@lru_cache(maxsize=100_000)
def bucket_of(group: str, buckets: int) -> int:
    """Return the bucket of a group: the same in each process."""
    return zlib.crc32(group.encode()) % buckets


@dataclass(slots=True)
class Packing:
    """Packs the rows of a split into so many buckets, block by block.

    What it `counted` are rows by bucket, `large` are the groups that have blobs of their own. The
    times of rows may be `early_ms` too late.
    """

    buckets: int
    early_ms: float = 0.0
    counted: Counter[int] = field(default_factory=Counter)
    large: set[str] = field(default_factory=set)

    def blobs(self, block: Iterable[Rows], nobody: str = "") -> Iterator[Blob]:
        """Pack the rows of a block; rows without a group go to the bucket of `nobody`."""
        together: dict[int, list[Rows]] = defaultdict(list)
        counts: Counter[int] = Counter()
        for rows in block:
            group, count = rows.group, rows.total
            bucket = bucket_of(nobody if group is None else group, self.buckets)
            if group is not None and (count >= APART or group in self.large):
                self.large.add(group)
                self.counted[bucket] += count
                yield Blob(bucket, group, count, rows.since_ms - self.early_ms, packed([rows]))
            else:
                together[bucket].append(rows)
                counts[bucket] += count
        for bucket, several in together.items():
            yield Blob(bucket, "", counts[bucket], -inf, packed(several))
        self.counted.update(counts)


@dataclass(frozen=True, slots=True)
class How:
    """How splits are read: into how many buckets, and what else of their lines is asked for.

    `deliveries` tell which requests rules of the tap sent twice. Of times within `spans` (ms, in
    order, apart) the summary has each line's, and of requests to `apis` clients and connections.
    """

    buckets: int = 1
    spans: Sequence[tuple[float, float]] = ()
    deliveries: Deliveries = NOTHING_HELD
    apis: frozenset[str] = frozenset()


WHOLE = How()


END_MISSING = "the log's end is missing"
"""The gap of a process whose lines do not end with the last line of a coordinator, or the tap."""
START_MISSING = "the log's start is missing"
"""The gap of a broker process whose first lines are not in the log."""
STATUSES = ("used", "irrelevant", "rejected")  # what a line counts as

Placed = tuple[int, int, Any]  # serial number, line and time of a line that has all three
Lost = tuple[str, int, float, int, str]  # a row of the table `lost`


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


def runs(placed: Iterable[Placed]) -> list[Run]:
    """Join lines, ordered by serial number and line, to runs; one that is repeated begins a run."""
    found: list[Run] = []
    for sn, line, at in placed:
        if found and sn == found[-1].last + 1:
            found[-1].last = sn
        else:
            found.append(Run(sn, sn, line, at))
    return found


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


class ProcessSummary(msgspec.Struct, array_like=True):
    """What a split holds of one broker process; a restarted broker goes on in its log.

    `counts` are numbers of lines by status. `partition` is the highest partition of
    `__consumer_offsets` that a line names, `ended` whether the last line is there, the
    coordinator's or the tap's. `lines` are the first and the last line with a serial number.
    """

    count: int = 0
    counts: dict[str, int] = {}
    partition: int | None = None
    ended: bool = False
    lines: tuple[int, int] | None = None
    times: list[Time] = []  # the least and the greatest times of lines, by either clock
    runs: list[Run] = []
    requests: dict[str, bytes] = {}
    """The readable requests of each connection: an array ("i") of correlation ids and lines."""
    copies: list[tuple[str, int, int]] = []
    """Connection and correlation id of requests that the tap sent again, and how often."""
    apart_us: dict[int, int] = {}
    """Lines with both clocks, by printed time minus nano clock in whole microseconds; only of times
    at which no fault had set the clock off."""
    first_ms: int | None = None
    last: Time = (None, None)
    """The times of the first and the last line that has one; only of lines without a nano clock."""
    off: tuple[int, int] | None = None
    """The first line, and its ms, of a time at which a fault may have set the clock off."""


class SplitSummary(msgspec.Struct, array_like=True):
    """What a whole run learns of a split.

    The first of `processes` goes on from the split before; `last_ms` is the last printed time.
    `of_all_groups` are rows of lines. `signs` are the process and time of lines within the spans
    asked for, and how long before that a request was answered. `rows` counts rows by bucket,
    `large` names the groups that have blobs of their own.
    """

    processes: list[ProcessSummary]
    last_ms: int | None = None
    of_all_groups: list[Row] = []
    signs: list[tuple[int, int | None, int | None, float]] = []
    rows: dict[int, int] = {}
    large: list[str] = []
    clients: list[tuple[str, str]] = []  # connections, each with its client

    @property
    def lines(self) -> int:
        """The number of lines."""
        return sum(process.count for process in self.processes)
