"""The brokers' logs as Spark reads them: lines, each with its file and its split.

A broker's log is `brokers/<id>/group.log`, and what the tap saw of it `tap/<id>/group.log`. Rotated
files (`group.log.1`, `group.log.2`, …) hold what is older, the highest number the oldest. Files may
be compressed (`.gz`); Spark reads such a file as one split. The numbers of lines go through all
files of a broker.
"""

import re
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import groupby, islice
from operator import itemgetter
from urllib.parse import unquote

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reports.ingest.sources import NAMES, no_log
from reports.ingest.uris import literal
from reports.judgement.log.log_bytes import FORMS, LONGEST, OTHERS, SHOWN, TOO_LONG, unpacked
from reports.judgement.log.log_places import Split

PACKED = (*FORMS, *OTHERS)
FILE = "_metadata.file_path"
ROWS = 1_000  # how many lines of a packed file are given out at once
_MOST = "mapreduce.input.linerecordreader.line.maxlength"
"""Hadoop's option for the longest line, in bytes."""
_SIZE, _UNITS = re.compile(r"(\d+)([kmgt]?)"), ("", "k", "m", "g", "t")
"""How Spark writes sizes."""


def lines(spark: SparkSession, source: str, folder: str) -> DataFrame:
    """Return the lines of the logs of the run at a URI, as `read` does.

    `folder` of the run has a folder for each broker. Raises EvidenceError where there is no log.
    """
    names = ",".join(NAMES)
    try:
        files = spark.read.text(f"{literal(source)}/{folder}/*/{{{names}}}").inputFiles()
    except AnalysisException as error:
        raise no_log(source, folder) from error
    return read(spark, [literal(unquote(file)) for file in files])


def read(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """Return the lines of files, by their globs: `value` (bytes, `shortened`), `file` and `start`.

    Packed files are unpacked by Python, so that what stands before a damage counts, and no line is
    too long: Spark's own reader fails on a damaged file, or drops its rest.
    """
    packed = [file for file in files if file.endswith(PACKED)]
    plain = [file for file in files if not file.endswith(PACKED)]
    parts = [bounded(spark, plain)] if plain else []
    if packed:
        whole = (
            spark.read.format("binaryFile")
            .load(packed)
            .select("content", F.col(FILE).alias("file"))
        )
        parts.append(whole.mapInArrow(_unpacked, "value BINARY, file STRING, start LONG"))
    return reduce(DataFrame.unionAll, parts)


def bounded(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """Return the lines of files that are not packed, as `read` does.

    Hadoop keeps no more of a line than its limit, and leaves a longer one out without a word,
    unless it ends in another split: so that no line is left out, it may be as long as a split.
    """
    most = max(split_bytes(spark), LONGEST + 1)
    read = spark.read.option(_MOST, most).text([*files], lineSep="\n")
    value = F.col("value").cast("binary")
    too_long = F.concat(F.lit(TOO_LONG), F.substring(value, 1, SHOWN))
    return read.select(
        F.when(F.octet_length("value") > LONGEST, too_long).otherwise(value).alias("value"),
        F.col(FILE).alias("file"),
        F.col("_metadata.file_block_start").alias("start"),
    )


def split_bytes(spark: SparkSession) -> int:
    """Return how large a split is, at most."""
    size = spark.conf.get("spark.sql.files.maxPartitionBytes") or ""
    number, unit = _SIZE.findall(size.lower())[0]
    return int(number) << 10 * _UNITS.index(unit)


def _unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for content, file in (row for batch in batches for row in zip(*batch.columns, strict=True)):
        found = unpacked(pa.BufferReader(content.as_buffer()), file.as_py())
        while some := [*islice(found, ROWS)]:
            columns = [pa.array(some, pa.binary()), [file.as_py()] * len(some), [0] * len(some)]
            yield pa.record_batch(columns, ["value", "file", "start"])


def by_split(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Split, Iterator[bytes]]]:
    """Yield the splits that rows of `read` are of, each with its lines."""
    columns = ([column.to_pylist() for column in batch.columns] for batch in batches)
    rows = (row for of_batch in columns for row in zip(*of_batch, strict=True))
    for (file, start), of_split in groupby(rows, key=itemgetter(1, 2)):
        yield Split(file, start), map(itemgetter(0), of_split)
