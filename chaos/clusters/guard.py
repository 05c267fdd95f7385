"""Ends the brokers of a run when the run's own process is gone, however it went.

The kernel's parent-death signal would not do: it fires when the *thread* that started a broker
ends, and chaos may start brokers from threads that do. So one small process of its own session
waits for the end of a pipe that only the runner holds, and then ends whatever carries the mark.
Containers outlive whoever had them made all the more, so theirs is the same guard.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

Guard = subprocess.Popen[bytes]


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


def _remove_containers(run_id: str) -> None:
    """Remove the containers and networks of a run, as far as the engine lets us now."""
    # here, so that a guard which only waits is small, and that of processes depends on nothing
    from chaos.clusters.docker_engine import remove_marked  # noqa: PLC0415
    from chaos.clusters.interface import ClusterError  # noqa: PLC0415

    with suppress(ClusterError):  # nobody is left to be told, but whoever heals
        remove_marked(run_id)


def stand_by(run_id: str, *, containers: bool = False) -> Guard:
    """Start the guard of a run: it acts when its `stdin` closes, which our own end closes too."""
    path = os.pathsep.join(filter(None, sys.path))  # what we can import, it can
    kind = ["-P", __file__, "containers"] if containers else ["-I", "-S", __file__, "processes"]
    return subprocess.Popen(
        [sys.executable, *kind, run_id],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        start_new_session=True,  # what ends the runner's process group must not end its guard
    )


def main() -> None:
    """Wait until standard input ends, then end what the run left behind."""
    kind, run_id = sys.argv[1:]
    sys.stdin.buffer.read()
    # What was about to be made does not carry the mark yet: a broker between fork and exec, or a
    # container that the engine has been asked for.
    end, pause_s = (_remove_containers, 1) if kind == "containers" else (kill_marked, 0.1)
    for _ in range(3):
        end(run_id)
        time.sleep(pause_s)


if __name__ == "__main__":
    main()
