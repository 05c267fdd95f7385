"""Run tables: the tables of many judged runs at one URI, partitioned by run.

    <uri>/runs/run=<name>/part-*.parquet         one row a run (`RUNS`)
    <uri>/observed/run=<name>/part-*.parquet     the table `observed` of that run, and so on

A run's name is that of its folder. A run that is appended again replaces its rows.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reports.ingest import places, storing, uris
from reports.ingest.tables import COLUMNS, STORED
from reports.ingest.uris import literal
from reports.judgement.errors import EvidenceError
from reports.judgement.run.run_folder import RunFolder

RUNS = """
    run STRING, night STRING, experiment STRING, kafka_version STRING, coordinator STRING,
    cluster STRING, seed LONG, started_at STRING, groupquake_version STRING, git STRING,
    verdict STRING, findings INT, impact_from_ms DOUBLE, impact_until_ms DOUBLE
"""
"""The table `runs`. `night` is the name of the night's folder, null for a run by itself. The impact
phase, in which faults are injected, is [impact_from_ms, impact_until_ms); null if it never began.
"""
PARQUET = "parquet"


def about(run: RunFolder, verdict: Mapping[str, Any], night: str | None = None) -> dict[str, Any]:
    """Return the row of `RUNS` about a judged run."""
    began = {phase: float(at_ms) for phase, at_ms in run.phases}
    return {
        **{name: run.environment.get(name) for name in storing.schema(RUNS).names},
        "run": run.name,
        "night": night,
        "experiment": run.experiment.name,
        "verdict": verdict["verdict"],
        "findings": sum(finding["root"] for finding in verdict["findings"]),
        "impact_from_ms": began.get("impact"),
        "impact_until_ms": began.get("recovery", began.get("teardown")),
    }


def of_run(
    spark: SparkSession,
    output: str | Path,
    names: Iterable[str] = STORED,
    night: str | None = None,
) -> tuple[dict[str, Any], dict[str, DataFrame]]:
    """Return a judged run's row of `RUNS`, and its stored tables of the given names.

    `output` is the run folder: a path or a URI. Raises EvidenceError where it is none, or was not
    judged.
    """
    source = uris.uri_of(output)
    with places.run_folder(spark, source) as run:
        row = about(run, _verdict(spark, source), night)
    stored = lambda name: storing.stored(spark, COLUMNS[name], name, f"{source}/tables")
    return row, {name: stored(name) for name in names}


def _verdict(spark: SparkSession, source: str) -> dict[str, Any]:
    try:
        (row,) = spark.read.text(f"{literal(source)}/verdict.json", wholetext=True).collect()
        verdict: dict[str, Any] = json.loads(row["value"])
    except (PySparkException, ValueError) as error:
        raise EvidenceError(
            f"{source}/verdict.json: no verdict of a run; judge the run first: groupquake report"
        ) from error
    return verdict


def append(
    spark: SparkSession,
    row: Mapping[str, Any],
    tables: Mapping[str, DataFrame],
    uri: str | Path,
    table_format: str = PARQUET,
) -> None:
    """Append the tables of one run and its row of `RUNS` to the run tables at a URI (see `of_run`).

    `runs` is written last: a run that is listed there is whole. `table_format` is a format that
    the session has; `delta` replaces the run's rows as well, others only append.
    """
    for name, rows in (*tables.items(), ("runs", listed(spark, row))):
        _write(rows, row["run"], f"{uris.uri_of(uri)}/{name}", table_format)


def listed(spark: SparkSession, *rows: Mapping[str, Any]) -> DataFrame:
    """Return the table `RUNS` with some rows."""
    names = storing.schema(RUNS).names
    return spark.createDataFrame([tuple(row[name] for name in names) for row in rows], RUNS)


def _write(rows: DataFrame, run: str, uri: str, table_format: str) -> None:
    if table_format == PARQUET:
        # the partition itself, so that no row takes the place of the rows that were there
        rows.drop("run").write.mode("overwrite").parquet(f"{uri}/run={quote(run, safe='')}")
        return
    writer = rows.withColumn("run", F.lit(run)).write.format(table_format).partitionBy("run")
    if table_format == "delta":
        name = run.replace("\\", "\\\\").replace("'", "\\'")
        writer.mode("overwrite").option("replaceWhere", f"run = '{name}'").save(uri)
    else:
        writer.mode("append").save(uri)


def read(spark: SparkSession, uri: str | Path, name: str, schema: str) -> DataFrame:
    """Return one of the run tables, of all runs: the columns of `schema` and `run`.

    The schema is given, since a table without a row has no file to take it from.
    """
    with_run = schema if name == "runs" else f"{schema}, run STRING"
    return spark.read.schema(with_run).parquet(literal(f"{uris.uri_of(uri)}/{name}"))
