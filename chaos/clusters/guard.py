"""Ends the brokers of a run when the process of the run ends, for any reason.

The kernel's parent-death signal does not fit: it fires when the *thread* that started a broker
ends, and faults start brokers from short-lived threads. Instead, one small process in a session of
its own waits for the end of a pipe that only the runner holds, and then ends all processes with the
mark of the run. Containers do not end with the runner either, so they have the same guard.
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
    """Return the JVM argument that marks every process of a run."""
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
            continue  # has ended, or belongs to another user
    return tuple(killed)


def _remove_containers(run_id: str) -> None:
    """Remove the containers and networks of a run, as far as the engine allows."""
    # imported here, so that the guard is small, and that of processes has no dependencies
    from chaos.clusters.docker_engine import remove_marked  # noqa: PLC0415
    from chaos.errors import ClusterError  # noqa: PLC0415

    with suppress(ClusterError):  # `groupquake heal` may still do it
        remove_marked(run_id)


def stand_by(run_id: str, *, containers: bool = False) -> Guard:
    """Start the guard of a run: it acts when its `stdin` closes, as it does when we end."""
    path = os.pathsep.join(filter(None, sys.path))  # it can import what we can
    kind = ["-P", __file__, "containers"] if containers else ["-I", "-S", __file__, "processes"]
    return subprocess.Popen(
        [sys.executable, *kind, run_id],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        start_new_session=True,  # a signal to the runner's process group must not end its guard
    )


def main() -> None:
    """Wait until standard input ends, then end what the run left behind."""
    kind, run_id = sys.argv[1:]
    sys.stdin.buffer.read()
    # A broker between fork and exec has no mark yet, and a requested container no label.
    end, pause_s = (_remove_containers, 1) if kind == "containers" else (kill_marked, 0.1)
    for _ in range(3):
        end(run_id)
        time.sleep(pause_s)


if __name__ == "__main__":
    main()
