"""The duration of a whole run, by stage."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click

from scenarios import find

Json = dict[str, Any]
EXPERIMENT = "rolling-bounce"


def run(runs: Path, name: str) -> Json:
    """Run an experiment below a folder; return its seconds by stage."""
    program = [sys.executable, "-m", "groupquake", "run", name, "--seed=0", f"--runs={runs}"]
    began_ms = time.time() * 1_000
    done = subprocess.run(program, check=False, stdout=subprocess.DEVNULL)
    ended_ms = time.time() * 1_000
    judged = runs / "latest" / "verdict.json"
    verdict = json.loads(judged.read_text())["verdict"] if judged.exists() else "none"
    if verdict != "pass":
        raise click.ClickException(
            f"{name} ended with verdict {verdict} (exit code {done.returncode});"
            " no figures are printed for such a run"
        )
    experiment = find(name)
    first_ms = min((fault.at_ms for fault in experiment.faults), default=0)
    plan_s = (first_ms + experiment.phases.impact_ms + experiment.phases.recovery_ms) / 1_000
    journal = (runs / "latest" / "journal.jsonl").read_text().splitlines()
    stages = _stages(began_ms, ended_ms, [json.loads(line) for line in journal])
    wall_s, least_s = (ended_ms - began_ms) / 1_000, stages["cluster start"] + plan_s
    return {
        "wall_s": wall_s,
        "plan_s": plan_s,
        "stages_s": stages,
        "least_s": least_s,
        "ratio": wall_s / least_s,
    }


def _stages(began_ms: float, ended_ms: float, journal: list[Json]) -> dict[str, float]:
    """Return the seconds of each stage, from the times in the journal."""
    phase = {entry["phase"]: entry["at_ms"] for entry in journal if entry["event"] == "phase"}
    borders = {
        "cluster start": began_ms,
        "formation": phase["formation"],
        "plan": phase["impact"],
        "teardown": phase["teardown"],
        "analysis": phase["end"],
    }
    ends = [*list(borders.values())[1:], ended_ms]
    return {
        name: (end - begin) / 1_000
        for (name, begin), end in zip(borders.items(), ends, strict=True)
    }
