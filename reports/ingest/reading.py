"""Two passes: splits in, packed rows by bucket of group out; and these in, tables out.

Each line is read, and parsed, once. Few rows go through Spark: one for each bucket of a split.
Buckets are placed on partitions by size. A partition judges them one after the other and writes its
tables; of these, few and small ones come back to the driver, as do the summaries of splits.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from reports.ingest import log_files, storing
from reports.ingest.sources import Count, Range, changed, lines_in, ranges_of
from reports.ingest.storing import RESULT
from reports.ingest.storing import Files as TableFiles
from reports.judgement.buckets import Buckets
from reports.judgement.collector import collector_spared
from reports.judgement.errors import EvidenceError
from reports.judgement.log import reading
from reports.judgement.log.log_places import Split, log_file
from reports.judgement.log.merging import Merged, merge
from reports.judgement.log.parsing import Parser
from reports.judgement.log.split_rows import Blob, How, SplitSummary
from reports.judgement.run import commit_errors
from reports.judgement.run.commit_errors import ByError
from reports.judgement.run.history import FILE, HistorySummary
from reports.judgement.run.journal import Account
from reports.judgement.witnesses import Connection

BUCKET_BYTES = 8 << 20  # how many bytes of lines make a bucket, about
LEAST_BUCKETS = 16
"""How many buckets there are at least, so that there is work for some cores."""
SUMMARY = -1
"""Stands as bucket in the row of a summary: `size` is the number of bytes that were read, counted
without regard to lines."""
COLUMNS = """
    file STRING, start LONG, bucket INT, group STRING, rows LONG, since_ms DOUBLE, size LONG,
    data BINARY
"""  # what a split gives: its blobs, each packed and compressed, and its summary
_SCHEMA = storing.schema(COLUMNS)
_CODEC = pa.Codec("zstd", 1)
BATCH_BYTES = 64 << 20
"""After so many bytes of rows, not yet compressed, blobs are given out."""
Summary = SplitSummary | HistorySummary
Found = Iterator[Blob | Summary]
Lines = Iterator[tuple[Split, Iterable[bytes], Count | None]]
"""The lines of some splits and, of files on paths, what is counted beside them."""


class Source(NamedTuple):
    """Files of a run: rows whose tasks read splits, and what gives these their lines.

    `ranges` are those of files on paths.
    """

    rows: DataFrame
    lines: Callable[[Iterator[pa.RecordBatch]], Lines]
    ranges: Sequence[Range] = ()


def on_paths(spark: SparkSession, files: Sequence[Path], split_bytes: int) -> Source:
    """Return the source of files that executors read themselves."""
    ranges = ranges_of(files, split_bytes)

    def lines(batches: Iterator[pa.RecordBatch]) -> Lines:
        for number in chain.from_iterable(batch.column(0).to_pylist() for batch in batches):
            count = Count()
            yield ranges[number].split, lines_in(ranges[number], count), count

    return Source(spark.range(0, len(ranges), 1, max(len(ranges), 1)), lines, ranges)


def by_spark(rows: DataFrame) -> Source:
    """Return the source of the lines that Spark reads, as `log_files.read` does."""

    def lines(batches: Iterator[pa.RecordBatch]) -> Lines:
        return ((split, of_split, None) for split, of_split in log_files.by_split(batches))

    return Source(rows, lines)


def buckets_for(size: int) -> int:
    """Return the number of buckets for lines of so many bytes."""
    return max(LEAST_BUCKETS, size // BUCKET_BYTES)


@dataclass(frozen=True)
class Reading:
    """How a run is read: the logs in each of its folders, and its client history."""

    logs: Mapping[str, tuple[Parser, How]]
    history: Callable[[Iterable[bytes]], Found] | None = None

    def read(self, split: Split, lines: Iterable[bytes]) -> Found:
        """Read a split."""
        if _is_history(split):
            assert self.history is not None
            return self.history(lines)
        return reading.read(lines, log_file(split.file).broker, *self.logs[_folder(split)])


def _is_history(split: Split) -> bool:
    return split.file.endswith(FILE)


def _folder(split: Split) -> str:
    return log_file(split.file).name.partition("/")[0]


@dataclass(frozen=True)
class ReadLines:
    """The blobs of a run, kept by Spark (`COLUMNS`), and what its splits tell together.

    `merged` is that by folder of logs, as `connections`, on which the tap is compared. `history` is
    the account of the client history, `late_ms` counts how late gevent's hub ran, and
    `commit_errors` are the commits that failed, by its lines. `rows` counts rows by bucket, `large`
    names the groups with blobs of their own.
    """

    blobs: DataFrame
    merged: Mapping[str, Merged]
    connections: Mapping[str, frozenset[Connection]]
    history: Account
    late_ms: Counter[float]
    commit_errors: ByError
    rows: Counter[int]
    large: frozenset[str]


def read_lines(source: Source, place: str, how: Reading) -> ReadLines:
    """Read a run; `place` is what it is called. The caller unpersists what is kept.

    Raises EvidenceError where its logs have no line, or not what is in its files was read.
    """
    rows_read, counted = source.rows, Observation()
    if not source.ranges:
        rows_read = rows_read.observe(counted, F.count(F.lit(1)).alias("lines"))
    read_by_task = partial(_packed, how, source.lines)  # not the source: a task has no session
    found = rows_read.mapInArrow(read_by_task, COLUMNS).persist()
    of_summaries = found.where(F.col("bucket") == SUMMARY)
    rows = of_summaries.select("file", "start", "size", "data").toArrow().to_pylist()
    logs: dict[str, dict[Split, SplitSummary]] = {folder: {} for folder in how.logs}
    summaries: list[Summary] = []
    history, late_ms, failed = Account(), Counter[float](), ByError()
    read: Counter[str] = Counter()
    for row in sorted(rows, key=itemgetter("file", "start")):
        split = Split(row["file"], row["start"])
        read[split.file] += row["size"]
        if _is_history(split):
            of_history = msgspec.msgpack.decode(row["data"], type=HistorySummary)
            history.merge(of_history.account)
            late_ms.update(of_history.late_ms)
            commit_errors.merge(failed, of_history.commit_errors)
            summaries.append(of_history)
        else:
            of_log = msgspec.msgpack.decode(row["data"], type=SplitSummary)
            logs[_folder(split)][split] = of_log
            summaries.append(of_log)
    for folder, of_folder in logs.items():
        if not any(one.lines for one in of_folder.values()):
            raise EvidenceError(
                f"{place}: every {folder}/*/group.log is empty;"
                " read brokers/*/stdout.log for the reason"
            )
    for listed in source.ranges:
        if read[listed.split.file] != listed.size:
            raise changed(listed.path)
    if not source.ranges and sum(one.lines for one in summaries) != counted.get["lines"]:
        raise changed(place)
    merged = {name: merge(logs[name], parser) for name, (parser, _) in how.logs.items()}
    connections = {
        folder: frozenset(
            Connection.of(log_file(split.file).broker, *client)
            for split, one in of_folder.items()
            for client in one.clients
        )
        for folder, of_folder in logs.items()
    }
    counts = sum((Counter(one.rows) for one in summaries), Counter())
    large = frozenset(chain.from_iterable(one.large for one in summaries))
    return ReadLines(found, merged, connections, history, late_ms, failed, counts, large)


def _packed(
    how: Reading,
    lines: Callable[[Iterator[pa.RecordBatch]], Lines],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Read the splits of a task: yield their rows (`COLUMNS`)."""
    with collector_spared():  # millions of rows are made, and no cycles among them
        for split, of_split, count in lines(batches):
            yield from _of_split(how, split, of_split, count)


def _of_split(
    how: Reading, split: Split, lines: Iterable[bytes], count: Count | None
) -> Iterator[pa.RecordBatch]:
    """Read a split; `count` is what is counted beside it."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for one in how.read(split, lines):
        if isinstance(one, Blob):
            rows.append((*split, *one[:4], len(one.data), _CODEC.compress(one.data, asbytes=True)))
            size += len(one.data)
            if size >= BATCH_BYTES:
                yield storing.batch_of(rows, _SCHEMA)
                rows, size = [], 0
            continue
        if count is not None and one.lines != count.lines:
            raise EvidenceError(
                f"{split.file}: {one.lines} lines were read from byte {split.start} on, of"
                f" {count.lines}; please report this as a defect"
            )
        read_bytes = 0 if count is None else count.size
        rows.append((*split, SUMMARY, "", 0, 0.0, read_bytes, msgspec.msgpack.encode(one)))
    yield storing.batch_of(rows, _SCHEMA)


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Split, Blob]]:
    """Yield the blobs of rows of `COLUMNS`."""
    for batch in batches:
        for file, start, bucket, group, rows, since_ms, size, data in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            raw = _CODEC.decompress(data, size, asbytes=True)
            yield Split(file, start), Blob(bucket, group, rows, since_ms, raw)


# the second pass

ROWS_OF_PARTITION = 50_000
"""How many rows a partition has, about: some seconds of judging. Small evidence has smaller ones,
so that there is work for some cores."""
SOME = 16
"""How many partitions evidence of middle size has, at most: cores that differ end at one time."""


def placed(blobs: DataFrame, rows: Counter[int]) -> DataFrame:
    """Bring the blobs of a bucket together, in the order in which they are judged."""
    total = sum(rows.values())
    count = max(min(total // 5_000, SOME), total // ROWS_OF_PARTITION, 2)
    place = dict(_places_of(rows, count))
    places = F.lit([place.get(bucket, 0) for bucket in range(max(place, default=0) + 1)])
    of_buckets = blobs.where(F.col("bucket") != SUMMARY)
    by_place = of_buckets.repartitionById(count, F.get(places, F.col("bucket")))
    return by_place.sortWithinPartitions("bucket", "group", "since_ms", "file", "start")


def _places_of(rows: Mapping[int, int], count: int) -> Iterator[tuple[int, int]]:
    """Yield which partition each bucket goes to: the fullest first, to the emptiest partition.

    The partitions are numbered by their rows, the most first: theirs are the first tasks.
    """
    loads, of_partition = [0] * count, [list[int]() for _ in range(count)]
    for bucket in sorted(rows, key=lambda bucket: (-rows[bucket], bucket)):
        least = min(range(count), key=lambda number: (loads[number], number))
        loads[least] += rows[bucket]
        of_partition[least].append(bucket)
    ordered = sorted(range(count), key=lambda number: (-loads[number], number))
    for place, partition in enumerate(ordered):
        yield from ((bucket, place) for bucket in of_partition[partition])


def judged(
    blobs: DataFrame,
    buckets: Buckets,
    folder: Path | None,
    stored: Collection[str],
    kept: Collection[str],
) -> DataFrame:
    """Judge blobs that are `placed`: return what tasks tell (`RESULT`).

    They write the `stored` tables below a folder, and tell the rows of those that are `kept`.
    """

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = TableFiles(folder, stored, kept)
        with collector_spared():
            buckets.judged(unpacked(batches), files.add)
        yield files.end()

    return blobs.mapInArrow(judge, RESULT)
