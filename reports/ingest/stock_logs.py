"""Stock logs as Spark reads them: files in; coordinator lines, rejected lines and summaries out.

Executors read and parse.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from reports.ingest import bundle, log_files
from reports.ingest.bundle import Bundle, Rows
from reports.ingest.log_files import literal
from reports.judgement.errors import EvidenceError
from reports.judgement.incident.stock_lines import REJECTED, Line, Reader, Summary

_LOCAL = re.compile("^file:/+")
SHOWN = 300
"""How many characters of a rejected line are kept."""
LINES = (
    "file STRING, start LONG, place LONG, at_ms DOUBLE, broker STRING, partition INT,"
    " template STRING, group STRING, fields STRING, line STRING"
)
TABLES = {
    "lines": LINES,
    "rejected": "file STRING, start LONG, place LONG, why STRING, line STRING",
}
BUNDLE = Bundle({**TABLES, "summaries": "file STRING, start LONG, summary BINARY"})


class Found(NamedTuple):
    """A file: its path as Spark gives it, and its bytes."""

    path: str
    length: int


def listed(spark: SparkSession, places: Sequence[str]) -> list[Found]:
    """List the files at URIs, those of folders too; Spark leaves out what begins with a dot or `_`.

    Raises EvidenceError where there is none.
    """
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    files = reader.load(list(places)).select("path", "length")
    rows = files.toArrow().to_pylist()
    found = {row["path"]: Found(row["path"], row["length"]) for row in rows}
    for uri in files.inputFiles():  # empty ones have no row
        path = _LOCAL.sub("file:/", unquote(uri))
        found.setdefault(path, Found(path, 0))
    if not found:
        raise EvidenceError(f"{', '.join(places)}: no file is there; give brokers' server.log")
    return [found[path] for path in sorted(found)]


def read(spark: SparkSession, files: Iterable[Found], zone: tzinfo) -> DataFrame:
    """Return the bundle `BUNDLE` of some files."""
    with_lines = [literal(file.path) for file in files if file.length]
    if not with_lines:
        return spark.createDataFrame([], BUNDLE.columns)
    return log_files.read(spark, with_lines).mapInArrow(_of_lines(zone), BUNDLE.columns)


def _of_lines(zone: tzinfo) -> Any:
    def read_splits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for split, of_split in groupby(log_files.texts(batches), key=itemgetter(0)):
            texts = chain.from_iterable(map(itemgetter(1), of_split))
            yield from _rows(unquote(split.file), split.start, texts, zone)

    return read_splits


def _rows(file: str, start: int, texts: Iterable[str], zone: tzinfo) -> Iterator[pa.RecordBatch]:
    """Read the lines of a split."""
    reader, rows = Reader(zone), Rows(BUNDLE)
    for place, text in enumerate(texts):
        found = reader.read(text)
        for line in found.lines:
            rows.add("lines", row_of(file, start, place, line))
        if found.status == REJECTED:
            rows.add("rejected", (file, start, place, found.why, text[:SHOWN]))
        if found.lines or found.why:
            yield from rows.batches()
    rows.add("summaries", (file, start, msgspec.msgpack.encode(reader.end())))
    yield from rows.rest()


def row_of(file: str, start: int, place: int, line: Line) -> tuple[Any, ...]:
    """Return a line as a row of the table `lines`."""
    fields = msgspec.json.encode(line.fields).decode()
    return (
        file, start, place, line.at_ms, line.broker, line.partition, line.template, line.group,
        fields, line.text,
    )  # fmt: skip


def summaries(read_bundle: DataFrame) -> dict[tuple[str, int], Summary]:
    """Return the summaries by file and by where the split begins in it."""
    decode = msgspec.msgpack.Decoder(Summary).decode
    rows = bundle.table(read_bundle, "summaries").toArrow().to_pylist()
    by_split = {(row["file"], row["start"]): decode(row["summary"]) for row in rows}
    return {split: by_split[split] for split in sorted(by_split)}


def counted_once(lines: DataFrame, known: DataFrame) -> DataFrame:
    """Name the broker of each line, and say which lines another file has too (`copy`).

    `known` has the files with their broker and their rank in time. A line that stands twice in one
    file was written twice: only the lines of other files are copies.
    """
    placed = lines.join(F.broadcast(known), "file").withColumn(
        "broker", F.when(F.col("broker") == "", F.col("of_file")).otherwise(F.col("broker"))
    )
    in_file = Window.partitionBy("file", "line").orderBy("start", "place")
    over_files = Window.partitionBy("broker", "line", "again").orderBy("rank")
    return (
        placed.withColumn("again", F.row_number().over(in_file))
        .withColumn("copy", F.row_number().over(over_files) > 1)
        .drop("again", "of_file")
    )
