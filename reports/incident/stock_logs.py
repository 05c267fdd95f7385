"""The engine for large logs, and for those elsewhere: Spark, which has executors read and tell."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import tzinfo
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from reports.incident.lines.form import Form
from reports.incident.lines.reader import SplitSummary
from reports.incident.rows import (
    DRAWN,
    SHOWN,
    Owners,
    Recognise,
    Row,
    about,
    head_of,
    key_of,
    of_split,
    text_lines,
)
from reports.incident.tables import FOUND, LINES, OF_KEY, OWNED, REJECTED, as_columns, row_of
from reports.ingest import log_files, places, uris
from reports.judgement.errors import EvidenceError
from reports.judgement.log.log_bytes import unpacked

Json = dict[str, Any]
_LOCAL = re.compile("^file:/+")
_ROWS = 1_000
_HEAD_LINES = 2_000
"""How many lines of a file that is not on this machine are read first."""


class OnSpark:
    """Reads files that a session of Spark reaches; `names` has what people know them by."""

    def __init__(
        self,
        spark: SparkSession,
        names: Mapping[Path, str],
        elsewhere: Sequence[str],
        until_end: ExitStack,
    ) -> None:
        """Take files by their paths, and URIs; Raises EvidenceError where no file is at one."""
        self._spark, self._until_end = spark, until_end
        self.names = {uris.uri_of(path): name for path, name in names.items()}
        self.names |= {file: file for file in _listed(spark, elsewhere)}

    def read(self, recognise: Recognise, zone: tzinfo) -> Iterator[tuple[str, int, SplitSummary]]:
        """Read all lines; yield each split: its file, its begin in it, its summary."""
        forms = {file: recognise(file, self._head(file)) for file in self.names}

        def read_splits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for split, lines in log_files.by_split(batches):
                file, start = unquote(split.file), split.start
                rows = of_split(file, start, text_lines(lines), forms.get(file, Form()), zone)
                yield from _batched((_as_found(file, start, row) for row in rows), FOUND)

        lines = self._lines([*self.names])
        self._found = self._kept(lines.mapInArrow(read_splits, from_arrow_schema(FOUND)))
        rows = self._found.where("summary IS NOT NULL").select("file", "start", "summary")
        for row in rows.toArrow().to_pylist():
            summary = msgspec.json.decode(row["summary"], type=SplitSummary)
            yield row["file"], row["start"], summary

    def _lines(self, files: Sequence[str]) -> DataFrame:
        return log_files.read(self._spark, [uris.literal(file) for file in files])

    def _head(self, file: str) -> list[str]:
        path = uris.local_path(file)
        if path is not None and path.is_file():
            with path.open("rb") as opened:
                return head_of(text_lines(unpacked(opened, path.name)))
        rows = self._lines([file]).limit(_HEAD_LINES).select("value").toArrow()
        return head_of(text_lines(rows["value"].to_pylist()))

    def _kept(self, frame: DataFrame) -> DataFrame:
        self._until_end.callback(frame.unpersist)
        return frame.persist()

    def rejected(self) -> list[Json]:
        """Return the first rejected lines."""
        rows = self._found.where("why IS NOT NULL").select(*REJECTED.names)
        return _first(rows, "file", "start", "place", most=SHOWN)

    def abouts(self, owners: Owners, session_ms: float | None) -> Iterator[bytes]:
        """Yield what the lines of each key tell."""

        def own(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            owned = filter(None, map(owners.owned, _rows(batches)))
            yield from _batched(map(_with_key, owned), OWNED)

        def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            of_keys = groupby(_rows(batches), key=lambda row: key_of(row.line))
            rows = (about(key, mine, owners, session_ms) for key, mine in of_keys)
            yield from _batched(rows, OF_KEY)

        lines = self._found.where("template IS NOT NULL")
        self._lines_owned = self._kept(lines.mapInArrow(own, from_arrow_schema(OWNED)))
        by_key = self._lines_owned.repartition("key").sortWithinPartitions("key")
        self._keys = self._kept(by_key.mapInArrow(tell, from_arrow_schema(OF_KEY)))
        yield from self._keys.select("about").toArrow()["about"].to_pylist()

    def _table(self, name: str) -> DataFrame:
        return self._keys.select(F.inline(name)).coalesce(1)

    def rebalances(self) -> list[Json]:
        """Return the first rebalances."""
        return _first(self._table("rebalances"), "at_ms", "group", "generation", most=DRAWN)

    def store(self, output: str, texts: Mapping[str, str]) -> None:
        """Write the tables, and files by their names, into the folder at a URI."""
        tables = {
            "lines": self._lines_owned.select(*LINES.names),
            "rejected": self._found.where("why IS NOT NULL").select(*REJECTED.names),
            "rebalances": self._table("rebalances"),
            "members": self._table("members"),
        }
        for name, table in tables.items():
            table.write.mode("overwrite").parquet(f"{output}/tables/{name}")
        places.write_texts(self._spark, output, texts)


def _listed(spark: SparkSession, elsewhere: Sequence[str]) -> list[str]:
    """List the files at URIs, those of folders too; Spark leaves out what begins with a dot or `_`.

    Raises EvidenceError where there is none.
    """
    if not elsewhere:
        return []
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    if not (files := reader.load([*elsewhere]).inputFiles()):
        raise EvidenceError(f"{', '.join(elsewhere)}: no file is there; give brokers' server.log")
    return sorted({_LOCAL.sub("file:/", unquote(uri)) for uri in files})


def _batched(rows: Iterable[Json], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Give out rows by column names; names that are no column are left out."""
    given = iter(rows)
    while some := [*islice(given, _ROWS)]:
        yield pa.RecordBatch.from_pylist(some, schema)


def _as_found(file: str, start: int, row: Row | Json | SplitSummary) -> Json:
    if isinstance(row, Row):
        return as_columns(row)
    if isinstance(row, SplitSummary):
        return {"file": file, "start": start, "summary": msgspec.json.encode(row).decode()}
    return row


def _with_key(row: Row) -> Json:
    return as_columns(row) | {"key": msgspec.json.encode(key_of(row.line)).decode()}


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    return map(row_of, chain.from_iterable(batch.to_pylist() for batch in batches))


def _first(rows: DataFrame, *order: str, most: int) -> list[Json]:
    found: list[Json] = rows.orderBy(*order).limit(most).toArrow().to_pylist()
    return found
