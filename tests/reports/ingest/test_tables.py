"""What Spark's tasks wrote is what is read back."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from reports import EvidenceError
from reports.ingest.parts import parts, recreate
from reports.ingest.tables import check_row_count
from reports.judgement.group import TABLES


@pytest.mark.spark
def test_rows_that_went_elsewhere_are_missed(spark: SparkSession, tmp_path: Path) -> None:
    recreate(tmp_path, TABLES)
    with parts(tmp_path, TABLES) as tables:
        tables["bound"].add_named({"group": "g", "name": "order", "count": 1})
    bound = spark.read.schema(TABLES["bound"]).parquet(str(tmp_path / "bound"))
    check_row_count(bound, "bound", 1)
    with pytest.raises(EvidenceError, match="bound: 1 rows of 2"):
        check_row_count(bound, "bound", 2)


def test_a_task_that_fails_leaves_nothing(tmp_path: Path) -> None:
    recreate(tmp_path, TABLES)

    def fails() -> None:
        with parts(tmp_path, TABLES) as tables:
            tables["bound"].add_named({"group": "g", "name": "order", "count": 1})
            raise EvidenceError("it cannot go on")

    with pytest.raises(EvidenceError, match="it cannot go on"):
        fails()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
