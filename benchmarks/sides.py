"""The two sides of the comparison, each in a process of its own: `python -m benchmarks.sides`.

A side prints one JSON object: its seconds by stage, and its findings.
"""

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import plain
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.releases import profile_for
from reference_coordinator.replay import replay
from reports.ingest import tables
from reports.ingest.places import uri_of
from reports.ingest.spark import session
from reports.judgement.run_folder import RunFolder

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


def by_spark(folder: Path) -> Json:
    """Judge a run folder as `groupquake report` does, up to the finished comparison."""
    run = RunFolder(folder)
    stages = Stages()
    stages("start-up")
    size = sum(log.stat().st_size for log in folder.glob("brokers/*/group.log"))
    with session("local[*]", size, folder / "spark.log") as spark:
        stages("preparing")
        profile = profile_of(run)  # also for promises: the loop lists no departures from KIP-345
        rules = tables.Rules(profile, profile, profile)
        built = tables.build(spark, run, uri_of(folder), uri_of(folder), rules, stages)
        stages("")
        differences = built.frame("comparison").where("outcome != 'match'").count()
        found = {
            "lines": built.line_counts.total(),
            "rejected": built.line_counts["rejected"],
            "explained": sum(group["explained"] for group in built.rows("groups")),
            "violations": built.frame("violations").count(),
            "rebalances": built.frame("expected").count(),
            "differences": differences + built.frame("member_lines").count(),
        }
    start_up = stages.seconds.pop("start-up")
    return {"start_up_s": start_up, "stages_s": stages.seconds, "found": found}


def by_loop(folder: Path) -> Json:
    """Read and replay a run folder in one plain loop."""
    run = RunFolder(folder)
    stages = Stages()
    gc.disable()  # there are no reference cycles, and millions of long-lived small objects
    stages("reading the lines")
    reader = plain.read(run)
    stages("replaying every request through the reference coordinator")
    explained = violations = rebalances = 0
    profile = profile_of(run)
    for evidence in reader.evidence(run):
        result = replay(evidence, profile)
        explained += sum(checked.explained for checked in result.checked)
        violations += len(result.violations)
        rebalances += len(result.rows)
    stages("")
    found = {
        "lines": reader.lines,
        "rejected": reader.rejected,
        "explained": explained,
        "violations": violations,
        "rebalances": rebalances,
        "differences": 0,
    }
    return {"start_up_s": 0.0, "stages_s": stages.seconds, "found": found}


def profile_of(run: RunFolder) -> Profile:
    """Return the profile that a run is judged by."""
    environment = run.environment
    profile = profile_for(environment["kafka_version"], environment["coordinator"])
    assert profile is not None, "the oracle knows the releases of recorded runs"
    return profile.with_settings(run.settings)


SIDES: dict[str, Callable[[Path], Json]] = {"spark": by_spark, "loop": by_loop}

if __name__ == "__main__":
    print(json.dumps(SIDES[sys.argv[1]](Path(sys.argv[2]))))
