"""The JVMs of a run as child processes: starting one, and what is written down of it."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import psutil

Child = subprocess.Popen[bytes]


def launch(command: Sequence[str], said: Path) -> Child:
    """Start a process in the folder of `said`, which what it prints is added to."""
    with said.open("ab") as stdout:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            cwd=said.parent,
            start_new_session=True,  # Ctrl-C in the terminal is for the runner alone
        )


def describe(process: Child) -> dict[str, str | int]:
    """Tell process id and start time: ids are reused. Raises psutil.Error if it is gone."""
    started = psutil.Process(process.pid).create_time()
    return {"pid": process.pid, "started_at_ms": round(started * 1000)}
