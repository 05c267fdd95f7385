"""Measures of runs, over run tables as frames: for two runs side by side, and for a trend."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from reports.many_runs import run_tables

Tables = Mapping[str, pd.DataFrame]

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
OF_NIGHT = ["night", "experiment", "kafka_version", "coordinator", "cluster", "group", "measure"]
"""What a point of the trend is of."""


def tables_at(
    spark: SparkSession, uri: str | Path, runs: Sequence[str] | None = None
) -> dict[str, pd.DataFrame]:
    """Return the run tables at a URI that the measures need, of some runs or of all."""
    found = {}
    for name, schema in TABLES.items():
        rows = run_tables.read(spark, uri, name, schema)
        some = rows if runs is None else rows.where(F.col("run").isin(list(runs)))
        found[name] = some.toArrow().to_pandas()
    return found


def of_runs(spark: SparkSession, outputs: Iterable[str | Path]) -> dict[str, pd.DataFrame]:
    """Return the tables that the measures need, of judged run folders (paths or URIs).

    Raises EvidenceError where one is no run folder, or was not judged.
    """
    listed: list[dict[str, Any]] = []
    frames: dict[str, list[pd.DataFrame]] = {name: [] for name in STORED}
    for output in outputs:
        row, found = run_tables.of_run(spark, output, STORED)
        listed.append(row)
        for name, table in found.items():
            columns = [column.split()[0] for column in TABLES[name].split(", ")]
            rows = table.select(columns).toArrow().to_pandas()
            frames[name].append(rows.assign(run=row["run"]))
    whole = {name: pd.concat(of_name, ignore_index=True) for name, of_name in frames.items()}
    return {"runs": pd.DataFrame(listed), **whole}


def measures(tables: Tables) -> pd.DataFrame:
    """Return a row for each run, group and measure.

    How many rebalances the impact phase had (in all, and by reason), how long they took (in all,
    and the longest), how many partitions changed their owner, how long one had none at most, and
    how many requests were checked in the whole run. Times are ms.
    """
    by = ["run", "group"]
    observed = _in_impact(tables, "observed", "started_ms")
    owned = _in_impact(tables, "ownership", "from_ms")
    groups, rebalanced, handed = tables["groups"], observed.groupby(by), owned.groupby(by)
    checked = groups[groups["requests"] > 0].set_index(by)[["requests"]]
    of_group = checked.assign(
        rebalances=rebalanced.size().reindex(checked.index, fill_value=0),
        rebalancing_ms=rebalanced["duration_ms"].sum().reindex(checked.index, fill_value=0.0),
        longest_ms=rebalanced["duration_ms"].max(),
    )
    moves = pd.DataFrame({
        "moved_partitions": handed["moved"].sum(),
        "longest_unowned_ms": handed["unowned_ms"].max(),
    })  # fmt: skip
    reasons = observed.groupby([*by, "reason"]).size().rename("value").reset_index()
    reasons = reasons.assign(measure="rebalances: " + reasons.pop("reason").astype(str))
    long = [
        wide.reset_index().melt(by, var_name="measure").astype({"value": float})
        for wide in (of_group, moves)
        if len(wide)
    ]
    found = pd.concat([*long, reasons.astype({"value": float})], ignore_index=True)
    return found.dropna()[[*by, "measure", "value"]]


def _in_impact(tables: Tables, name: str, at: str) -> pd.DataFrame:
    """Return the rows of a table in the impact phases of their runs; one that never ended goes on.

    They are null where a run had none.
    """
    phases = tables["runs"][["run", "impact_from_ms", "impact_until_ms"]].astype(
        {"impact_from_ms": float, "impact_until_ms": float}
    )
    rows = tables[name].merge(phases, on="run")
    until_ms = rows["impact_until_ms"].fillna(inf)
    return rows[(rows[at] >= rows["impact_from_ms"]) & (rows[at] < until_ms)]


def side_by_side(measured: pd.DataFrame, runs: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each group and measure, with a value of each run; None where it has none."""
    mine = measured[measured["run"].isin(runs)]
    wide = mine.pivot(index=["group", "measure"], columns="run", values="value")
    rows = wide.reindex(columns=list(runs)).reset_index()
    place = {measure: number for number, measure in enumerate(ORDER)}
    rank = rows["measure"].map(place).fillna(len(ORDER))
    ordered = rows.assign(rank=rank).sort_values(["group", "rank", "measure"])
    return records(ordered.drop(columns="rank"))


def trend(tables: Tables) -> list[dict[str, Any]]:
    """Return the measures of each night: the mean over its seeds, and how many runs that is of."""
    measured = measures(tables).merge(tables["runs"], on="run")
    points = measured.groupby(OF_NIGHT)["value"].agg(value="mean", runs="size")
    return records(points.reset_index())


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame with Python's own values; None stands for what is missing."""
    found: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return found
