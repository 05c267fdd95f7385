"""The terminal: progress and errors on standard error, results on standard output.

Every argument is a line: whatever characters it holds, it does not begin another one.
"""

import json
import sys
import time

from kafka_protocol.printable import printable


class Console:
    """Prints progress lines with the seconds since it was made."""

    def __init__(self) -> None:
        """Start the clock."""
        self._began = time.monotonic()

    def progress(self, message: str, *more: str) -> None:
        """Print a progress line, and those that follow it."""
        first = f"[{time.monotonic() - self._began:6.1f} s] {message}"
        print(*map(printable, (first, *more)), sep="\n", file=sys.stderr, flush=True)

    @staticmethod
    def result(*lines: str) -> None:
        """Print the lines of a result."""
        print(*map(printable, lines), sep="\n", flush=True)

    @staticmethod
    def error(*problems: str) -> None:
        """Print an error, in one line, or a line for each of its problems."""
        for problem in problems:
            print(f"groupquake: {printable(problem)}", file=sys.stderr, flush=True)


def json_lines(result: object) -> list[str]:
    """Return the lines of a result as JSON, in ASCII."""
    return json.dumps(result, indent=2).split("\n")
