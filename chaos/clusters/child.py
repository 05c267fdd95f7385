"""The JVMs of a run as child processes: start and freeze."""

import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

Child = subprocess.Popen[bytes]

_FREEZE_S = 10.0
_STOPPED = frozenset("TtZXx")
"""The states of threads that do not run until they get SIGCONT, or never (proc_pid_stat(5))."""


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


def freeze(process: Child) -> bool:
    """Send SIGSTOP, and wait until each thread has stopped: on a busy machine some run on.

    Return False, and let the process go on, if one still runs after 10 s. A system without `/proc`
    is not asked.
    """
    process.send_signal(signal.SIGSTOP)
    deadline = time.monotonic() + _FREEZE_S
    while not _STOPPED.issuperset(_thread_states(process.pid)):
        if time.monotonic() > deadline:
            process.send_signal(signal.SIGCONT)
            return False
        time.sleep(0.002)
    return True


def _thread_states(process_id: int) -> Iterator[str]:
    for stat in Path(f"/proc/{process_id}/task").glob("*/stat"):
        with suppress(OSError):  # the thread has ended by now
            yield stat.read_text(errors="replace").rpartition(")")[2].split()[0]
