"""Waits of the main thread that signals can interrupt.

The kernel may deliver a signal to the thread of a library. Python runs signal handlers in the main
thread, and only between two calls; so no call of the main thread may wait for long.
"""

import subprocess
from collections.abc import Callable
from typing import TypeVar

LOOK_UP_S = 0.5
"""How long one call may wait."""

Found = TypeVar("Found")


def wait_interruptibly(look: Callable[[float], Found | None]) -> Found:
    """Call `look` with a number of seconds to wait, until it returns something; return that."""
    while (found := look(LOOK_UP_S)) is None:
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
