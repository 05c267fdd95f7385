"""What starts before the analysis of a run needs it: Spark's JVM, its workers, a rehearsal.

Whatever goes wrong here, the analysis itself runs into it, and says so.
"""

import tempfile
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from reports.ingest.spark import prepare
from reports.judgement.log.log_places import LOG
from reports.judgement.run.run_folder import logs_bytes
from scenarios.regular_files import open_regular

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = 50
"""The number of a log's lines that are read."""


def start(folder: Path, master: str) -> None:
    """Start Spark's JVM for the analysis of a run folder, while the caller imports the analysis."""
    if size := logs_bytes(folder):
        prepare(master, size, folder / "spark.log")


def rehearse(folder: Path, master: str) -> None:
    """Start Spark and its workers in the background, and read a few of the lines logged so far.

    Brokers may still run, and go first.
    """
    prepare(master, logs_bytes(folder), folder / "spark.log", lambda spark: _read(spark, folder))


def _read(spark: "SparkSession", folder: Path) -> None:
    from reports.ingest import log_files, reading, sources  # noqa: PLC0415 (the JVM starts meanwhile)
    from reports.judgement.log.split_rows import How  # noqa: PLC0415
    from reports.judgement.run.run_folder import RunFolder  # noqa: PLC0415

    run = RunFolder(folder)
    with tempfile.TemporaryDirectory(prefix="groupquake-rehearsal-") as name:
        few = Path(name) / "run"
        for log in folder.glob(f"{run.parser.folder}/*/{LOG}"):
            copy = few / log.relative_to(folder)
            copy.parent.mkdir(parents=True)
            with open_regular(log) as lines:
                copy.write_bytes(b"".join(islice(lines, LINES)))
        logs = reading.on_paths(
            spark, sources.logs_of(few, run.parser.folder), log_files.split_bytes(spark)
        )
        read = reading.read_lines(logs, str(few), reading.Reading(run.parser, How()))
        read.blobs.unpersist()
