"""The sides of the comparison, each in a process of its own: `python -m benchmarks.sides`.

A side prints one JSON object: its seconds by stage, and its findings. Spark is called as a notebook
calls it, by `reports.analyse`.
"""

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import extraction, plain
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import profile_for
from reference_coordinator.replay import replay
from reports.judgement.log.processes import STATUSES
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


def by_spark(folder: Path, cores: str = "*") -> Json:
    """Judge a run folder with a session on this machine: tables, verdict and page."""
    from reports import analyse  # noqa: PLC0415 (the other sides do without)
    from reports.ingest.spark import session  # noqa: PLC0415

    stages = Stages()
    stages("start-up")
    size = logs_bytes(folder)
    with session(f"local[{cores}]", size, folder / "spark.log") as spark:
        stages("preparing")
        verdict = analyse(spark, folder, progress=stages)
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
    from reports.ingest.spark import session  # noqa: PLC0415

    run = RunFolder(folder)
    size = logs_bytes(folder)
    with session("local[*]", size, folder / "spark.log") as spark:
        began = time.perf_counter()
        output = f"{uri_of(folder)}/ingested"
        merged = tables.store_lines(spark, run, uri_of(folder), output)
        seconds = time.perf_counter() - began
    return {
        "seconds": seconds,
        "lines": sum(process[status] for process in merged.processes for status in STATUSES),
    }


def by_loop(folder: Path) -> Json:
    """Read and replay a run folder in one plain loop."""
    run = RunFolder(folder)
    stages = Stages()
    gc.disable()  # there are no reference cycles, and millions of long-lived small objects
    stages("reading the lines")
    reader = plain.read(run)
    stages("replaying every request through the reference coordinator")
    explained = violations = 0
    profile = profile_of(run)
    for evidence in reader.evidence(run):
        result = replay(evidence, profile)
        explained += sum(checked.explained for checked in result.checked)
        violations += len(result.violations)
    stages("")
    found = {
        "lines": reader.lines,
        "rejected": reader.rejected,
        "explained": explained,
        "violations": violations,
    }
    return {"start_up_s": 0.0, "stages_s": stages.seconds, "found": found}


def profile_of(run: RunFolder) -> Profile:
    """Return the profile that a run is judged by."""
    environment = run.environment
    profile = profile_for(environment["kafka_version"], environment["coordinator"])
    assert profile is not None, "the oracle knows the releases of recorded runs"
    return profile.with_settings(run.settings)


SIDES: dict[str, Callable[..., Json]] = {
    "spark": by_spark,
    "loop": by_loop,
    "ingest": ingest,
    "extract-spark": extraction.by_spark,
    "extract-duckdb": extraction.by_duckdb,
}

if __name__ == "__main__":
    side, run_folder, *more = sys.argv[1:]
    print(json.dumps(SIDES[side](Path(run_folder), *more)))
