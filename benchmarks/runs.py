"""Figures of real runs of the command line: how punctual faults are, and how long a run takes.

A fault is planned for a time after the begin of the impact phase, which the journal has. The load's
process, which ends the member, writes when it did; that it did is verified by the brokers' logs and
the kernel.
"""

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import yaml

from benchmarks.table import p50, p99
from scenarios import find

EXPERIMENT = "rolling-bounce"
"""The experiment whose duration is measured."""
EVERY_MS, FIRST_MS, DOWN_MS, MEMBERS = 500, 2_000, 3_000, 20
"""Members are killed one after the other; each is back before its next turn."""
PUNCTUAL = """
name: punctual
description: Kills members at planned times, far more often than a session ends.
cluster: {brokers: 1, config: {group.initial.rebalance.delay.ms: 1000}}
workload:
  topics: [{name: orders, partitions: 20, replication_factor: 1}]
  groups:
  - name: static
    topics: [orders]
    session_timeout: 30s
    heartbeat_interval: 500ms
    commit_interval: 5s
    members: [{kind: static, client: wire, count: 20, instance_id: "static-{n}"}]
"""

Json = dict[str, Any]
STAGES = {"cluster start": "formation", "formation": "impact", "plan": "teardown",
          "teardown": "end"}  # fmt: skip
"""The stages of a run before its analysis, and the phase of the journal that ends each."""


def _run(experiment: str, runs: Path, *options: str) -> int:
    """Run an experiment below a folder; return the exit code."""
    program = [sys.executable, "-m", "groupquake", "run", experiment, "--seed=0", f"--runs={runs}"]
    return subprocess.run([*program, *options], check=False, stdout=subprocess.DEVNULL).returncode


def _lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def chaos(folder: Path, faults: int) -> Json:
    """Run the experiment below a folder; return the errors of all faults in ms, and quantiles."""
    file = folder / "punctual.yaml"
    file.write_text(yaml.safe_dump(_punctual(faults)))
    if code := _run(str(file), folder, "--no-report"):
        raise SystemExit(f"the run ended with exit code {code}; see {folder}")
    latest = folder / "latest"
    errors = errors_ms(_lines(latest / "journal.jsonl"), _lines(latest / "history.jsonl"))
    if len(errors) != faults:
        raise SystemExit(f"{len(errors)} of {faults} faults were verified")
    late = [abs(one) for one in errors]
    return {"faults": faults, "errors_ms": errors, "p50_ms": p50(late), "p99_ms": p99(late),
            "most_ms": max(late)}  # fmt: skip


def errors_ms(journal: Iterable[Json], history: Iterable[Json]) -> list[float]:
    """Return how much later than planned each verified fault was injected, in order."""
    entries = list(journal)
    impact_ms = next(one["at_ms"] for one in entries if one.get("phase") == "impact")
    verified = {one["fault_id"] for one in entries
                if one["event"] == "verified" and one["verified"]}  # fmt: skip
    targets = {one["fault_id"]: one["target"] for one in entries if one["event"] == "intent"}
    killed: dict[str, list[float]] = defaultdict(list)
    for line in history:
        if line["event"] == "killed":
            killed[line["member"]].append(line["at_ms"])
    errors = []
    for fault in sorted(verified, key=_number):
        planned_ms = impact_ms + FIRST_MS + EVERY_MS * (_number(fault) - 1)
        errors.append(min((at - planned_ms for at in killed[targets[fault]]), key=abs))
    return errors


def _number(fault: str) -> int:
    """Return the number of a fault in its file, from 1: `f7` or `f7.1`."""
    return int(fault.partition(".")[0].removeprefix("f"))


def _punctual(faults: int) -> Json:
    lasts_ms = FIRST_MS + EVERY_MS * faults + DOWN_MS + 2_000
    of_members = [
        {
            "fault": "member.kill",
            "target": {"names": [f"static-{number % MEMBERS}"]},
            "at": f"{FIRST_MS + EVERY_MS * number}ms",
            "down_for": f"{DOWN_MS}ms",
        }
        for number in range(faults)
    ]
    phases = {"impact": f"{lasts_ms}ms", "recovery": "2s"}
    return {**yaml.safe_load(PUNCTUAL), "faults": of_members, "phases": phases}


def verdict(runs: Path, name: str = EXPERIMENT) -> Json:
    """Run an experiment below a folder; return its seconds by stage."""
    began_ms = time.time() * 1_000
    code = _run(name, runs)
    ended_ms = time.time() * 1_000
    judged = runs / "latest" / "verdict.json"
    found = json.loads(judged.read_text())["verdict"] if judged.exists() else "none"
    if found != "pass":
        raise click.ClickException(
            f"{name} ended with verdict {found} (exit code {code}); no figures are printed for such"
            " a run"
        )
    stages = _stages(began_ms, ended_ms, _lines(runs / "latest" / "journal.jsonl"))
    experiment = find(name)
    first_ms = min((fault.at_ms for fault in experiment.faults), default=0)
    plan_s = (first_ms + experiment.phases.impact_ms + experiment.phases.recovery_ms) / 1_000
    least_s = stages["cluster start"] + plan_s
    return {"stages_s": stages, "ratio": (ended_ms - began_ms) / 1_000 / least_s}


def _stages(began_ms: float, ended_ms: float, journal: Iterable[Json]) -> Mapping[str, float]:
    """Return the seconds of each stage, from the times in the journal."""
    phase = {entry["phase"]: entry["at_ms"] for entry in journal if entry["event"] == "phase"}
    borders = [began_ms, *(phase[ends] for ends in STAGES.values()), ended_ms]
    lasted = ((end - begin) / 1_000 for begin, end in pairwise(borders))
    return dict(zip((*STAGES, "analysis"), lasted, strict=True))
