"""The engine for large logs, and for those elsewhere: Spark, which has executors read and tell."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import tzinfo
from itertools import groupby, islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from reports.incident.lines.form import Form
from reports.incident.rows import (
    KINDS,
    Owners,
    Recognise,
    first,
    head_of,
    key_of,
    of_key,
    of_split,
    text_lines,
)
from reports.incident.tables import TABLES, table_of
from reports.ingest import log_files, uris
from reports.judgement.errors import EvidenceError
from reports.judgement.log.log_bytes import unpacked

Change = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
_LOCAL = re.compile("^file:/+")
_ROWS = "name STRING, row BINARY"
"""Rows by their kind, or by their key, as MessagePack."""
_AT_ONCE = 1_000
"""How many rows a batch has."""
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

    def read(self, recognise: Recognise, zone: tzinfo) -> None:
        """Read all lines."""
        forms = {file: recognise(file, self._head(file)) for file in self.names}

        def read_splits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for split, lines in log_files.by_split(batches):
                file, form = unquote(split.file), forms.get(unquote(split.file), Form())
                yield from _packed(of_split(file, split.start, text_lines(lines), form, zone))

        found = self._kept(self._lines([*self.names]), read_splits)
        self._frames = dict.fromkeys(("splits", "lines", "rejected"), found)

    def _lines(self, files: Sequence[str]) -> DataFrame:
        return log_files.read(self._spark, [uris.literal(file) for file in files])

    def _head(self, file: str) -> list[str]:
        path = uris.local_path(file)
        if path is not None and path.is_file():
            with path.open("rb") as opened:
                return head_of(text_lines(unpacked(opened, path.name)))
        rows = self._lines([file]).limit(_HEAD_LINES).select("value").toArrow()
        return head_of(text_lines(rows["value"].to_pylist()))

    def _kept(self, frame: DataFrame, change: Change) -> DataFrame:
        kept = frame.mapInArrow(change, _ROWS).persist()
        self._until_end.callback(kept.unpersist)
        return kept

    def tell(self, owners: Owners, session_ms: float | None) -> None:
        """Bring together the lines of each key."""

        def own(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            owned = filter(None, map(owners.owned, _rows("lines", batches)))
            yield from _packed((repr(key_of(row.line)), row) for row in owned)

        def tell_keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            rows = _rows("lines", batches)
            for key, mine in groupby(rows, key=lambda row: key_of(row.line)):
                yield from _packed(of_key(key, mine, owners, session_ms))

        owned = self._of("lines").mapInArrow(own, _ROWS)
        of_keys = self._kept(owned.repartition("name").sortWithinPartitions("name"), tell_keys)
        self._frames |= dict.fromkeys(("lines", "abouts", "rebalances", "members"), of_keys)

    def _of(self, kind: str) -> DataFrame:
        return self._frames[kind].where(F.col("name") == kind)

    def first(self, kind: str) -> list[Any]:
        """Return the first rows of a kind: those of each part, and the first of these."""

        def cut(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from _packed((kind, row) for row in first(kind, _rows(kind, batches)))

        found = self._of(kind).mapInArrow(cut, _ROWS).toArrow()
        return first(kind, _rows(kind, found.to_batches()))

    def store(self, output: str, texts: Mapping[str, str]) -> None:
        """Write the tables, and files by their names, into the folder at a URI."""
        from reports.ingest import places  # noqa: PLC0415 (executors have not what it needs)

        for name, schema in TABLES.items():
            rows = self._of(name).mapInArrow(_as_table(name), from_arrow_schema(schema))
            rows.write.mode("overwrite").parquet(f"{output}/tables/{name}")
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


def _packed(rows: Iterable[tuple[str, Any]]) -> Iterator[pa.RecordBatch]:
    given, pack = iter(rows), msgspec.msgpack.encode
    while some := [*islice(given, _AT_ONCE)]:
        columns = [[name for name, _ in some], [pack(row) for _, row in some]]
        yield pa.record_batch(columns, ["name", "row"])


def _rows(kind: str, batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """Return rows of one kind as they were before `_packed`."""
    unpack = msgspec.msgpack.Decoder(KINDS[kind]).decode
    return (unpack(row) for batch in batches for row in batch["row"].to_pylist())


def _as_table(kind: str) -> Change:
    return lambda batches: (
        part
        for batch in batches
        for part in table_of(_rows(kind, [batch]), TABLES[kind]).to_batches()
    )
