"""Measures over run tables that are written here row by row, with results computed by hand."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from reports.many_runs import measures, run_tables

pytestmark = pytest.mark.spark

OBSERVED = [
    ("g", 900.0, "new_member", 50.0),  # formation
    ("g", 1_000.0, "leave", 100.0),
    ("g", 1_500.0, "leave", 300.0),
    ("g", 1_999.9, "new_member", None),  # never ended
    ("g", 2_000.0, "leave", 70.0),  # recovery
    ("g", None, "leave", 70.0),
]
OWNED = [
    ("g", 999.0, True, 9_999.0),
    ("g", 1_100.0, True, 40.0),
    ("g", 1_100.0, False, 60.0),
    ("g", 1_200.0, True, 0.0),
]


def row(run: str, **more: Any) -> dict[str, Any]:
    of_night = {"night": "monday", "experiment": "bounce", "cluster": "process", "seed": 1}
    made_by = {"kafka_version": "4.3.0", "coordinator": "java", "groupquake_version": "0.1.0"}
    return {
        "run": run, **of_night, **made_by, "git": None, "started_at": "2026-11-01T02:00:00+00:00",
        "verdict": "pass", "findings": 0,
        "impact_from_ms": 1_000.0, "impact_until_ms": 2_000.0, **more,
    }  # fmt: skip


RUNS = (
    row("first"),
    row("calm", seed=2),  # nothing happened in it
    row("unended", night=None, impact_until_ms=None),
    row("unbegun", night=None, impact_from_ms=None, impact_until_ms=None),
)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, DataFrame]:
    runs = [run["run"] for run in RUNS]
    busy = [run for run in runs if run != "calm"]
    rows: dict[str, list[tuple[Any, ...]]] = {
        "observed": [(*of, run) for of in OBSERVED for run in busy],
        "ownership": [(*of, run) for of in OWNED for run in busy],
        "groups": [(*of, run) for of in (("g", 7), ("never seen", 0)) for run in runs],
    }
    schema = lambda name: f"{measures.TABLES[name]}, run STRING"
    made = {name: spark.createDataFrame(of, schema(name)) for name, of in rows.items()}
    return {"runs": run_tables.listed(spark, *RUNS), **made}


def test_measures_count_the_impact_phase_alone(tables: dict[str, DataFrame]) -> None:
    """One that never ended goes on, and a run in which it never began has none."""
    found = measures.measures(tables)
    rows = measures.side_by_side(found, ["first", "calm"])
    assert [tuple(one.values()) for one in rows] == [
        ("g", "rebalances", 3.0, 0.0),
        ("g", "rebalancing_ms", 400.0, 0.0),
        ("g", "longest_ms", 300.0, None),
        ("g", "moved_partitions", 2.0, None),
        ("g", "longest_unowned_ms", 60.0, None),
        ("g", "requests", 7.0, 7.0),
        ("g", "rebalances: leave", 2.0, None),
        ("g", "rebalances: new_member", 1.0, None),
    ]
    (rebalances, *_) = measures.side_by_side(found, ["unended", "unbegun"])
    assert (rebalances["unended"], rebalances["unbegun"]) == (4.0, 0.0)


def test_the_trend_is_the_mean_over_seeds_of_a_night(tables: dict[str, DataFrame]) -> None:
    found = {one["measure"]: one for one in measures.trend(tables)}
    rebalances = found["rebalances"]
    assert (rebalances["night"], rebalances["value"], rebalances["runs"]) == ("monday", 1.5, 2)
    assert (found["longest_ms"]["value"], found["longest_ms"]["runs"]) == (300.0, 1)


def put(spark: SparkSession, uri: Path, run: str, observed: list[tuple[Any, ...]]) -> None:
    rows = {"observed": observed, "ownership": [], "groups": [("g", 7)]}
    frames = {
        name: spark.createDataFrame(of_table, measures.TABLES[name])
        for name, of_table in rows.items()
    }
    run_tables.append(spark, row(run), frames, uri)


def test_a_run_that_is_appended_again_replaces_its_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    odd = ["50% of a=b [x]*", "007"]
    for run in ("first", *odd, "first"):
        put(spark, tmp_path, run, OBSERVED if run == "first" else OBSERVED[:1])
    found = measures.tables_at(spark, tmp_path)
    runs = lambda name: [one["run"] for one in found[name].select("run").collect()]
    assert sorted(runs("runs")) == sorted(["first", *odd])
    assert sorted(runs("observed")) == sorted(["first"] * len(OBSERVED) + odd)
    put(spark, tmp_path, "first", [])
    found = measures.tables_at(spark, tmp_path, ["first", odd[0]])
    assert runs("observed") == [odd[0]]
