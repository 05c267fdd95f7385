"""What the kernel says of the processes of a group: a signal takes effect when each thread gets it.

On a machine whose CPUs are taken a process goes on for a while after a SIGSTOP or SIGKILL was sent:
1.6 s were seen, at a load of 90 on two cores.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import gevent

DEAD = frozenset("ZXx")
"""The states of threads that have ended (proc_pid_stat(5))."""
STOPPED = DEAD | frozenset("Tt")
"""Those of threads that have ended, or do not run until they get SIGCONT."""
_EVERY_S = 0.01
_PROC = Path("/proc")


def is_within(group: int, states: frozenset[str], within_s: float) -> bool:
    """Wait until all threads of a process group are in one of some states; return if they are."""
    with gevent.Timeout(within_s, False):
        while not states.issuperset(_states(group)):
            gevent.sleep(_EVERY_S)
        return True
    return False


def _states(group: int) -> Iterator[str]:
    for process in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended by now
            if int(_fields(process)[2]) == group:
                for thread in process.parent.glob("task/*/stat"):
                    with suppress(OSError):  # this thread has, others go on
                        yield _fields(thread)[0]


def _fields(stat: Path) -> list[str]:
    """Return the fields behind the name of the program, which may hold anything."""
    return stat.read_text(errors="replace").rpartition(")")[2].split()
