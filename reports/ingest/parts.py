"""Writes several tables in one Spark pass: each task writes its part of every table.

Spark itself writes one table a pass; a pass with several results would have to be stored and read
again for each table. A part appears complete or not at all. A repeated task writes the same part.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark import TaskContext

Row = Sequence[Any]
ROWS = 20_000
"""How many rows are buffered before they are written."""
TYPES = {
    "STRING": pa.string(), "DOUBLE": pa.float64(), "INT": pa.int32(), "LONG": pa.int64(),
    "BOOLEAN": pa.bool_(),
}  # fmt: skip


def schema(columns: str) -> pa.Schema:
    """Return the Arrow schema of columns in SQL's form (`name TYPE, …`)."""
    pairs = (column.split() for column in columns.split(","))
    return pa.schema([(name, TYPES[kind]) for name, kind in pairs])


def recreate(folder: Path, names: Iterable[str]) -> None:
    """Delete tables and create them empty."""
    for name in names:
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)


def stored(table: Path, columns: str) -> ds.Dataset:
    """Return a stored table, its rows in the order of its parts."""
    return ds.dataset(table, schema=schema(columns), format="parquet")


class Part:
    """This task's part of one table."""

    def __init__(self, path: Path, columns: str) -> None:
        """Open the part; it becomes visible when it is closed."""
        self._path, self._schema = path, schema(columns)
        self._hidden = path.with_name(f"_{path.name}")
        self._file = pq.ParquetWriter(self._hidden, self._schema)
        self._rows: list[Row] = []

    def add(self, row: Row) -> None:
        """Add a row with its values in the order of the columns."""
        self._rows.append(row)
        if len(self._rows) == ROWS:
            self._flush()

    def add_named(self, row: Mapping[str, Any]) -> None:
        """Add a row by column names; names that are no column of the table are ignored."""
        self.add([row[name] for name in self._schema.names])

    def _flush(self) -> None:
        columns = zip(*self._rows, strict=True) if self._rows else ([] for _ in self._schema)
        arrays = [
            pa.array(values, field.type)
            for values, field in zip(columns, self._schema, strict=True)
        ]
        self._file.write_batch(pa.record_batch(arrays, schema=self._schema))
        self._rows = []

    def close(self) -> None:
        """Write the remaining rows and make the part visible."""
        self._flush()
        self._file.close()
        self._hidden.replace(self._path)

    def drop(self) -> None:
        """Delete the part if it was not closed."""
        self._hidden.unlink(missing_ok=True)
        self._file.close()


@contextmanager
def parts(folder: Path, tables: Mapping[str, str]) -> Iterator[dict[str, Part]]:
    """Open this task's parts of tables (name and columns); close them unless an error is raised.

    After an error the parts are deleted. A killed task leaves hidden files behind.
    """
    context = TaskContext.get()
    number = context.partitionId() if context else 0
    opened: dict[str, Part] = {}
    with ExitStack() as left:
        for name, columns in tables.items():
            opened[name] = Part(folder / name / f"part-{number:05}.parquet", columns)
            left.callback(opened[name].drop)
        yield opened
        for part in opened.values():
            part.close()
