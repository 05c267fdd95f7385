"""Tables as files: rows of a task in; Parquet, and what the driver learns, out.

A task may run twice, or not to its end. So it writes files of its attempt, and the driver moves
those alone that came back in a result: a table is whole, or it is not there. Elsewhere than on a
path Spark writes.
"""

import shutil
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reports.ingest.uris import literal
from reports.judgement.buckets import ALL_TABLES
from reports.judgement.log.split_rows import Row

TYPES = {
    "STRING": pa.string(), "BINARY": pa.binary(), "DOUBLE": pa.float64(), "INT": pa.int32(),
    "LONG": pa.int64(), "BOOLEAN": pa.bool_(),
}  # fmt: skip
ATTEMPTS = ".attempts"  # the folder, beside the tables, of what tasks write
SUCCESS = "_SUCCESS"
ROWS = 20_000  # how many rows of a table a task holds before it writes them
RESULT = "name STRING, file STRING, data BINARY"
"""What a task tells: the name of a file of a table, or a kept table's rows (a record batch of
Arrow's without its schema, which `_SCHEMAS` has)."""
BY_SPARK = {"compression": "zstd", "parquet.enable.dictionary": "false"}
"""How Spark writes tables: most texts stand in one row, so that dictionaries of them cost as much
processor time as all the rest."""
BY_ARROW: dict[str, Any] = {
    "compression": "zstd", "compression_level": 1, "use_dictionary": False,
    "write_statistics": ["group"],
}  # fmt: skip
"""How Arrow does."""


def schema(columns: str) -> pa.Schema:
    """Return the Arrow schema of columns in SQL's form (`name TYPE, …`)."""
    pairs = (column.split() for column in columns.split(","))
    return pa.schema([(name, TYPES[kind]) for name, kind in pairs])


def batch_of(rows: Sequence[Row], fields: pa.Schema) -> pa.RecordBatch:
    """Return rows, each with its values in the order of the columns, as Arrow has them."""
    columns = zip(*rows, strict=True) if rows else [[] for _ in fields]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.record_batch(arrays, schema=fields)


_SCHEMAS = {name: schema(columns) for name, columns in ALL_TABLES.items()}
_RESULT = schema(RESULT)


class Files:
    """Takes the rows of a task's tables: writes those of some to files, and keeps some as well."""

    def __init__(self, folder: Path | None, stored: Collection[str], kept: Collection[str]) -> None:
        self._folder = Path() if folder is None else folder / ATTEMPTS
        self._stored, self._kept = stored if folder else (), kept
        self._attempt = uuid.uuid4().hex
        self._rows: dict[str, list[Row]] = {name: [] for name in ALL_TABLES}
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._results: list[Row] = []

    def add(self, name: str, more: Iterable[Row]) -> None:
        """Take rows of a table."""
        rows = self._rows[name]
        rows.extend(more)
        if len(rows) >= ROWS:
            self._write(name)

    def _write(self, name: str) -> None:
        batch = batch_of(self._rows[name], _SCHEMAS[name])
        self._rows[name] = []
        if name in self._kept:
            self._results.append((name, None, batch.serialize().to_pybytes()))
        if name in self._stored:
            if name not in self._writers:
                file = f"{name.replace('/', '-')}-{self._attempt}.parquet"
                made = pq.ParquetWriter(self._folder / file, batch.schema, **BY_ARROW)
                self._writers[name] = made
                self._results.append((name, file, None))
            self._writers[name].write_batch(batch)

    def end(self) -> pa.RecordBatch:
        """Close the files; return what the driver learns (`RESULT`)."""
        for name, rows in self._rows.items():
            if rows:
                self._write(name)
        for writer in self._writers.values():
            writer.close()
        return batch_of(self._results, _RESULT)


def of_driver(
    folder: Path | None, tables: Mapping[str, Sequence[Row]], kept: Collection[str]
) -> pa.Table:
    """Write tables that the driver has, as tasks write theirs; return `RESULT`."""
    files = Files(folder, tables, kept)
    for name, rows in tables.items():
        files.add(name, rows)
    return pa.Table.from_batches([files.end()])


def in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of a table in a total order: nothing depends on their partitions."""
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row.values()])


def rows_in(results: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the tables that tasks kept, in order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in results.to_pylist():
        if row["data"] is not None:
            batch = pa.ipc.read_record_batch(row["data"], _SCHEMAS[row["name"]])
            found.setdefault(row["name"], []).extend(batch.to_pylist())
    return {name: in_order(rows) for name, rows in found.items()}


@contextmanager
def attempts(folder: Path) -> Iterator[None]:
    """Make a folder for what tasks write, and remove what no result names."""
    made = folder / ATTEMPTS
    made.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        shutil.rmtree(made, ignore_errors=True)


def commit(folder: Path, names: Iterable[str], results: pa.Table) -> None:
    """Put tables in their places: of the files that results name, and of no other.

    A table without a row has one file, too.
    """
    files: dict[str, list[str]] = {name: [] for name in names}
    for row in results.to_pylist():
        if row["file"] is not None:
            files[row["name"]].append(row["file"])
    made = folder / ATTEMPTS
    for name, of_table in files.items():
        whole = made / "whole"
        whole.mkdir()
        for number, file in enumerate(of_table):
            (made / file).rename(whole / f"part-{number:05}-{file}")
        if not of_table:
            nothing = _SCHEMAS[name].empty_table()
            pq.write_table(nothing, whole / "part-00000.parquet", **BY_ARROW)
        (whole / SUCCESS).touch()
        (folder / name).parent.mkdir(exist_ok=True)
        whole.rename(folder / name)


def write(results: DataFrame, names: Iterable[str], output: str) -> None:
    """Let Spark write the tables of some names, whose rows were kept, to a URI.

    They are written side by side: Spark fills its cores, however small each of them is.
    """

    def write_one(name: str) -> None:
        fields = _SCHEMAS[name]
        kept = results.where(F.col("name") == name).select("data")
        table = kept.mapInArrow(
            lambda batches: (
                pa.ipc.read_record_batch(data, fields)
                for batch in batches
                for data in batch["data"].to_pylist()
            ),
            ALL_TABLES[name],
        )
        table.write.mode("overwrite").options(**BY_SPARK).parquet(f"{output}/{name}")

    with ThreadPoolExecutor() as threads:
        list(threads.map(write_one, names))


def stored(spark: SparkSession, columns: str, name: str, output: str) -> DataFrame:
    """Read a table that was written, with columns in SQL's form: it may have no file with a row."""
    return spark.read.schema(columns).parquet(f"{literal(output)}/{name}")
