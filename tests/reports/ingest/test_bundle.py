"""Bundles: several tables leave one Spark pass, and each is stored with its own rows."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from reports.ingest import bundle as module
from reports.ingest.bundle import Bundle, Rows

TABLES = {
    "numbers": "number LONG, group STRING, half DOUBLE",
    "even": "number INT, even BOOLEAN",
    "empty": "nothing STRING",
}


def rows_of(batches: list[pa.RecordBatch], name: str) -> list[dict[str, object]]:
    rows = [row for batch in batches for row in batch.to_pylist()]
    return [row[name] for row in rows if row["table"] == name]


def test_rows_come_out_under_their_table_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS", 2)
    rows = Rows(Bundle(TABLES))
    rows.add("numbers", [(7, "g", None)])
    rows.add("even", [(number, False) for number in range(3)])
    batches = list(rows.batches())
    assert rows_of(batches, "numbers") == [{"number": 7, "group": "g", "half": None}]
    assert [row["number"] for row in rows_of(batches, "even")] == [0, 1, 2]
    assert [batch.num_rows for batch in batches] == [1, 2, 1]
    empty = [row["empty"] for batch in batches for row in batch.to_pylist()]
    assert empty == [None] * 4


def test_more_rows_than_a_batch_has() -> None:
    count = module.ROWS + 1
    batch = Bundle(TABLES).batch("even", (range(count), pa.array([True] * count)))
    assert batch.num_rows == len(rows_of([batch], "even")) == count


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        Bundle(TABLES).batch("even", ([1 << 40], [True]))


@pytest.mark.spark
def test_each_table_is_stored(spark: SparkSession, tmp_path: Path) -> None:
    tables = Bundle(TABLES)

    def both(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = Rows(tables)
        for number in (n for batch in batches for n in batch[0].to_pylist()):
            rows.add("numbers", [(number, f"group {number}", number / 2)])
            if number % 2 == 0:
                rows.add("even", [(number, True)])
        yield from rows.batches()

    made = spark.range(10).mapInArrow(both, tables.columns)
    module.write(made, TABLES, str(tmp_path))
    stored = {
        name: ds.dataset(tmp_path / name, schema=schema, format="parquet").to_table().to_pylist()
        for name, schema in tables.schemas.items()
    }
    assert sorted(row["number"] for row in stored["numbers"]) == list(range(10))
    assert all(
        row["group"] == f"group {row['number']}" and row["half"] == row["number"] / 2
        for row in stored["numbers"]
    )
    assert sorted(row["number"] for row in stored["even"]) == [0, 2, 4, 6, 8]
    assert stored["empty"] == []
    assert not [path for path in tmp_path.iterdir() if path.name not in TABLES]
