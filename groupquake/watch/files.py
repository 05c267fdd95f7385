"""A log file that is written to: its lines in their order, through rotation and truncation, out."""

import glob
import os
import re
from collections.abc import Callable, Iterable, MutableMapping
from os.path import samestat
from pathlib import Path
from time import time_ns
from typing import BinaryIO

from reports.judgement.log.log_bytes import FORMS, OTHERS
from scenarios.regular_files import open_regular

CHUNK = 1 << 20
"""How many bytes are read at once; a longer line is read in parts."""
HEAD = 1 << 10
"""By how many first bytes a file that is truncated and written to anew is known as another."""
PACKED = (*FORMS, *OTHERS)
_ROTATED = re.compile(r"\.[\dT._-]+")
"""What rotation puts behind a name: a number or a date; packed parts end in letters."""


def logs_of(names: Iterable[str]) -> dict[Path, list[Path]]:
    """Group files by their log: rotated parts, such as `server.log.1`, belong to `server.log`."""
    found: dict[Path, list[Path]] = {}
    for path in sorted(map(os.path.abspath, names), key=len):
        log = next((one for one in found if path.startswith(f"{one}.")), Path(path))
        found.setdefault(log, []).append(Path(path))
    return found


class FollowedFile:
    """The parts of a log: what rotation calls `FILE.…`, in the order of their last lines; `FILE`.

    A part is read to its end also when it is renamed meanwhile. At the start, and where the file is
    truncated, all parts are read that may have lines which were not read yet, from their beginning.
    """

    is_over = False

    def __init__(
        self,
        path: Path,
        given: Iterable[Path],
        written_ns: MutableMapping[str, int],
        begins: Callable[[str], None],
        notice: Callable[[str], None],
    ) -> None:
        """Take the parts to begin with where `written_ns` does not know the log yet.

        It is kept up to date: when the part read last was written to. `begins` is called before
        lines may come again.
        """
        self.name, self._path = str(path), path
        self._begins, self._notice = begins, notice
        self._written_ns = written_ns
        if self.name not in written_ns:
            times = (one.stat().st_mtime_ns for one in given if one.exists())
            written_ns[self.name] = min(times, default=time_ns())
        self._file: BinaryIO | None = None
        self._head, self._offset = b"", 0
        self._is_awaited = False

    def read(self, _: float) -> list[str]:
        """Return the next lines, without their ends; none where no whole line is there yet."""
        try:
            if self._file is None or self._is_rewritten(self._file):
                self._begins(self.name)
                self._file = self._opened(self._written_ns[self.name])
            elif not self._offset:
                self._file = self._opened(self._written_ns[self.name] + 1)
            lines = self._lines(self._file)
            if not lines and not samestat(self._path.stat(), os.fstat(self._file.fileno())):
                lines = self._lines(self._file, whole=False)
                if not lines:
                    self._written_ns[self.name] = os.fstat(self._file.fileno()).st_mtime_ns
                    self._file = self._opened(self._written_ns[self.name] + 1)
        except OSError as error:  # where it was there before, it is renamed just now
            if self._file is None and not self._is_awaited:
                self._is_awaited = True
                self._notice(f"{self.name}: {error.strerror}; it is waited for")
            return []
        if self._is_awaited:
            self._is_awaited = False
            self._notice(f"{self.name}: is there now, and is read")
        return lines

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _opened(self, since_ns: int) -> BinaryIO:
        """Return the first part that was written to since then, to be read from its beginning."""
        rotated = self._path.parent.glob(f"{glob.escape(self._path.name)}.*")
        begins = len(self._path.name)
        plain = (one for one in rotated if _ROTATED.fullmatch(one.name[begins:]) and one.is_file())
        times = sorted((one.stat().st_mtime_ns, one) for one in plain)
        file = open_regular(next((one for at_ns, one in times if at_ns >= since_ns), self._path))
        self.close()
        self._head, self._offset = b"", 0
        return file

    def _is_rewritten(self, file: BinaryIO) -> bool:
        is_shorter = os.fstat(file.fileno()).st_size < self._offset
        return is_shorter or os.pread(file.fileno(), len(self._head), 0) != self._head

    def _lines(self, file: BinaryIO, *, whole: bool = True) -> list[str]:
        piece = os.pread(file.fileno(), CHUNK, self._offset)
        if (whole and len(piece) < CHUNK) or b"\n" in piece:
            piece = piece[: piece.rfind(b"\n") + 1]
        if not piece:
            return []
        self._offset += len(piece)
        self._head = self._head or piece[:HEAD]
        self._written_ns[self.name] = os.fstat(file.fileno()).st_mtime_ns
        return lines_of(piece)


def lines_of(piece: bytes) -> list[str]:
    """Return the lines of a piece of text, without their ends."""
    *lines, last = piece.decode("utf-8", "replace").split("\n")
    return [line.removesuffix("\r") for line in (*lines, *([last] if last else []))]
