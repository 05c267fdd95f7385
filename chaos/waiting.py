"""Waiting for a condition, and for the end of a process, which signals can interrupt."""

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

from chaos.timing import INTERRUPTIBLE_S, POLL_S


def until(holds: Callable[[], object], within_s: float, every_s: float = POLL_S) -> bool:
    """Look until something holds; False if it does not within so many seconds."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True


def exit_code(process: subprocess.Popen[bytes]) -> int:
    """Wait until a process has ended, or a signal handler raises.

    The kernel may deliver a signal to the thread of a library. Python runs signal handlers in the
    main thread, and only between two calls; so no call of the main thread may wait for long.
    """
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(INTERRUPTIBLE_S)
