"""Reports: a run's evidence in; tables, a verdict and a page out.

Three parts, and `analysis`, which calls them for a run folder: `ingest` (Spark: log files to
tables), `judgement` (pure: what the rows mean, up to the verdict) and `page` (HTML and JUnit XML).
The package knows `kafka_protocol`, `reference_coordinator` and `scenarios`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reports.judgement.errors import EvidenceError, ExecutionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["EvidenceError", "ExecutionError", "analyse"]


def analyse(
    spark: "SparkSession",
    evidence: str | Path,
    output: str | Path | None = None,
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Judge a run in a session that is open: a notebook's, a cluster's, or one of Spark Connect.

    `evidence` is the folder of the run, and `output` the folder that gets the results (by default
    the same): a URI that the session can read or write (`s3a://…`, `hdfs://…`, `file:/…`), or a
    path, which means `file:`. The results are `tables/<name>` in Parquet, `verdict.json`,
    `junit.xml`, `report.html`, and the counterexample of a wrong response. Spark has no writer for
    a single named file: at a URI that is no `file:`, each of these names is a folder with one text
    file in it. `progress` gets a line for each step. The content of `verdict.json` is returned.

    Raises EvidenceError where the evidence is not that of a run or cannot be read, where the output
    cannot be written, and where an `output` that is given has results already; ExecutionError where
    Spark fails in the middle. Then a table is whole, or it is not there.
    """
    from reports import analysis  # noqa: PLC0415 (Spark and the page's libraries load slowly)

    return analysis.analyse(spark, evidence, output, progress=progress)
