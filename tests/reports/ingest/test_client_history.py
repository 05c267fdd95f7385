"""The account of a client history, as Spark reads it."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from reports.ingest import client_history
from reports.judgement.costs import HubGaps
from reports.judgement.run.history import said_in

pytestmark = pytest.mark.spark


def test_how_late_the_hub_ran(spark: SparkSession, tmp_path: Path) -> None:
    """A line without a time of its own, or cut off, counts for nothing."""
    history = tmp_path / "history.jsonl"
    read = lambda: client_history.doubts(
        client_history.read(spark, f"file:{history}", said_in), "the history"
    )
    lags = [{"event": "hub_lag", "max_ms": float(ms)} for ms in range(1, 101)]
    others = [{"event": "assigned", "max_ms": 9_000.0}, {"event": "hub_lag"}]
    lines = [json.dumps({"at_ms": 1.0, **line}) for line in (*lags, *others)]
    history.write_text("\n".join([*lines, '{"event": "hub_lag", "max_m']))
    doubts, late = read()
    assert late == HubGaps(100, 99.0, 100.0)
    assert [doubt.partition(" (")[0] for doubt in doubts] == ["the history:101 not understood"]
    history.write_text("\n".join(lines[-2:]))
    assert read()[1] is None
