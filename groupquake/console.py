"""The terminal: progress and errors on standard error, results on standard output."""

import sys
import time


class Console:
    """Prints progress lines with the seconds since it was made."""

    def __init__(self) -> None:
        """Start the clock."""
        self._began = time.monotonic()

    def progress(self, message: str) -> None:
        """Print a progress line."""
        print(f"[{time.monotonic() - self._began:6.1f} s] {message}", file=sys.stderr, flush=True)

    @staticmethod
    def result(message: str) -> None:
        """Print a result."""
        print(message, flush=True)

    @staticmethod
    def error(message: str) -> None:
        """Print an error, in one line."""
        print(f"groupquake: {message}", file=sys.stderr, flush=True)
