"""Measures of runs, over run tables: for two runs side by side, and for a trend.

Spark joins and counts, however many runs there are; what comes back is a frame of pandas with a row
for each run, group and measure.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reports.many_runs import run_tables

Tables = Mapping[str, DataFrame]

TABLES = {
    "runs": run_tables.RUNS,
    "observed": "group STRING, started_ms DOUBLE, reason STRING, duration_ms DOUBLE",
    "ownership": "group STRING, from_ms DOUBLE, moved BOOLEAN, unowned_ms DOUBLE",
    "groups": "group STRING, requests LONG",
}
"""The run tables that measures are of, and their columns besides `run`."""
STORED = tuple(name for name in TABLES if name != "runs")
"""Those that every judged run has stored."""
ORDER = (
    "rebalances", "rebalancing_ms", "longest_ms", "moved_partitions", "longest_unowned_ms",
    "requests",
)  # fmt: skip
OF_GROUP = ["run", "group"]
OF_NIGHT = ["night", "experiment", "kafka_version", "coordinator", "cluster", "group", "measure"]
"""What a point of the trend is of."""


def tables_at(
    spark: SparkSession, uri: str | Path, runs: Sequence[str] | None = None
) -> dict[str, DataFrame]:
    """Return the run tables at a URI that the measures need, of some runs or of all."""
    every = {name: run_tables.read(spark, uri, name, schema) for name, schema in TABLES.items()}
    if runs is None:
        return every
    return {name: rows.where(F.col("run").isin([*runs])) for name, rows in every.items()}


def of_runs(spark: SparkSession, outputs: Iterable[str | Path]) -> dict[str, DataFrame]:
    """Return the tables that the measures need, of judged run folders (paths or URIs).

    Raises EvidenceError where one is no run folder, or was not judged.
    """
    read = [run_tables.of_run(spark, output, STORED) for output in outputs]
    found = {"runs": run_tables.listed(spark, *(row for row, _ in read))}
    for name in STORED:
        columns = [column.split()[0] for column in TABLES[name].split(", ")]
        of_each = [
            tables[name].select(*columns, F.lit(row["run"]).alias("run")) for row, tables in read
        ]
        found[name] = reduce(DataFrame.unionAll, of_each)
    return found


def measures(tables: Tables) -> pd.DataFrame:
    """Return a row for each run, group and measure.

    How many rebalances the impact phase had (in all, and by reason), how long they took (in all,
    and the longest), how many partitions changed their owner, how long one had none at most, and
    how many requests were checked in the whole run. Times are ms.
    """
    found: pd.DataFrame = _measured(tables).orderBy(*OF_GROUP, "measure").toArrow().to_pandas()
    return found


def _measured(tables: Tables) -> DataFrame:
    checked = tables["groups"].where("requests > 0")
    observed = _in_impact(tables, "observed", "started_ms")
    rebalanced = observed.groupBy(OF_GROUP).agg(
        F.expr("double(count(*)) AS rebalances"),
        F.expr("sum(duration_ms) AS rebalancing_ms"),
        F.expr("max(duration_ms) AS longest_ms"),
    )
    of_groups = (
        checked.select(*OF_GROUP, F.col("requests").cast("double"))
        .join(rebalanced, OF_GROUP, "left")
        .fillna(0.0, ["rebalances", "rebalancing_ms"])
    )
    moves = _in_impact(tables, "ownership", "from_ms").groupBy(OF_GROUP).agg(
        F.expr("double(count_if(moved)) AS moved_partitions"),
        F.expr("max(unowned_ms) AS longest_unowned_ms"),
    )  # fmt: skip
    reason = F.concat(F.lit("rebalances: "), "reason").alias("measure")
    reasons = observed.groupBy(*OF_GROUP, reason).agg(F.expr("double(count(*)) AS value"))
    long = [wide.unpivot(("run", "group"), None, "measure", "value") for wide in (of_groups, moves)]
    return reduce(DataFrame.unionAll, [*long, reasons]).dropna()


def _in_impact(tables: Tables, name: str, at: str) -> DataFrame:
    """Return the rows of a table in the impact phases of their runs; one that never ended goes on.

    They are null where a run had none.
    """
    rows = tables[name].join(
        tables["runs"].select("run", "impact_from_ms", "impact_until_ms"), "run"
    )
    return rows.where(
        f"{at} >= impact_from_ms AND (impact_until_ms IS NULL OR {at} < impact_until_ms)"
    )


def side_by_side(measured: pd.DataFrame, runs: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each group and measure, with a value of each run; None where it has none."""
    wide = measured.pivot(index=["group", "measure"], columns="run", values="value")
    values = wide.reindex(columns=list(runs)).astype(object)
    rows: list[dict[str, Any]] = values.where(values.notna(), None).reset_index().to_dict("records")
    rank = lambda measure: ORDER.index(measure) if measure in ORDER else len(ORDER)
    return sorted(rows, key=lambda row: (row["group"], rank(row["measure"]), row["measure"]))


def trend(tables: Tables) -> list[dict[str, Any]]:
    """Return the measures of each night: the mean over its seeds, and how many runs that is of."""
    measured = _measured(tables).join(tables["runs"], "run").dropna(subset=OF_NIGHT)
    points = measured.groupBy(OF_NIGHT).agg(
        F.expr("avg(value) AS value"), F.expr("count(*) AS runs")
    )
    found: list[dict[str, Any]] = points.orderBy(*OF_NIGHT).toArrow().to_pylist()
    return found
