"""Waits of the main thread, which signals have to reach.

Of two signals at once the kernel may hand both to some library's thread. Python's handlers run in
the main thread, and only when it comes back from whatever it waits in; so it never waits for long.
"""

import subprocess
from collections.abc import Callable
from typing import TypeVar

LOOK_UP_S = 0.5
"""How long one call may wait."""

Found = TypeVar("Found")


def wait_interruptibly(look: Callable[[float], Found | None]) -> Found:
    """Wait as long as it takes until `look`, which waits for so many seconds, finds something."""
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
