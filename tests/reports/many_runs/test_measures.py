"""Measures over run tables that are written here row by row, with results computed by hand."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from reports.many_runs import measures, run_tables

pytestmark = pytest.mark.spark

IMPACT = (1_000.0, 2_000.0)
REBALANCES: dict[str, list[tuple[Any, ...]]] = {
    "first": [
        ("g", 900.0, "new_member", 50.0),  # formation
        ("g", 1_000.0, "leave", 100.0),
        ("g", 1_500.0, "leave", 300.0),
        ("g", 1_999.9, "new_member", None),  # never ended
        ("g", 2_000.0, "leave", 70.0),  # recovery
        ("g", None, "leave", 70.0),
    ],
    "second": [],
}
HANDOVERS: dict[str, list[tuple[Any, ...]]] = {
    "first": [
        ("g", 999.0, True, 9_999.0),
        ("g", 1_100.0, True, 40.0),
        ("g", 1_100.0, False, 60.0),
        ("g", 1_200.0, True, 0.0),
    ],
    "second": [],
}


def row(run: str, **more: Any) -> dict[str, Any]:
    return {
        "run": run,
        "night": "monday",
        "experiment": "bounce",
        "kafka_version": "4.3.0",
        "coordinator": "java",
        "cluster": "process",
        "seed": 1,
        "started_at": "2026-11-01T02:00:00+00:00",
        "groupquake_version": "0.1.0",
        "git": None,
        "verdict": "pass",
        "findings": 0,
        "impact_from_ms": IMPACT[0],
        "impact_until_ms": IMPACT[1],
        **more,
    }


def put(spark: SparkSession, uri: str, run: str, **more: Any) -> None:
    tables = {
        "observed": spark.createDataFrame(REBALANCES[run], measures.TABLES["observed"]),
        "ownership": spark.createDataFrame(HANDOVERS[run], measures.TABLES["ownership"]),
        "groups": spark.createDataFrame([("g", 7), ("never seen", 0)], measures.TABLES["groups"]),
    }
    run_tables.append(spark, row(run, **more), tables, uri)


def test_measures_count_the_impact_phase_alone(spark: SparkSession, tmp_path: Path) -> None:
    for run in REBALANCES:
        put(spark, str(tmp_path), run)
    found = measures.side_by_side(
        measures.measures(measures.tables_at(spark, str(tmp_path))), list(REBALANCES)
    )
    assert [tuple(one) for one in found.collect()] == [
        ("g", "rebalances", 3.0, 0.0),
        ("g", "rebalancing_ms", 400.0, 0.0),
        ("g", "longest_ms", 300.0, None),
        ("g", "moved_partitions", 2.0, None),
        ("g", "longest_unowned_ms", 60.0, None),
        ("g", "requests", 7.0, 7.0),
        ("g", "rebalances: leave", 2.0, None),
        ("g", "rebalances: new_member", 1.0, None),
    ]


def test_an_impact_phase_that_never_ended_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    put(spark, str(tmp_path), "first", impact_until_ms=None)
    found = measures.measures(measures.tables_at(spark, str(tmp_path))).where(
        "measure = 'rebalances'"
    )
    assert [one["value"] for one in found.collect()] == [4.0]


def test_a_run_that_is_appended_again_replaces_its_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    for run in ("first", "second", "first"):
        put(spark, str(tmp_path), run)
    of_all = measures.tables_at(spark, str(tmp_path))
    assert sorted(one["run"] for one in of_all["runs"].collect()) == ["first", "second"]
    assert of_all["observed"].count() == len(REBALANCES["first"])


def test_a_run_that_has_no_row_any_more_leaves_none(spark: SparkSession, tmp_path: Path) -> None:
    put(spark, str(tmp_path), "first")
    rows, REBALANCES["first"] = REBALANCES["first"], []
    put(spark, str(tmp_path), "first")
    REBALANCES["first"] = rows
    assert measures.tables_at(spark, str(tmp_path))["observed"].count() == 0


@pytest.mark.parametrize("name", ["50% of a night", "a=b", "[x]*"])
def test_a_run_of_any_name_is_found(name: str, spark: SparkSession, tmp_path: Path) -> None:
    REBALANCES[name], HANDOVERS[name] = REBALANCES["first"], []
    put(spark, str(tmp_path), name)
    tables = measures.tables_at(spark, str(tmp_path))
    assert {one["run"] for one in tables["observed"].collect()} == {name}
    REBALANCES.pop(name)


def test_a_run_whose_name_is_a_number_keeps_its_name(spark: SparkSession, tmp_path: Path) -> None:
    REBALANCES["007"] = HANDOVERS["007"] = []
    put(spark, str(tmp_path), "007")
    assert [one["run"] for one in measures.tables_at(spark, str(tmp_path))["runs"].collect()] == [
        "007"
    ]


def test_the_trend_is_the_mean_over_seeds_of_a_night(spark: SparkSession, tmp_path: Path) -> None:
    put(spark, str(tmp_path), "first")
    put(spark, str(tmp_path), "second", seed=2)
    (rebalances,) = (
        measures.trend(measures.tables_at(spark, str(tmp_path)))
        .where("measure = 'rebalances'")
        .collect()
    )
    assert (rebalances["night"], rebalances["value"], rebalances["runs"]) == ("monday", 1.5, 2)


def test_runs_outside_nights_are_not_in_the_trend(spark: SparkSession, tmp_path: Path) -> None:
    put(spark, str(tmp_path), "first", night=None)
    assert measures.trend(measures.tables_at(spark, str(tmp_path))).count() == 0
