"""However Spark splits files and groups: the same evidence, the same bytes."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.evidence import multiply
from reports import analyse
from reports.ingest import reading

pytestmark = pytest.mark.spark
FILES = ("verdict.json", "junit.xml", "report.html")
SPLITS = "spark.sql.files.maxPartitionBytes"


def test_a_verdict_does_not_depend_on_the_partitioning(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies of a recorded run: findings of several groups have the same time and client."""
    folder = tmp_path / "run"
    multiply(3, folder)
    as_ever = spark.conf.get(SPLITS)
    assert as_ever is not None
    results = []
    for splits, rows in ((as_ever, reading.ROWS_OF_PARTITION), ("300k", 700)):
        spark.conf.set(SPLITS, splits)
        monkeypatch.setattr(reading, "ROWS_OF_PARTITION", rows)
        try:
            verdict = analyse(spark, folder)
        finally:
            spark.conf.set(SPLITS, as_ever)
        same = Counter((one["at_ms"], one["client"]) for one in verdict["client_findings"])
        assert max(same.values()) > 1
        results.append({name: (folder / name).read_bytes() for name in FILES})
    assert [name for one in results for name in FILES if one[name] != results[0][name]] == []
