"""How punctual faults are.

A real run of the command line, in which members are killed one after the other. A fault is planned
for a time after the begin of the impact phase, which the journal has. The load's process, which
ends the member, writes when it did; that it did is verified by the brokers' logs and the kernel.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from benchmarks.table import p50, p99

EVERY_MS = 500
FIRST_MS = 2_000
MEMBERS = 20
DOWN_MS = 3_000

Json = Mapping[str, Any]


def run(folder: Path, faults: int) -> dict[str, Any]:
    """Run the experiment below a folder; return the errors of all faults in ms, and quantiles."""
    file = folder / "punctual.yaml"
    file.write_text(yaml.safe_dump(_experiment(faults)))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "groupquake",
            "run",
            str(file),
            "--seed=0",
            "--no-report",
            f"--runs={folder}",
        ],
        check=False,
        stdout=subprocess.DEVNULL,
    )
    if done.returncode:
        raise SystemExit(f"the run ended with exit code {done.returncode}; see {folder}")
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
    killed: dict[str, list[float]] = {}
    for line in history:
        if line["event"] == "killed":
            killed.setdefault(line["member"], []).append(line["at_ms"])
    errors = []
    for fault in sorted(verified, key=_number):
        planned_ms = impact_ms + FIRST_MS + EVERY_MS * (_number(fault) - 1)
        errors.append(min((at - planned_ms for at in killed[targets[fault]]), key=abs))
    return errors


def _number(fault: str) -> int:
    """Return the number of a fault in its file, from 1: `f7` or `f7.1`."""
    return int(fault.partition(".")[0].removeprefix("f"))


def _lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _experiment(faults: int) -> Json:
    """Return an experiment: each member is killed in its turn, and is back before the next one."""
    members = {"kind": "static", "client": "wire", "count": MEMBERS, "instance_id": "static-{n}"}
    last_ms = FIRST_MS + EVERY_MS * faults
    return {
        "name": "punctual",
        "description": "Kills members at planned times, far more often than a session ends.",
        "cluster": {"brokers": 1, "config": {"group.initial.rebalance.delay.ms": 1_000}},
        "workload": {
            "topics": [{"name": "orders", "partitions": 20, "replication_factor": 1}],
            "groups": [
                {
                    "name": "static",
                    "topics": ["orders"],
                    "session_timeout": "30s",
                    "heartbeat_interval": "500ms",
                    "commit_interval": "5s",
                    "members": [members],
                }
            ],
        },
        "faults": [
            {
                "fault": "member.kill",
                "target": {"names": [f"static-{number % MEMBERS}"]},
                "at": f"{FIRST_MS + EVERY_MS * number}ms",
                "down_for": f"{DOWN_MS}ms",
            }
            for number in range(faults)
        ],
        "phases": {"impact": f"{last_ms + DOWN_MS + 2_000}ms", "recovery": "2s"},
    }
