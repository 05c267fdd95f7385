"""What the log of a broker gives: its rows, packed by bucket of group, and its summary."""

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from math import inf
from operator import attrgetter
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
Row = tuple[Any, ...]
REQUEST_ROW = (
    "line", "process", "sn", "ms", "tick", "api", "api_version", "client_id", "connection",
    "correlation_id", "request", "response", "error_code", "times_ms", "readable",
)  # fmt: skip
"""The values of a request's row; `process` counts those of the log, `line` its lines from 1."""
LINE_ROW = (
    "line", "process", "sn", "ms", "tick", "level", "template", "partition", "group", "member",
    "instance", "generation", "members", "static_members", "reason", "epoch", "message",
)  # fmt: skip
"""The values of the row of a coordinator's line."""
_MS, _TIMES_MS = REQUEST_ROW.index("ms"), REQUEST_ROW.index("times_ms")
_LINE_MS = LINE_ROW.index("ms")


class Rows(NamedTuple):
    """The rows of a group in a file: requests and lines; without a group those of unused lines.

    `said` is what the client history says of the group, as tuples of `history.Said`.
    """

    group: str | None
    file: str
    requests: list[Row]
    lines: list[Row]
    unused: list[Row]
    said: list[Row]

    @classmethod
    def of(cls, group: str | None, file: str = "") -> "Rows":
        """Begin with no row."""
        return cls(group, file, [], [], [], [])

    @property
    def total(self) -> int:
        """How many rows these are."""
        return sum(map(len, self[2:]))

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
    """Packs the rows of a log into so many buckets, block by block.

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
    """How logs are read: into how many buckets, and what else of their lines is asked for.

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

Lost = tuple[str, int, float, int, str]  # a row of the table `lost`


class Run(msgspec.Struct, gc=False):
    """Serial numbers `first` to `last` without a gap; `line` and time `at` are those of `first`."""

    first: int
    last: int
    line: int
    at: Time


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


def joined(runs: Iterable[Run]) -> Iterator[Run]:
    """Join runs to longer ones; a number that is repeated begins a run."""
    last: Run | None = None
    for run in sorted(runs, key=attrgetter("first", "line")):
        if last is not None and run.first == last.last + 1:
            last.last = run.last
            continue
        if last is not None:
            yield last
        last = run
    if last is not None:
        yield last


def missing(ordered: Iterable[Run]) -> Iterator[tuple[Run, int]]:
    """Yield how many numbers are missing before a run; they are ordered by `first` and `line`."""
    highest: int | None = None
    for run in ordered:
        if highest is not None and run.first > highest + 1:
            yield run, run.first - highest - 1
        highest = run.last if highest is None else max(highest, run.last)


def doubled(ordered: Iterable[Run]) -> list[tuple[int, int]]:
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


class LogSummary(msgspec.Struct, array_like=True):
    """What a whole run learns of a log.

    `files` are its files, each with the number of lines before it. `processes` has a row for each
    process of the broker (`broker`, `process`, `last_ms`, `partition`, numbers of lines by
    `STATUSES`), `lost` are rows of the table `lost`. `offsets` are, by number of process, what to
    add to its nano clock, in ms, to get UTC, and `doubled` its serial numbers, from first to last,
    that stand twice. `repeated` are lines whose requests stand before. `of_all_groups` are rows of
    `transitions`, `signs` the times of lines within the spans asked for. `rows` counts rows by
    bucket, `large` names the groups that have blobs of their own, and `clients` are connections,
    each with its client.
    """

    broker: str
    files: list[tuple[int, str]] = []
    lines: int = 0
    processes: list[dict[str, Any]] = []
    lost: list[Lost] = []
    offsets: dict[int, float] = {}
    doubled: dict[int, list[tuple[int, int]]] = {}
    repeated: list[int] = []
    is_off: bool = False  # whether the two clocks of a line disagree
    of_all_groups: list[Row] = []
    signs: list[float] = []
    rows: dict[int, int] = {}
    large: list[str] = []
    clients: list[tuple[str, str]] = []
