"""Stock logs as Spark reads them: files in; lines, and what happened to groups, out.

Executors read and parse the lines, and tell of each group.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from itertools import groupby, islice
from operator import itemgetter
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from reports.incident.group_incident import row_about
from reports.incident.lines.form import Form
from reports.incident.lines.reader import Line, Reader, SplitSummary
from reports.ingest import log_files
from reports.ingest.uris import literal
from reports.judgement.errors import EvidenceError

Json = dict[str, Any]
SHOWN = 300
"""How many characters of a rejected line are kept."""
FOUND = pa.schema({
    "file": pa.string(), "start": pa.int64(), "place": pa.int64(), "at_ms": pa.float64(),
    "broker": pa.string(), "partition": pa.int32(), "template": pa.string(), "group": pa.string(),
    "fields": pa.string(), "source": pa.string(), "line": pa.string(), "why": pa.string(),
    "summary": pa.string(),
})  # fmt: skip
"""Rows of three kinds: a coordinator's line has a template, a rejected line says why, and there is
one with the summary of each split."""
OF_REBALANCE = pa.struct({
    "group": pa.string(), "at_ms": pa.float64(), "broker": pa.string(), "reason": pa.string(),
    "clients": pa.string(), "client_reason": pa.string(), "generation": pa.int64(),
    "stabilized_ms": pa.float64(), "ended_ms": pa.float64(), "took_ms": pa.float64(),
    "ending": pa.string(), "members": pa.int64(), "came": pa.int32(), "went": pa.int32(),
    "spared": pa.bool_(), "line": pa.string(),
})  # fmt: skip
OF_MEMBER = pa.struct({
    "group": pa.string(), "client": pa.string(), "static": pa.bool_(), "rebalances": pa.int32(),
    "came": pa.int32(), "went": pa.int32(), "expired": pa.int32(), "replaced": pa.int32(),
})  # fmt: skip
OF_GROUP = pa.schema({
    "group": pa.string(), "incident": pa.binary(),
    "rebalances": pa.list_(OF_REBALANCE), "members": pa.list_(OF_MEMBER),
})  # fmt: skip
"""A row for each group; `incident` is its part of `incident.json`."""
_LOCAL = re.compile("^file:/+")
_ROWS = 1_000


def listed(spark: SparkSession, places: Sequence[str]) -> list[str]:
    """List the files at URIs, those of folders too; Spark leaves out what begins with a dot or `_`.

    Raises EvidenceError where there is none.
    """
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    files = reader.load(list(places)).inputFiles()
    if not files:
        raise EvidenceError(f"{', '.join(places)}: no file is there; give brokers' server.log")
    return sorted({_LOCAL.sub("file:/", unquote(uri)) for uri in files})


def read(spark: SparkSession, files: Iterable[str], zone: tzinfo) -> DataFrame:
    """Return the rows `FOUND` of some files."""

    def read_splits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for split, lines in log_files.by_split(batches):
            texts = (line.decode("utf-8", "replace").rstrip("\r\n") for line in lines)
            yield from batched(_rows(unquote(split.file), split.start, texts, zone), FOUND)

    lines = log_files.read(spark, [literal(file) for file in files])
    return lines.mapInArrow(read_splits, from_arrow_schema(FOUND))


def batched(rows: Iterator[Json], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Give out rows by column names; names that are no column are left out."""
    while some := [*islice(rows, _ROWS)]:
        yield pa.RecordBatch.from_pylist(some, schema)


def _rows(file: str, start: int, texts: Iterable[str], zone: tzinfo) -> Iterator[Json]:
    """Read the lines of a split."""
    reader = Reader(Form(), zone)
    for place, text in enumerate(texts):
        at = {"file": file, "start": start, "place": place}
        found = reader.read(text)
        for line in found.lines:
            yield {**at, **line._asdict(), "fields": _encoded(line.fields), "line": line.text}
        if found.why:
            yield {**at, "why": found.why, "line": text[:SHOWN]}
    yield {"file": file, "start": start, "summary": _encoded(reader.summary())}


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def summaries(found: DataFrame) -> Iterator[tuple[str, int, SplitSummary]]:
    """Yield each split: the path of its file, its begin in it, and its summary."""
    rows = found.where("summary IS NOT NULL").select("file", "start", "summary")
    for row in rows.toArrow().to_pylist():
        summary = msgspec.json.decode(row["summary"], type=SplitSummary)
        yield row["file"], row["start"], summary


def counted_once(spark: SparkSession, found: DataFrame, files: Sequence[Json]) -> DataFrame:
    """Name the broker of each coordinator's line, and say which another file has too (`copy`).

    `files` are in the order of their times. A line that stands twice in one file was written twice:
    only the lines of other files are copies.
    """
    known = pa.table({
        "file": [file["path"] for file in files],
        "of_file": [file["broker"] for file in files],
        "rank": list(range(len(files))),
    })  # fmt: skip
    lines = found.where("template IS NOT NULL").drop("why", "summary")
    placed = lines.join(F.broadcast(spark.createDataFrame(known)), "file").withColumn(
        "broker", F.when(F.col("broker") == "", F.col("of_file")).otherwise(F.col("broker"))
    )
    in_file = Window.partitionBy("file", "line").orderBy("start", "place")
    over_files = Window.partitionBy("broker", "line", "again").orderBy("rank")
    return (
        placed.withColumn("again", F.row_number().over(in_file))
        .withColumn("copy", F.row_number().over(over_files) > 1)
        .drop("again", "of_file")
    )


def of_groups(lines: DataFrame, session_ms: float | None) -> DataFrame:
    """Return the rows `OF_GROUP`; `session_ms` is the session asked for, if any."""

    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        every = (row for batch in batches for row in batch.to_pylist())
        by_group = groupby(every, key=itemgetter("group"))
        rows = (row_about(group, map(_line, mine), session_ms) for group, mine in by_group)
        yield from batched(rows, OF_GROUP)

    about = lines.where("group IS NOT NULL").repartition("group")
    ordered = about.sortWithinPartitions("group", "at_ms", "rank", "start", "place")
    columns = ordered.withColumnRenamed("line", "text").select(*Line._fields)
    return columns.mapInArrow(tell, from_arrow_schema(OF_GROUP))


def _line(row: Json) -> Line:
    return Line(**row | {"fields": msgspec.json.decode(row["fields"])})
