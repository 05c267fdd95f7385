"""Writing a `group.log` as brokers from 4.0 on do: one line an event, numbered from 1 on."""

import os
import time
from collections.abc import Callable
from pathlib import Path


class NumberedLog:
    """Appends to a file what a process writes, its own first line being number 1.

    `later` calls a function soon, after what is going on: lines of one moment are written at once.
    """

    def __init__(self, path: Path, later: Callable[[Callable[[], None]], object]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._later = later
        self._unwritten: list[str] = []
        # the two clocks of a line are read as one, however long the process waits between readings
        self._apart_ns = max(time.time_ns() - time.monotonic_ns() for _ in range(5))
        self.lines = 0

    def write(self, text: str, at_ns: int) -> None:
        """Write what stands behind the times of a line; `at_ns` is of the monotonic clock."""
        self.lines += 1
        line = f"{self.lines} {(self._apart_ns + at_ns) // 1_000_000} {at_ns} {text}"
        if not self._unwritten:
            self._later(self.flush)
        self._unwritten.append(line + "\n")

    def flush(self) -> None:
        """Write what is not in the file yet."""
        text, self._unwritten = "".join(self._unwritten), []
        left = memoryview(text.encode())
        while left:
            left = left[os.write(self._file, left) :]

    def close(self) -> None:
        """Write the rest, and close the file."""
        self.flush()
        os.close(self._file)
