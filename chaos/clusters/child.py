"""The JVMs of a run as child processes: starting one, and its entry in `processes.json`."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import psutil

Child = subprocess.Popen[bytes]


def launch(command: Sequence[str], output: Path) -> Child:
    """Start a process in the folder of `output`, the file that its output is appended to."""
    with output.open("ab") as stdout:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            cwd=output.parent,
            start_new_session=True,  # Ctrl-C in the terminal must reach the runner only
        )


def describe(process: Child) -> dict[str, str | int]:
    """Return process id and start time: ids are reused. Raises psutil.Error if it is gone."""
    started = psutil.Process(process.pid).create_time()
    return {"pid": process.pid, "started_at_ms": round(started * 1000)}
