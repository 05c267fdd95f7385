"""Run tables: the tables of many judged runs at one URI, partitioned by run.

    <uri>/runs/run=<name>/part-*.parquet         one row a run (`RUNS`)
    <uri>/observed/run=<name>/part-*.parquet     the table `observed` of that run, and so on

A run's name is that of its folder. A run that is appended again replaces its rows.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reports.judgement.errors import EvidenceError
from reports.judgement.run_folder import RunFolder

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
    environment, began = run.environment, dict(run.phases)
    return {
        "run": run.path.name,
        "night": night,
        "experiment": run.experiment.name,
        "kafka_version": environment["kafka_version"],
        "coordinator": environment["coordinator"],
        "cluster": environment.get("cluster"),
        "seed": environment["seed"],
        "started_at": environment.get("started_at"),
        "groupquake_version": environment.get("groupquake_version"),
        "git": environment.get("git"),
        "verdict": verdict["verdict"],
        "findings": sum(finding["root"] for finding in verdict["findings"]),
        "impact_from_ms": _float(began.get("impact")),
        "impact_until_ms": _float(began.get("recovery", began.get("teardown"))),
    }


def _float(at_ms: float | None) -> float | None:
    return None if at_ms is None else float(at_ms)


def read_verdict(run: RunFolder) -> dict[str, Any]:
    """Return the verdict of a judged run. Raises EvidenceError if there is none."""
    try:
        verdict: dict[str, Any] = json.loads((run.path / "verdict.json").read_bytes())
    except (OSError, ValueError) as error:
        raise EvidenceError(
            f"{run.path}/verdict.json: no verdict ({error}); judge the run: groupquake report"
            f" {run.path}"
        ) from error
    return verdict


def append(
    spark: SparkSession,
    row: Mapping[str, Any],
    tables: Mapping[str, DataFrame],
    uri: str,
    table_format: str = PARQUET,
) -> None:
    """Append the tables of one run, and its row of `RUNS`, to the run tables at a URI.

    `runs` is written last: a run that is listed there is whole. `table_format` is a format that
    the session has; `delta` replaces the run's rows as well, others only append.
    """
    listed = spark.createDataFrame([tuple(row[name] for name in columns(RUNS))], RUNS)
    for name, rows in (*tables.items(), ("runs", listed)):
        _write(rows.withColumn("run", F.lit(row["run"])), row["run"], f"{uri}/{name}", table_format)


def _write(rows: DataFrame, run: str, uri: str, table_format: str) -> None:
    writer = rows.write.format(table_format).partitionBy("run")
    if table_format == PARQUET:
        writer.mode("overwrite").option("partitionOverwriteMode", "dynamic").save(uri)
    elif table_format == "delta":
        quoted = run.replace("\\", "\\\\").replace("'", "\\'")
        writer.mode("overwrite").option("replaceWhere", f"run = '{quoted}'").save(uri)
    else:
        writer.mode("append").save(uri)


def read(
    spark: SparkSession, uri: str, name: str, schema: str, table_format: str = PARQUET
) -> DataFrame:
    """Return one of the run tables, of all runs: the columns of `schema` and `run`.

    The schema is given, since a table without a row has no file to take it from.
    """
    with_run = schema if name == "runs" else f"{schema}, run STRING"
    reader = spark.read.format(table_format)
    if table_format == PARQUET:
        return reader.schema(with_run).load(f"{uri}/{name}")
    return reader.load(f"{uri}/{name}").select(*columns(with_run))


def columns(schema: str) -> Iterable[str]:
    """Return the names of the columns of a schema in SQL's form."""
    return [column.split()[0] for column in schema.split(",")]
