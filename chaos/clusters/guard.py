"""Ends the brokers of a run when the run's own process is gone, however it went.

The kernel's parent-death signal would not do: it fires when the *thread* that started a broker
ends, and chaos may start brokers from threads that do. So one small process of its own session
waits for the end of a pipe that only the runner holds, and then kills whatever carries the mark.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def mark(run_id: str) -> str:
    """Return the JVM argument by which every process of a run is known."""
    return f"-Dgroupquake.run={run_id}"


def kill_marked(run_id: str) -> tuple[int, ...]:
    """SIGKILL every Java process that carries the mark of this run; return their ids."""
    killed = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            program, *arguments = (folder / "cmdline").read_bytes().decode().split("\0")
            if Path(program).name == "java" and mark(run_id) in arguments:
                os.kill(int(folder.name), signal.SIGKILL)
                killed.append(int(folder.name))
        except (OSError, UnicodeDecodeError):
            continue  # ended meanwhile, or not ours to read
    return tuple(killed)


def end_left_over(folder: Path) -> tuple[int, ...]:
    """End what still runs of the cluster in a folder, by the mark it wrote down; return the ids."""
    try:
        run_id = json.loads((folder / "processes.json").read_text())["run_id"]
    except (FileNotFoundError, ValueError, KeyError):
        return ()  # it never came to start a broker
    return kill_marked(run_id)


def stand_by(run_id: str) -> subprocess.Popen[bytes]:
    """Start the guard of a run: it acts when its `stdin` closes, which our own end closes too."""
    return subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, run_id],
        stdin=subprocess.PIPE,
        start_new_session=True,  # what ends the runner's process group must not end its guard
    )


def main() -> None:
    """Wait until standard input ends, then kill what the run left behind."""
    sys.stdin.buffer.read()
    for _ in range(3):  # a broker may have been between fork and exec, not yet carrying the mark
        kill_marked(sys.argv[1])
        time.sleep(0.1)


if __name__ == "__main__":
    main()
