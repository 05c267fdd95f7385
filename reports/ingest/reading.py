"""The first pass: splits in; packed rows by bucket of group, and summaries, out.

Each line is read, and parsed, once. Few rows go through Spark: one for each bucket of a split.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from reports.ingest import log_files, storing
from reports.ingest.sources import Count, Range, changed, lines_in, ranges_of
from reports.judgement.collector import collector_spared
from reports.judgement.errors import EvidenceError
from reports.judgement.log import reading
from reports.judgement.log.log_places import Split, log_file
from reports.judgement.log.merging import (
    Look,
    Looks,
    Merged,
    TailTooShortError,
    Wanted,
    look,
    merge,
)
from reports.judgement.log.parsing import Parser
from reports.judgement.log.split_rows import Blob, How, SplitSummary
from reports.judgement.run import history_rows
from reports.judgement.run.history import FILE, Read
from reports.judgement.run.history_rows import HistorySummary
from reports.judgement.run.json_form import Account
from reports.judgement.witnesses import Connection

BUCKET_BYTES = 8 << 20
"""How many bytes of lines make a bucket, about."""
LEAST_BUCKETS = 16
"""How many buckets there are at least, so that there is work for some cores."""
SUMMARY = -1
"""Stands as bucket in the row of a summary: `rows` is the number of its lines, and `size` that of
their bytes, counted without regard to lines."""
COLUMNS = """
    file STRING, start LONG, bucket INT, group STRING, rows LONG, since_ms DOUBLE, size LONG,
    data BINARY
"""
"""What a split gives: its blobs, each packed and compressed, and its summary."""
_SCHEMA = storing.schema(COLUMNS)
_CODEC = pa.Codec("zstd", 1)
BATCH_BYTES = 64 << 20
"""After so many bytes of rows, not yet compressed, blobs are given out."""
Summary = SplitSummary | HistorySummary
Lines = Callable[[Iterator[pa.RecordBatch]], Iterator[tuple[Split, Iterable[bytes], Count | None]]]
"""Gives the lines of the splits that a task reads."""


@dataclass(frozen=True)
class Source:
    """Logs of a run: rows whose tasks read splits, and how these do it.

    `ranges` are those of files on paths.
    """

    rows: DataFrame
    lines: Lines
    ranges: Sequence[Range] = ()


def on_paths(spark: SparkSession, files: Sequence[Path], split_bytes: int) -> Source:
    """Return the source of files that executors read themselves."""
    ranges = ranges_of(files, split_bytes)

    def lines(
        batches: Iterator[pa.RecordBatch],
    ) -> Iterator[tuple[Split, Iterable[bytes], Count | None]]:
        for number in chain.from_iterable(batch.column(0).to_pylist() for batch in batches):
            count = Count()
            yield ranges[number].split, lines_in(ranges[number], count), count

    return Source(spark.range(0, len(ranges), 1, max(len(ranges), 1)), lines, ranges)


def by_spark(rows: DataFrame) -> Source:
    """Return the source of the lines that Spark reads, as `log_files.read` does."""

    def lines(
        batches: Iterator[pa.RecordBatch],
    ) -> Iterator[tuple[Split, Iterable[bytes], Count | None]]:
        return ((split, of_split, None) for split, of_split in log_files.by_split(batches))

    return Source(rows, lines)


def buckets_for(size: int) -> int:
    """Return the number of buckets for lines of so many bytes."""
    return max(LEAST_BUCKETS, size // BUCKET_BYTES)


@dataclass(frozen=True)
class Reading:
    """How the lines of a run are read: those of its logs, and those of its client history."""

    parser: Parser
    how: How
    of_history: Read | None = None

    def read(self, split: Split, lines: Iterable[bytes]) -> Iterator[Blob | Summary]:
        """Read a split."""
        if _is_history(split):
            assert self.of_history is not None
            return history_rows.read(lines, self.of_history, self.how.buckets)
        return reading.read(lines, log_file(split.file).broker, self.parser, self.how)


def _is_history(split: Split) -> bool:
    return split.file.endswith(FILE)


@dataclass(frozen=True)
class ReadLines:
    """The blobs of a run, kept by Spark (`COLUMNS`), and what its splits tell together.

    `history` is the account of the client history, `late_ms` counts how late gevent's hub ran.
    `rows` counts rows by bucket, `large` names the groups with blobs of their own. `connections`
    are those that the tap is compared on.
    """

    how: Reading
    blobs: DataFrame
    merged: Merged
    history: Account
    late_ms: Counter[float]
    rows: Counter[int]
    large: frozenset[str]
    connections: frozenset[Connection]


def read_lines(source: Source, place: str, how: Reading) -> ReadLines:
    """Read a run; `place` is what it is called. The caller unpersists what is kept.

    Raises EvidenceError where its logs have no line, or not what is in its files was read.
    """
    frame, counted = source.rows, Observation()
    if not source.ranges:
        frame = frame.observe(counted, F.count(F.lit(1)).alias("lines"))
    found = frame.mapInArrow(_reading(source.lines, how), COLUMNS).persist()
    of_summaries = found.where(F.col("bucket") == SUMMARY)
    rows = of_summaries.select("file", "start", "size", "data").toArrow().to_pylist()
    summaries = {Split(row["file"], row["start"]): _summary(row) for row in rows}
    logs = {split: one for split, one in summaries.items() if isinstance(one, SplitSummary)}
    lines = sum(one.lines for one in summaries.values())
    if not any(one.lines for one in logs.values()):
        raise EvidenceError(
            f"{place}: every {how.parser.folder}/*/group.log is empty;"
            " read brokers/*/stdout.log for the reason"
        )
    read: Counter[str] = Counter()
    for row in rows:
        read[row["file"]] += row["size"]
    for listed in source.ranges:
        if read[listed.split.file] != listed.size:
            raise changed(listed.path)
    if not source.ranges and lines != counted.get["lines"]:
        raise changed(place)
    try:
        merged = merge(logs, how.parser, _looks(source, how))
    except TailTooShortError:
        found.unpersist()
        return read_lines(source, place, replace(how, how=replace(how.how, tail_ms=inf)))
    history, late_ms = Account(), Counter[float]()
    for _, one in sorted(summaries.items()):
        if isinstance(one, HistorySummary):
            history.merge(one.account)
            late_ms.update(one.late_ms)
    return ReadLines(
        how,
        found,
        merged,
        history,
        late_ms,
        sum((Counter(one.rows) for one in summaries.values()), Counter()),
        frozenset(chain.from_iterable(one.large for one in summaries.values())),
        frozenset(
            Connection.of(log_file(split.file).broker, connection, client)
            for split, one in logs.items()
            for connection, client in one.clients
        ),
    )


def _summary(row: Mapping[str, Any]) -> Summary:
    if _is_history(Split(row["file"], 0)):
        return msgspec.msgpack.decode(row["data"], type=HistorySummary)
    return msgspec.msgpack.decode(row["data"], type=SplitSummary)


def _reading(
    lines: Lines, how: Reading
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with collector_spared():  # millions of rows are made, and no cycles among them
            for split, texts, count in lines(batches):
                yield from _packed(split, how.read(split, texts), count)

    return read


def _packed(
    split: Split, found: Iterable[Blob | Summary], count: Count | None
) -> Iterator[pa.RecordBatch]:
    """Yield what was read of a split as rows; `count` is what was counted beside it."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for one in found:
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


def _looks(source: Source, how: Reading) -> Looks:
    """Return what reads some splits again, in a job of its own."""

    def looks(wanted: Mapping[Split, Wanted]) -> Mapping[Split, Look]:
        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for split, texts, _ in lines(batches):
                if split in wanted:  # of the others, no byte is read
                    found = look(texts, how.parser, how.how, wanted[split])
                    row = {"file": split.file, "start": split.start, "data": encode(found)}
                    yield pa.RecordBatch.from_pylist([row])

        found = source.rows.mapInArrow(read, "file STRING, start LONG, data BINARY").toArrow()
        decode = msgspec.msgpack.Decoder(Look).decode
        return {Split(row["file"], row["start"]): decode(row["data"]) for row in found.to_pylist()}

    lines, encode = source.lines, msgspec.msgpack.encode  # a task has no session
    return looks


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Split, Blob]]:
    """Yield the blobs of rows of `COLUMNS`."""
    for batch in batches:
        for file, start, bucket, group, rows, since_ms, size, data in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            raw = _CODEC.decompress(data, size, asbytes=True)
            yield Split(file, start), Blob(bucket, group, rows, since_ms, raw)
