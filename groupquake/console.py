"""The terminal: progress and errors on standard error, results on standard output.

Every argument is a line: whatever characters it holds, it does not begin another one.
"""

import json
import os
import sys
import time
from typing import TextIO

from kafka_protocol.printable import printable


class Console:
    """Prints progress lines with the seconds since it was made."""

    def __init__(self) -> None:
        """Start the clock."""
        self._began = time.monotonic()

    def progress(self, message: str, *more: str) -> None:
        """Print a progress line, and those that follow it."""
        _print(sys.stderr, f"[{time.monotonic() - self._began:6.1f} s] {message}", *more)

    @staticmethod
    def result(*lines: str) -> None:
        """Print the lines of a result."""
        _print(sys.stdout, *lines)

    @staticmethod
    def error(*problems: str) -> None:
        """Print an error, in one line, or a line for each of its problems."""
        _print(sys.stderr, *(f"groupquake: {problem}" for problem in problems))


def _print(stream: TextIO | None, *lines: str) -> None:
    """Print lines; that a terminal or a reader is gone must not end the healing."""
    if stream is None:
        return
    try:
        print(*map(printable, lines), sep="\n", file=stream, flush=True)
    except OSError:
        # what is buffered would fail once more as the interpreter ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def json_lines(result: object) -> list[str]:
    """Return the lines of a result as JSON, in ASCII."""
    return json.dumps(result, indent=2).split("\n")
