"""The sides of the comparison, each in a process of its own: `python -m benchmarks.sides`.

A side prints one JSON object: its seconds by stage, and its findings. Spark is called as a notebook
calls it, by `reports.analyse`.
"""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import extraction, plain
from reports.judgement.log.log_rows import line_counts
from reports.judgement.log.merging import ReadLogs
from reports.judgement.run.run_folder import RunFolder, logs_bytes

Json = dict[str, Any]


class Stages:
    """A clock for stages; `seconds` by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = time.perf_counter()
        self._name = ""

    def __call__(self, name: str) -> None:
        """End the current stage, if any, and begin another; an empty name only ends it."""
        now = time.perf_counter()
        if self._name:
            self.seconds[self._name] = self.seconds.get(self._name, 0.0) + now - self._began
        self._name, self._began = name, now


def by_pipeline(folder: Path, cores: str = "*") -> Json:
    """Judge a run folder with a session on this machine: tables, verdict and page."""
    from reports import analyse  # noqa: PLC0415 (the other sides do without)
    from reports.ingest.spark import SparkOptions, session  # noqa: PLC0415

    stages = Stages()
    stages("start-up")
    size = logs_bytes(folder)
    with session(SparkOptions(f"local[{cores}]"), size, folder / "spark.log") as spark:
        stages("preparing")
        verdict = analyse(spark, folder, progress=stages)
        stages("ending the session")
    stages("")
    groups, coverage = verdict["groups"].values(), verdict["coverage"]
    found = {
        "lines": coverage["lines_read"],
        "rejected": coverage["rejected"],
        "explained": sum(group["responses_explained"] for group in groups),
        "violations": len(verdict["findings"]),
    }
    start_up = stages.seconds.pop("start-up")
    return {"start_up_s": start_up, "stages_s": stages.seconds, "found": found}


def ingest(folder: Path) -> Json:
    """Read the logs of a run folder into the tables of their lines, on the disk."""
    from reports.ingest import tables  # noqa: PLC0415
    from reports.ingest.places import uri_of  # noqa: PLC0415
    from reports.ingest.spark import SparkOptions, session  # noqa: PLC0415

    run = RunFolder(folder)
    size = logs_bytes(folder)
    with session(SparkOptions("local[*]"), size, folder / "spark.log") as spark:
        began = time.perf_counter()
        output = f"{uri_of(folder)}/ingested"
        merged = tables.store_lines(spark, run, uri_of(folder), output)
        seconds = time.perf_counter() - began
    return {
        "seconds": seconds,
        "lines": line_counts(merged.processes).total(),
    }


def _by(judge: Callable[[RunFolder, ReadLogs], plain.Found], folder: Path) -> Json:
    """Judge a run folder in this process."""
    run, stages = RunFolder(folder), Stages()
    began = time.process_time()
    stages("reading the lines")
    logs = plain.read(run)
    stages("judging")
    found = judge(run, logs)
    stages("")
    cpu_s = time.process_time() - began
    return {"start_up_s": 0.0, "cpu_s": cpu_s, "stages_s": stages.seconds, "found": found}


SIDES: dict[str, Callable[..., Json]] = {
    "pipeline": by_pipeline,
    "loop": partial(_by, plain.loop),
    "same work": partial(_by, plain.same_work),
    "ingest": ingest,
    "extract-spark": extraction.by_spark,
    "extract-duckdb": extraction.by_duckdb,
}

if __name__ == "__main__":
    side, run_folder, *more = sys.argv[1:]
    print(json.dumps(SIDES[side](Path(run_folder), *more)))
