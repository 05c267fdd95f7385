"""Shell commands of the user's: each is known by its run and its shell, so that heal finds it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from chaos.errors import ClusterError
from chaos.timing import COMMAND_ENDS_S
from chaos.waiting import until

MARK = "GROUPQUAKE_COMMAND_OF"
"""The variable that a command and what it starts have: the run's brokers' folder, and the process
id of the command's shell."""
_MARKED = f'export {MARK}="$1:$$"; exec /bin/sh -c "$2"'


def start(
    command: str, brokers: Path, output: IO[bytes] | int, errors: IO[bytes] | int
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, with the mark of the run of a folder `brokers`."""
    return subprocess.Popen(
        ["/bin/sh", "-c", _MARKED, "sh", str(brokers.resolve()), command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        start_new_session=True,
    )


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL a command that was not waited for yet, with the processes of its group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def end_under_way(brokers: Path) -> tuple[int, ...]:
    """SIGKILL the commands of a run that are not over yet, with all that they started.

    What a command left running when it ended is the user's, such as a broker that it started: it
    stays. Returns the process ids. Raises ClusterError if one does not end.
    """
    of_run = f"{MARK}={brokers.resolve()}:"
    under_way = {mark for pid, mark in marked(of_run) if mark.endswith(f":{pid}")}
    ended: set[int] = set()
    left: list[int] = []

    def none_is_left() -> bool:
        left[:] = [pid for pid, mark in marked(of_run) if mark in under_way]
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended.update(left)
        return not left

    if not until(none_is_left, COMMAND_ENDS_S):
        raise ClusterError(f"process {left[0]} of a hook or log command does not end; end it")
    return tuple(sorted(ended))


def marked(mark: str) -> Iterator[tuple[int, str]]:
    """Yield the processes with a variable that begins with a mark, and that variable."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            for variable in (process / "environ").read_bytes().split(b"\0"):
                if variable.startswith(mark.encode()):
                    yield int(process.name), variable.decode(errors="replace")
