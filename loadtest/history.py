"""The client history: what members saw, one JSON object a line, as it happened."""

import json
import time
from pathlib import Path
from typing import Any

from loadtest.errors import LoadtestError


def now_ms() -> float:
    """Return the time now in UTC epoch milliseconds, to a tenth."""
    return round(time.time() * 1000, 1)


class History:
    """Appends to a file; every line is with the kernel before `write` returns.

    One unbuffered write a line keeps lines whole even if several processes append to one file.
    Without a path nothing is written. Raises LoadtestError if the file cannot be opened.
    """

    def __init__(self, path: Path | None) -> None:
        try:
            self._file = path.open("ab", buffering=0) if path else None
        except OSError as error:
            raise LoadtestError(
                f"--history {path}: cannot be written ({error.strerror});"
                " name a file in a folder that exists"
            ) from error

    def write(
        self,
        event: str,
        *,
        member: str | None = None,
        group: str | None = None,
        kind: str | None = None,
        at_ms: float | None = None,
        **fields: Any,
    ) -> None:
        """Append one event; it happened now, unless `at_ms` tells when."""
        if self._file is None:
            return
        line = {
            "at_ms": now_ms() if at_ms is None else at_ms,
            "member": member,
            "group": group,
            "kind": kind,
            "event": event,
            **fields,
        }
        self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        """Close the file; later events are dropped."""
        if self._file is not None:
            self._file.close()
            self._file = None
