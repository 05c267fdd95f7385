"""What tests of a load share: experiments, what they ask of it, and scripts that run in a child."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]


def of_one_group(name: str, members: list[dict[str, Any]], **more: Any) -> str:
    """Return the text of an experiment; `more` are further keys of its group."""
    group = {
        "name": name,
        "topics": ["orders"],
        "session_timeout": "6s",
        "heartbeat_interval": "500ms",
        **more,
        "members": members,
    }
    orders = {"name": "orders", "partitions": 8, "replication_factor": 1}
    return yaml.safe_dump(
        {
            "name": "own",
            "cluster": {"brokers": 1},
            "workload": {"topics": [orders], "groups": [group]},
            "phases": {"impact": "5s", "recovery": "1s"},
        },
        sort_keys=False,
    )


def others(rows, name):
    return {other: row for other, row in rows.items() if other != name}


def steps_of(load, member):
    """What happened to a member, with the partitions concerned."""
    lines = [line for line in load.history() if line["member"] == member]
    skipped = ("committed", "error")
    return [
        (line["event"], line.get("partitions")) for line in lines if line["event"] not in skipped
    ]


def end(load):
    load.ask("quit")
    assert load.process.wait(timeout=60) == 0, load.output
    assert "Traceback" not in load.output


def run_script(
    script: str, *arguments: str, within_s: float = 120, env: Mapping[str, str] | None = None
) -> list[str]:
    """Run a script to its end; return the lines that it prints."""
    ran = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=within_s,
        env=env,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()
