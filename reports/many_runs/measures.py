"""Measures of runs, by Spark SQL over run tables: for two runs side by side, and for a trend."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reports.many_runs import run_tables

MEASURES = """
WITH impact AS (
    SELECT o.run, o.group, o.reason, o.duration_ms
    FROM {observed} o JOIN {runs} r ON o.run = r.run
    WHERE o.started_ms >= r.impact_from_ms
      AND (r.impact_until_ms IS NULL OR o.started_ms < r.impact_until_ms)
),
handovers AS (
    SELECT w.run, w.group, w.moved, w.unowned_ms
    FROM {ownership} w JOIN {runs} r ON w.run = r.run
    WHERE w.from_ms >= r.impact_from_ms
      AND (r.impact_until_ms IS NULL OR w.from_ms < r.impact_until_ms)
),
rebalances AS (
    SELECT g.run, g.group,
        CAST(count(i.run) AS DOUBLE) AS rebalances,
        coalesce(sum(i.duration_ms), 0.0D) AS rebalancing_ms,
        max(i.duration_ms) AS longest_ms,
        CAST(any_value(g.requests) AS DOUBLE) AS requests
    FROM {groups} g LEFT JOIN impact i ON i.run = g.run AND i.group = g.group
    WHERE g.requests > 0
    GROUP BY g.run, g.group
),
moves AS (
    SELECT run, group,
        CAST(count_if(moved) AS DOUBLE) AS moved_partitions,
        max(unowned_ms) AS longest_unowned_ms
    FROM handovers GROUP BY run, group
)
SELECT run, group, measure, value FROM (
    SELECT * FROM rebalances
    UNPIVOT (value FOR measure IN (rebalances, rebalancing_ms, longest_ms, requests))
    UNION ALL
    SELECT * FROM moves UNPIVOT (value FOR measure IN (moved_partitions, longest_unowned_ms))
    UNION ALL
    SELECT run, group, concat('rebalances: ', reason), CAST(count(*) AS DOUBLE)
    FROM impact GROUP BY run, group, reason
)
"""
"""One row for each run, group and measure: how many rebalances the impact phase had (in all, and by
reason), how long they took (in all, and the longest), how many partitions changed their owner, how
long one had none at most, and how many requests were checked. Times are ms."""
TABLES = {
    "runs": run_tables.RUNS,
    "observed": "group STRING, started_ms DOUBLE, reason STRING, duration_ms DOUBLE",
    "ownership": "group STRING, from_ms DOUBLE, moved BOOLEAN, unowned_ms DOUBLE",
    "groups": "group STRING, requests LONG",
}
"""The run tables that `MEASURES` reads, and their columns besides `run`."""
STORED = tuple(name for name in TABLES if name != "runs")
"""Those that every judged run has stored."""
ORDER = (
    "rebalances", "rebalancing_ms", "longest_ms", "moved_partitions", "longest_unowned_ms",
    "requests",
)  # fmt: skip

TREND = """
SELECT r.night, r.experiment, r.kafka_version, r.coordinator, r.cluster, m.group, m.measure,
    avg(m.value) AS value, count(*) AS runs
FROM {measures} m JOIN {runs} r ON m.run = r.run
WHERE r.night IS NOT NULL
GROUP BY r.night, r.experiment, r.kafka_version, r.coordinator, r.cluster, m.group, m.measure
"""
"""The measures of each night: the mean over its seeds, and how many runs that is of."""


def tables_at(spark: SparkSession, uri: str | Path) -> dict[str, DataFrame]:
    """Return the run tables at a URI that the measures need."""
    return {name: run_tables.read(spark, uri, name, of) for name, of in TABLES.items()}


def of_runs(spark: SparkSession, outputs: Iterable[str | Path]) -> dict[str, DataFrame]:
    """Return the tables that the measures need, of judged run folders (paths or URIs).

    Raises EvidenceError where one is no run folder, or was not judged.
    """
    tables: dict[str, list[DataFrame]] = defaultdict(list)
    for output in outputs:
        row, found = run_tables.of_run(spark, output, STORED)
        for name, table in (*found.items(), ("runs", run_tables.listed(spark, row))):
            tables[name].append(table.withColumn("run", F.lit(row["run"])))
    return {name: reduce(DataFrame.unionByName, of) for name, of in tables.items()}


def measures(tables: dict[str, DataFrame]) -> DataFrame:
    """Return the measures of all runs in some run tables (see `MEASURES`)."""
    named: dict[str, Any] = {name: tables[name] for name in TABLES}
    return tables["runs"].sparkSession.sql(MEASURES, **named)


def side_by_side(measured: DataFrame, runs: Sequence[str]) -> DataFrame:
    """Return a row for each group and measure, with a column of values for each run."""
    rank = F.array_position(F.lit(list(ORDER)), F.col("measure"))
    return (
        measured.where(F.col("run").isin(list(runs)))
        .groupBy("group", "measure")
        .pivot("run", list(runs))
        .agg(F.max("value"))
        .orderBy("group", F.when(rank == 0, len(ORDER) + 1).otherwise(rank), "measure")
    )


def trend(tables: dict[str, DataFrame]) -> DataFrame:
    """Return the measures of each night (see `TREND`)."""
    spark = tables["runs"].sparkSession
    return spark.sql(TREND, measures=measures(tables), runs=tables["runs"])
