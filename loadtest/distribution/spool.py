"""The history of a worker on its own disk, from where its lines go to the master.

It is a file, since members in processes of their own write to it, too. It is gone with a worker
that ends by itself.
"""

import os
import tempfile
from pathlib import Path

LINES = 2_000
"""The most lines in one message."""


class Spool:
    """A new file in `folder`, or in one for temporary files; reads what was appended to it."""

    def __init__(self, folder: Path | None) -> None:
        number, name = tempfile.mkstemp(".jsonl", "history-of-worker-", folder)
        self.path = Path(name)
        self._file = os.fdopen(number, "rb")
        self._lines: list[str] = []
        self._begun = b""

    def new(self) -> list[str]:
        """Return the next whole lines; the same ones until `taken` is called."""
        if not self._lines:
            *whole, self._begun = (self._begun + self._file.read()).split(b"\n")
            self._lines = [line.decode() for line in whole]
        return self._lines[:LINES]

    def taken(self, lines: int) -> None:
        """Pass the next lines over: they are sent."""
        del self._lines[:lines]

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
        self.path.unlink(missing_ok=True)
