"""What a person sees: progress on standard error, results on standard output."""

import sys
import time


class Console:
    """Prints progress lines with the seconds since it was made."""

    def __init__(self) -> None:
        """Start the clock."""
        self._began = time.monotonic()

    def progress(self, message: str) -> None:
        """Tell what happens now."""
        print(f"[{time.monotonic() - self._began:6.1f} s] {message}", file=sys.stderr, flush=True)

    @staticmethod
    def result(message: str) -> None:
        """Tell a result."""
        print(message, flush=True)

    @staticmethod
    def complain(message: str) -> None:
        """Tell what went wrong, in one line."""
        print(f"groupquake: {message}", file=sys.stderr, flush=True)
