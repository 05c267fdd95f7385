"""The terminal: progress and errors on standard error, results on standard output."""

import os
import sys
import time
from typing import TextIO


class Console:
    """Prints progress lines with the seconds since it was made."""

    def __init__(self) -> None:
        """Start the clock."""
        self._began = time.monotonic()

    def progress(self, message: str) -> None:
        """Print a progress line."""
        _print(f"[{time.monotonic() - self._began:6.1f} s] {message}", sys.stderr)

    @staticmethod
    def result(message: str) -> None:
        """Print a result."""
        _print(message, sys.stdout)

    @staticmethod
    def error(message: str) -> None:
        """Print an error, in one line."""
        _print(f"groupquake: {message}", sys.stderr)


def _print(line: str, stream: TextIO) -> None:
    """Print a line; that a terminal or a reader is gone must not end the healing."""
    try:
        print(line, file=stream, flush=True)
    except OSError:
        # what is buffered would fail once more as the interpreter ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
