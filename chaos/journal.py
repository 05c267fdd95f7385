"""The journal: which faults were injected, and whether they were healed.

JSON objects, one a line, in the order they were written; each has `at_ms` (UTC epoch milliseconds)
and `event`. A line is on disk when `write` returns, so that an undo survives our own crash.
"""

import ctypes
import fcntl
import json
import os
import threading
from collections.abc import Iterable, Mapping
from ctypes import c_int64
from pathlib import Path
from typing import Any, Self

from chaos.errors import ChaosError, RunGoesOnError
from scenarios.durations import now_ms
from scenarios.regular_files import read_regular

Entry = Mapping[str, Any]
LARGEST_BYTES = 256 << 20
"""More than any run writes: a fault has five lines of some hundred bytes."""
_KEEP_SIZE = 1
"""linux/falloc.h: the file does not get longer by it."""
_ROOM = 1 << 20


class Journal:
    """Appends to a journal, from any thread; a file lock keeps other processes out.

    `copy` is a file that gets every line, too: what is undone is read of `path` alone. A last line
    that a crash cut off is removed on opening. Raises ChaosError if a file cannot be opened, and
    RunGoesOnError if its run still goes on.
    """

    def __init__(self, path: Path, copy: Path | None = None) -> None:
        self.path = path
        self._files: dict[Path, int] = {}
        try:
            for one in (path, copy):
                if one is not None:
                    self._files[one] = _open_locked(one)
        except ChaosError:
            self.close()
            raise
        # Reentrant, since a signal handler may write at any moment.
        self._lock = threading.RLock()

    def write(self, event: str, **fields: Any) -> None:
        """Append an entry; it is on disk when this returns."""
        with self._lock:
            entry = {"at_ms": now_ms(), "event": event, **fields}
            line = json.dumps(entry).encode() + b"\n"
            for path, file in self._files.items():
                try:
                    _append(file, line)
                except OSError as error:
                    raise ChaosError(
                        f"{path}: cannot be written ({error.strerror}); free space there"
                    ) from error

    def phase(self, name: str) -> None:
        """Write that a phase begins."""
        self.write("phase", phase=name)

    def seal(self) -> None:
        """End the copy: the evidence of the run is whole, and what is noted later changes none."""
        self.phase("end")
        with self._lock:
            for path in [one for one in self._files if one != self.path]:
                _close(self._files.pop(path))

    def close(self) -> None:
        """Close the files and release their locks."""
        for file in self._files.values():
            _close(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_locked(path: Path) -> int:
    try:
        # without waiting: it may be a FIFO by now
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise ChaosError(f"{path}: cannot be opened ({error.strerror})") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lines = read_regular(path, LARGEST_BYTES)
        if not lines.endswith(b"\n"):  # else what a full disk keeps for the file stays
            os.ftruncate(file, lines.rfind(b"\n") + 1)
    except BlockingIOError as error:
        os.close(file)
        raise RunGoesOnError(f"{path}: its run still goes on; stop that first") from error
    except OSError as error:
        os.close(file)
        raise ChaosError(f"{path}: cannot be opened ({error.strerror})") from error
    return file


def _close(file: int) -> None:
    os.ftruncate(file, os.fstat(file).st_size)  # gives back what was kept
    os.close(file)


def _append(file: int, line: bytes) -> None:
    """Append a whole line or nothing; it is on disk when this returns."""
    end = os.fstat(file).st_size
    try:
        while line:
            line = line[os.write(file, line) :]
        os.fsync(file)
    except OSError:
        os.ftruncate(file, end)
        raise
    # Room for the next lines, so that a full disk takes them; NFS, for one, keeps none.
    end = os.fstat(file).st_size
    ctypes.CDLL(None).fallocate(file, _KEEP_SIZE, c_int64(end), c_int64(_ROOM))


def read(path: Path) -> tuple[Entry, ...]:
    """Return the entries of a journal, without a last line that was cut off.

    Raises ChaosError if there is no such file, or if a line is not what `Journal` writes.
    """
    try:
        *lines, _cut = read_regular(path, LARGEST_BYTES).split(b"\n")
    except OSError as error:
        raise ChaosError(
            f"{path}: cannot be read ({error.strerror}); name the folder of a run"
        ) from error
    entries = []
    for number, line in enumerate(lines, 1):
        try:
            entries.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise ChaosError(f"{path}:{number}: no JSON; the journal was altered") from error
        if wrong := _wrong(entries[-1]):
            raise ChaosError(f"{path}:{number}: no journal entry: {wrong}; the journal was altered")
    return tuple(entries)


_NEEDED: Mapping[str, Mapping[str, type]] = {
    "intent": {"fault_id": str, "kind": str},
    "healed": {"fault_id": str, "healed": bool},
}
"""The fields that `open_faults` needs."""


def _wrong(entry: Any) -> str | None:
    """Say why a line is no entry; None if it is one."""
    if not isinstance(entry, dict):
        return "no JSON object"
    needed = {"event": str, **_NEEDED.get(str(entry.get("event")), {})}
    for name, kind in needed.items():
        if not isinstance(entry.get(name), kind):
            return f"{name!r} is {'of the wrong type' if name in entry else 'missing'}"
    return None


def open_faults(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the intents, with their `undo`, of recoverable faults that nothing has healed yet."""
    still_open: dict[str, Entry] = {}
    for entry in entries:
        if entry["event"] == "intent" and entry["kind"] == "recoverable":
            still_open[entry["fault_id"]] = entry
        elif entry["event"] == "healed" and entry["healed"]:
            still_open.pop(entry["fault_id"], None)
    return tuple(still_open.values())
