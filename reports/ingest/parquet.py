"""Stored tables: columns in SQL's form, as Spark and Arrow have them; reading and writing."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from reports.ingest.log_files import literal

TYPES = {
    "STRING": pa.string(), "BINARY": pa.binary(), "DOUBLE": pa.float64(), "INT": pa.int32(),
    "LONG": pa.int64(), "BOOLEAN": pa.bool_(),
}  # fmt: skip
STORED = {"compression": "zstd", "parquet.enable.dictionary": "false"}
"""How tables are written: most texts stand in one row, so that dictionaries of them cost as much
processor time as all the rest."""


def schema(columns: str) -> pa.Schema:
    """Return the Arrow schema of columns in SQL's form (`name TYPE, …`)."""
    pairs = (column.split() for column in columns.split(","))
    return pa.schema([(name, TYPES[kind]) for name, kind in pairs])


def write(rows: DataFrame, name: str, output: str) -> None:
    """Write a table as Parquet to `output`/<name>, a URI; what stands there is replaced."""
    rows.write.mode("overwrite").options(**STORED).parquet(f"{output}/{name}")


def stored(spark: SparkSession, columns: str, name: str, output: str) -> DataFrame:
    """Read a table that was written, with columns in SQL's form: it may have no file with a row."""
    return spark.read.schema(columns).parquet(f"{literal(output)}/{name}")
