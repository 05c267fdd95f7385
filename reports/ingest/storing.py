"""Tables as files: rows of a task in; Parquet, and what the driver learns, out.

A task may run twice, or not to its end. So it writes files of its attempt, and the driver moves
those alone that came back in a result: a table is whole, or it is not there. Elsewhere than on a
path Spark writes (`judging.written`).
"""

import shutil
import uuid
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reports.ingest.parquet import schema
from reports.judgement.buckets import ALL_TABLES
from reports.judgement.log.split_rows import Row

ATTEMPTS = ".attempts"
"""The folder, beside the tables, of what tasks write."""
SUCCESS = "_SUCCESS"
ROWS = 20_000
"""How many rows of a table a task holds before it writes them."""
RESULT = "name STRING, file STRING, data BINARY"
"""What a task tells: the name of a file of a table, or a kept table's rows (Arrow's format)."""
_RESULT = pa.schema([("name", pa.string()), ("file", pa.string()), ("data", pa.binary())])
_SCHEMAS = {name: schema(columns) for name, columns in ALL_TABLES.items()}
_WRITTEN: dict[str, Any] = {
    "compression": "zstd", "compression_level": 1, "use_dictionary": False,
    "write_statistics": ["group"],
}  # fmt: skip
"""As `parquet.STORED`, for Arrow's writer."""


def table_of(name: str, rows: Sequence[Row]) -> pa.Table:
    """Return rows of a table, its columns in their order, as Arrow has them."""
    columns = zip(*rows, strict=True) if rows else [[] for _ in _SCHEMAS[name]]
    fields = _SCHEMAS[name]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.table(arrays, schema=fields)


class Files:
    """Takes the rows of a task's tables: writes those of some to files, and keeps some as well."""

    def __init__(self, folder: Path | None, stored: Collection[str], kept: Collection[str]) -> None:
        """Write below a folder of tables, if there is one: the driver has made ATTEMPTS in it."""
        self._folder = Path() if folder is None else folder / ATTEMPTS
        self._stored, self._kept = stored if folder else (), kept
        self._attempt = uuid.uuid4().hex
        self._rows: dict[str, list[Row]] = {name: [] for name in ALL_TABLES}
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._tables: dict[str, list[pa.Table]] = {name: [] for name in kept}

    def add(self, name: str, more: Iterable[Row]) -> None:
        """Take rows of a table."""
        rows = self._rows[name]
        rows.extend(more)
        if len(rows) >= ROWS:
            self._write(name)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name.replace('/', '-')}-{self._attempt}.parquet"

    def _write(self, name: str) -> None:
        table = table_of(name, self._rows[name])
        self._rows[name] = []
        if name in self._kept:
            self._tables[name].append(table)
        if name in self._stored:
            if name not in self._writers:
                made = pq.ParquetWriter(self._file(name), table.schema, **_WRITTEN)
                self._writers[name] = made
            self._writers[name].write_table(table)

    def end(self) -> pa.RecordBatch:
        """Close the files; return what the driver learns (`RESULT`)."""
        for name, rows in self._rows.items():
            if rows:
                self._write(name)
        found: list[tuple[str, str | None, bytes | None]] = []
        for name, writer in self._writers.items():
            writer.close()
            found.append((name, self._file(name).name, None))
        for name, tables in self._tables.items():
            found += ((name, None, _as_bytes(table)) for table in tables)
        columns = zip(*found, strict=True) if found else [[], [], []]
        arrays = [pa.array(of, field.type) for of, field in zip(columns, _RESULT, strict=True)]
        return pa.record_batch(arrays, schema=_RESULT)


def _as_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def rows_in(results: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the tables that tasks kept."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in results.to_pylist():
        if row["data"] is not None:
            rows = pa.ipc.open_stream(row["data"]).read_all().to_pylist()
            found.setdefault(row["name"], []).extend(rows)
    return found


def begin(folder: Path) -> None:
    """Make a folder for what tasks write."""
    (folder / ATTEMPTS).mkdir(parents=True, exist_ok=True)


def commit(folder: Path, names: Iterable[str], results: pa.Table) -> None:
    """Put tables in their places: of the files that results name, and of no other.

    A table without a row has one file, too.
    """
    files: dict[str, list[str]] = {name: [] for name in names}
    for row in results.to_pylist():
        if row["file"] is not None:
            files[row["name"]].append(row["file"])
    attempts = folder / ATTEMPTS
    for name, of_table in files.items():
        whole = attempts / "whole"
        whole.mkdir()
        for number, file in enumerate(of_table):
            (attempts / file).rename(whole / f"part-{number:05}-{file}")
        if not of_table:
            pq.write_table(table_of(name, []), whole / "part-00000.parquet", **_WRITTEN)
        (whole / SUCCESS).touch()
        (folder / name).parent.mkdir(exist_ok=True)
        whole.rename(folder / name)


def write(folder: Path, name: str, rows: Sequence[Row]) -> None:
    """Write a small table from here."""
    files = Files(folder, [name], [])
    files.add(name, rows)
    commit(folder, [name], pa.Table.from_batches([files.end()]))


def end(folder: Path) -> None:
    """Remove what no result names."""
    shutil.rmtree(folder / ATTEMPTS, ignore_errors=True)
