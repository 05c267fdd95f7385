"""The trend over nights: Spark SQL over the run tables of all nights.

nights/tables/       the run tables that the measures need (see `reports.many_runs`)
nights/trend.json    the measures of every night, as the page draws them
"""

import json
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession

from reports.many_runs import measures, run_tables

TABLES = "tables"


def add(spark: SparkSession, directory: Path, night: Path, runs: Iterable[Path]) -> str:
    """Append the judged runs of a night to the run tables; return the trend as JSON.

    `runs` are their folders. Raises EvidenceError where one is no run folder.
    """
    uri = directory / TABLES
    for folder in runs:
        row, tables = run_tables.of_run(spark, folder, measures.STORED, night.name)
        run_tables.append(spark, row, tables, uri)
    found = [row.asDict() for row in measures.trend(measures.tables_at(spark, uri)).collect()]
    found.sort(key=lambda row: [str(row[name]) for name in row if name not in ("value", "runs")])
    return json.dumps(found, indent=1) + "\n"
