"""What a split of a log gives: its rows, packed by bucket of group, and its summary."""

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

import msgspec

from reports.judgement.log.processes import Run
from reports.judgement.run.deliveries import NOTHING_HELD, Deliveries

APART = 2_000
"""From so many rows of a block on, a group has a blob to itself: a large one is never whole in
memory."""
TAIL_MS = 1_000.0
"""How much of its end a summary tells millisecond by millisecond. Where lines are further out of
order than that, the splits are read again without such a bound."""

Time = tuple[int | None, int | None]
"""What a line shows of its time: ms, by the wall clock, and a tick. That is the nano clock or, on
lines without one, the place among those of its millisecond. A line without a time shows that of the
line before, without a tick."""
Row = tuple[Any, ...]
REQUEST_ROW = (
    "line", "process", "ms", "tick", "api", "api_version", "client_id", "connection",
    "correlation_id", "request", "response", "error_code", "times_ms", "readable",
)  # fmt: skip
"""The values of a request's row; `process` counts those of the split, `line` its lines from 1."""
LINE_ROW = (
    "line", "process", "sn", "ms", "tick", "level", "template", "partition", "group", "member",
    "instance", "generation", "members", "static_members", "reason", "epoch", "message",
)  # fmt: skip
"""The values of the row of a coordinator's line."""


class Rows(NamedTuple):
    """The rows of a group: requests and lines; without a group also those of unused lines.

    `said` is what the client history says of the group, as tuples of `history.Said`.
    """

    group: str | None
    requests: Sequence[Row] = ()
    lines: Sequence[Row] = ()
    unused: Sequence[Row] = ()
    said: Sequence[Row] = ()

    @property
    def total(self) -> int:
        """How many rows these are."""
        return sum(map(len, self[1:]))


Since = Callable[[Rows], float]
"""Gives from when on rows count, see `Blob`."""


class Blob(NamedTuple):
    """Packed `Rows`: those of a large `group`, or ("") of a bucket's others.

    None of them counts before `since_ms`, by the clock that lines show.
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

    `counted` counts rows by bucket, `large` are the groups that have blobs of their own.
    """

    buckets: int
    counted: Counter[int] = field(default_factory=Counter)
    large: set[str] = field(default_factory=set)

    def blobs(self, block: Iterable[tuple[str, Rows]], since_ms: Since) -> Iterator[Blob]:
        """Pack the rows of a block, each with what its bucket is chosen by."""
        together: dict[int, list[Rows]] = defaultdict(list)
        counts: Counter[int] = Counter()
        for key, rows in block:
            bucket, group, count = bucket_of(key, self.buckets), rows.group, rows.total
            if group is not None and (count >= APART or group in self.large):
                self.large.add(group)
                self.counted[bucket] += count
                yield Blob(bucket, group, count, since_ms(rows), packed([rows]))
            else:
                together[bucket].append(rows)
                counts[bucket] += count
        for bucket, several in together.items():
            yield Blob(bucket, "", counts[bucket], -inf, packed(several))
        self.counted.update(counts)


@dataclass(frozen=True, slots=True)
class How:
    """How splits are read: into how many buckets, and what else of their lines is asked for.

    `deliveries` tell which requests rules of the tap sent twice. Of times within
    `spans` (ms, in order, apart) the summary has each line's, and of requests to `apis` clients
    and connections. `tail_ms` is TAIL_MS, or infinity.
    """

    buckets: int = 1
    spans: Sequence[tuple[float, float]] = ()
    deliveries: Deliveries = NOTHING_HELD
    apis: frozenset[str] = frozenset()
    tail_ms: float = TAIL_MS


WHOLE = How()


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
    times: list[Time] = []
    """The least and the greatest times of lines, by either clock."""
    runs: list[Run] = []
    connections: dict[str, tuple[int, int]] = {}
    """The least and the greatest correlation id of each connection."""
    apart_us: dict[int, int] = {}
    """Lines with both clocks, by printed time minus nano clock in whole microseconds; only of times
    at which no fault had set the clock off."""
    within_ms: dict[int, int] = {}
    """Lines by printed time, from `told_from_ms` on; only of lines without a nano clock."""
    told_from_ms: float = -inf
    lowest_ms: int | None = None
    """The lowest printed time; only of lines without a nano clock."""


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
    clients: list[tuple[str | None, str | None]] = []
    """Connections, each with its client."""

    @property
    def lines(self) -> int:
        """The number of lines."""
        return sum(process.count for process in self.processes)
