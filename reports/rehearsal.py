"""The start of a run's analysis while its brokers still stop: Spark, and a rehearsal.

Spark's JVM and its Python workers start, load their code and read a few lines of the run as the
analysis will read all. Whatever goes wrong here, the analysis itself runs into it, and says so.
"""

import tempfile
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from reports.ingest.spark import prepare
from reports.judgement.run_folder import LOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES = 50
"""The number of a log's lines that are read."""


def begin(folder: Path, master: str) -> None:
    """Start Spark for the analysis of a run folder, in the background; brokers may still log."""
    size = sum(log.stat().st_size for log in folder.glob(f"brokers/*/{LOG}"))
    prepare(master, size, folder / "spark.log", lambda spark: _rehearse(spark, folder))


def _rehearse(spark: "SparkSession", folder: Path) -> None:
    from reports.ingest import line_pass, places  # noqa: PLC0415 (the JVM starts meanwhile)
    from reports.judgement.parsing import Parser  # noqa: PLC0415
    from reports.judgement.run_folder import RunFolder  # noqa: PLC0415

    run = RunFolder(folder)
    with tempfile.TemporaryDirectory(prefix="groupquake-rehearsal-") as name:
        few = Path(name) / "run"
        for log in folder.glob(f"brokers/*/{LOG}"):
            copy = few / log.relative_to(folder)
            copy.parent.mkdir(parents=True)
            with log.open("rb") as lines:
                copy.write_bytes(b"".join(islice(lines, LINES)))
        parser = Parser(run.grammar, run.numbered_lines)
        line_pass.read_logs(spark, places.uri_of(few), parser, f"{places.uri_of(few)}/tables")
