"""The trend over nights: Spark SQL over the run tables of all nights.

nights/tables/       the run tables that the measures need (see `reports.many_runs`)
nights/trend.json    the measures of every night, as the page draws them
"""

import json
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession

from groupquake.nightly.history import TREND
from reports.judgement.run_folder import RunFolder
from reports.many_runs import measures, run_tables

TABLES = "tables"


def add(spark: SparkSession, directory: Path, night: Path, runs: Iterable[Path]) -> None:
    """Append the judged runs of a night to the run tables, and compute the trend anew.

    `runs` are their folders. Raises EvidenceError where one has no verdict or no tables.
    """
    uri = str(directory.absolute() / TABLES)
    names = [name for name in measures.TABLES if name != "runs"]
    for folder in runs:
        run = RunFolder(folder)
        row = run_tables.about(run, run_tables.read_verdict(run), night.name)
        tables = {name: spark.read.parquet(str(folder / "tables" / name)) for name in names}
        run_tables.append(spark, row, tables, uri)
    found = [row.asDict() for row in measures.trend(measures.tables_at(spark, uri)).collect()]
    found.sort(key=lambda row: [str(row[name]) for name in row if name not in ("value", "runs")])
    unfinished = directory / f".{TREND}"
    unfinished.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(directory / TREND)
