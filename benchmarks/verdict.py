"""The duration of a whole run: `python -m benchmarks.verdict` runs `rolling-bounce`, by stage."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from benchmarks.table import table
from scenarios import find

Json = dict[str, Any]
EXPERIMENT = "rolling-bounce"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def main(*, as_json: bool) -> None:
    """Run an experiment on a real cluster, and print its duration by stage."""
    with tempfile.TemporaryDirectory(prefix="groupquake-benchmark-") as folder:
        figures = run(Path(folder), EXPERIMENT)
    click.echo(json.dumps(figures, indent=2) if as_json else _shown(figures))


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


def _shown(figures: Json) -> str:
    wall_s = figures["wall_s"]
    rows = [(EXPERIMENT, "seconds", "share")]
    rows += [(n, f"{s:.1f}", f"{s / wall_s:.0%}") for n, s in figures["stages_s"].items()]
    rows.append(("to the verdict", f"{wall_s:.1f}", "100%"))
    summary = (
        f"Its plan lasts {figures['plan_s']:.0f} s; with the cluster's start that is "
        f"{figures['least_s']:.1f} s, and the verdict takes {figures['ratio']:.2f} times as long."
    )
    return f"{table(rows)}\n{summary}"


if __name__ == "__main__":
    main()
