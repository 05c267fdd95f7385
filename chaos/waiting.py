"""Waiting for a condition, and waits of the main thread that signals can interrupt."""

import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

from chaos.timing import INTERRUPTIBLE_S, POLL_S

Found = TypeVar("Found")


def until(holds: Callable[[], object], within_s: float, every_s: float = POLL_S) -> bool:
    """Look until something holds; False if it does not within so many seconds."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True


def wait_interruptibly(look: Callable[[float], Found | None]) -> Found:
    """Call `look` with a number of seconds to wait, until it returns something; return that.

    The kernel may deliver a signal to the thread of a library. Python runs signal handlers in the
    main thread, and only between two calls; so no call of the main thread may wait for long.
    """
    while (found := look(INTERRUPTIBLE_S)) is None:
        continue
    return found


def exit_code(process: subprocess.Popen[bytes]) -> int:
    """Wait until a process has ended."""

    def look(seconds: float) -> int | None:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    return wait_interruptibly(look)
