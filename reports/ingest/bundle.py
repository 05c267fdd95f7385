"""Bundles: a DataFrame that carries several tables, so that one Spark pass makes them all.

A bundle has a column `table` with a table's name, and for each table a struct of its columns, which
is null but in the table's own rows. `write` splits a bundle into stored tables.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from reports.ingest.log_files import literal

ROWS = 10_000
"""How many rows of a table a batch holds, about."""
TYPES = {
    "STRING": pa.string(), "BINARY": pa.binary(), "DOUBLE": pa.float64(), "INT": pa.int32(),
    "LONG": pa.int64(), "BOOLEAN": pa.bool_(), "ARRAY<STRING>": pa.list_(pa.string()),
}  # fmt: skip

STORED = {"compression": "zstd", "parquet.enable.dictionary": "false"}
"""How tables are written: most texts stand in one row, so that dictionaries of them cost as much
processor time as all the rest."""

Columns = Sequence[Sequence[Any] | pa.Array]
"""The values of a table's columns, in their order, all of one length."""


def schema(columns: str) -> pa.Schema:
    """Return the Arrow schema of columns in SQL's form (`name TYPE, …`)."""
    pairs = (column.split() for column in columns.split(","))
    return pa.schema([(name, TYPES[kind]) for name, kind in pairs])


class Bundle:
    """The tables of a bundle: names, and columns in SQL's form."""

    def __init__(self, tables: Mapping[str, str]) -> None:
        """Take the tables; none may be called `table`."""
        self.schemas = {name: schema(columns) for name, columns in tables.items()}
        structs = {name: pa.struct(list(of)) for name, of in self.schemas.items()}
        self._arrow = pa.schema([("table", pa.string()), *structs.items()])
        self._nulls = {name: pa.nulls(ROWS, struct) for name, struct in structs.items()}
        listed = (f"`{name}` STRUCT<{_typed(columns)}>" for name, columns in tables.items())
        self.columns = ", ".join(["`table` STRING", *listed])
        """The columns of the bundle in SQL's form, for `mapInArrow`."""

    def batch(self, name: str, columns: Columns) -> pa.RecordBatch:
        """Return rows of one table as rows of the bundle."""
        fields = list(self.schemas[name])
        arrays = [
            column if isinstance(column, pa.Array) else pa.array(column, field.type)
            for column, field in zip(columns, fields, strict=True)
        ]
        count = len(arrays[0])
        struct = pa.StructArray.from_arrays(arrays, fields=fields)
        others = (struct if other == name else self._null(other, count) for other in self.schemas)
        named = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int8()), [name])
        return pa.record_batch([named.cast(pa.string()), *others], schema=self._arrow)

    def _null(self, name: str, count: int) -> pa.Array:
        nulls = self._nulls[name]
        return nulls[:count] if count <= ROWS else pa.nulls(count, nulls.type)


def _typed(columns: str) -> str:
    return ", ".join("`{}`: {}".format(*column.split()) for column in columns.split(","))


class Rows:
    """Collects rows of the tables of a bundle, and gives them out as batches."""

    def __init__(self, bundle: Bundle) -> None:
        """Start with no row."""
        self._bundle = bundle
        self._rows: dict[str, list[Sequence[Any]]] = {name: [] for name in bundle.schemas}

    def add(self, name: str, more: Iterable[Sequence[Any]]) -> None:
        """Add rows of a table, with their values in the order of the columns."""
        self._rows[name].extend(more)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Give out the rows."""
        for name, rows in self._rows.items():
            for begin in range(0, len(rows), ROWS):
                columns = list(zip(*rows[begin : begin + ROWS], strict=True))
                yield self._bundle.batch(name, columns)


def table(bundle: DataFrame, name: str) -> DataFrame:
    """Select one table of a bundle."""
    return bundle.where(bundle["table"] == name).select(f"`{name}`.*")


def write(bundle: DataFrame, names: Iterable[str], output: str) -> None:
    """Write tables of a bundle as Parquet to `output`/<name>, a URI; what stands there is replaced.

    The bundle is computed once for each table, unless it is persisted. The tables are written side
    by side: Spark fills its cores, however small each of them is.
    """
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda name: write_table(table(bundle, name), name, output), names))


def write_table(rows: DataFrame, name: str, output: str) -> None:
    """Write one table as `write` does."""
    rows.write.mode("overwrite").options(**STORED).parquet(f"{output}/{name}")


def stored(spark: SparkSession, columns: str, name: str, output: str) -> DataFrame:
    """Read a table that was written, with columns in SQL's form: it may have no file with a row."""
    return spark.read.schema(columns).parquet(f"{literal(output)}/{name}")
