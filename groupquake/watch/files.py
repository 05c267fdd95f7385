"""A log file that is written to: its lines in their order, through rotation and truncation, out."""

import glob
import os
from collections.abc import Iterable
from os.path import samestat
from pathlib import Path
from time import time_ns
from typing import BinaryIO

from groupquake.watch.counting import Position
from reports.judgement.log.log_bytes import FORMS, OTHERS
from scenarios.regular_files import open_regular

CHUNK = 1 << 20
"""How many bytes are read at once; a longer line is read in parts."""
HEAD = 1 << 10
"""By how many first bytes a file is known again: lines with times differ from those of others."""
PACKED = (*FORMS, *OTHERS)


def logs_of(paths: Iterable[Path]) -> dict[Path, list[Path]]:
    """Group paths by their log: rotated parts, such as `server.log.1`, belong to `server.log`."""
    found: dict[Path, list[Path]] = {}
    for path in sorted(paths, key=lambda path: len(str(path))):
        log = next((one for one in found if str(path).startswith(f"{one}.")), path)
        found.setdefault(log, []).append(path)
    return found


class FollowedFile:
    """Reads on from where `at` says, which is kept up to date.

    The parts of a log are its file and what rotation calls `FILE.…`, in the order in which they
    were last written to. The part that is read is known by its first bytes, whatever its name, so
    it is read to its end when it is renamed, or copied and truncated, also while nobody follows.
    """

    def __init__(self, path: Path, given: Iterable[Path], at: Position, *, from_end: bool) -> None:
        """`given` are the parts to begin with, if `at` is no position in the log yet."""
        self._path, self._at = path, at
        self._file: BinaryIO | None = None
        self.notice = ""
        """What is to be said once about what was found."""
        if at.modified_ns:
            return
        written_ns = (one.stat().st_mtime_ns for one in given if one.exists())
        at.modified_ns = min(written_ns, default=time_ns()) - 1
        if from_end and path.exists():
            with open_regular(path) as file:
                end = file.seek(0, os.SEEK_END)
                at.head = os.pread(file.fileno(), min(HEAD, end), 0)
                at.offset = end

    def read(self) -> list[str]:
        """Return the next lines, without their ends; none where no whole line is there yet."""
        try:
            if self._file is None or not self._at.offset or self._is_rewritten(self._file):
                self._file = self._opened()
            lines = self._lines(self._file)
            if not lines and not _is_same(self._path, self._file):
                lines = self._lines(self._file, whole=False)
                if not lines:
                    self._file = self._next()
        except OSError:  # it is renamed just now, or may not be read yet
            return []
        return lines

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _lines(self, file: BinaryIO, *, whole: bool = True) -> list[str]:
        at = self._at
        piece = os.pread(file.fileno(), CHUNK, at.offset)
        if (whole and len(piece) < CHUNK) or b"\n" in piece:
            piece = piece[: piece.rfind(b"\n") + 1]
        if not piece:
            return []
        if len(at.head) < HEAD:
            at.head = os.pread(file.fileno(), min(HEAD, at.offset + len(piece)), 0)
        at.offset += len(piece)
        at.modified_ns = os.fstat(file.fileno()).st_mtime_ns
        return lines_of(piece)

    def _is_rewritten(self, file: BinaryIO) -> bool:
        """Tell whether a file is another than the one read last, or begins anew."""
        at, size = self._at, os.fstat(file.fileno()).st_size
        return size < at.offset or os.pread(file.fileno(), len(at.head), 0) != at.head

    def _opened(self) -> BinaryIO:
        """Return the part that was read last, else the next one."""
        if self._at.offset:
            for part in self._parts():
                file = open_regular(part)
                if not self._is_rewritten(file):
                    self.close()
                    return file
                file.close()
            self.notice = "what was read last is gone or packed: lines may be missing"
        return self._next()

    def _next(self) -> BinaryIO:
        """Return the part that was written to after the one read last."""
        at, read = self._at, self._file if self._at.offset else None
        newer = (one for one in self._parts() if one.stat().st_mtime_ns > at.modified_ns)
        others = (one for one in newer if read is None or not _is_same(one, read))
        file = open_regular(next(others, self._path))
        self.close()
        at.head, at.offset = b"", 0
        return file

    def _parts(self) -> list[Path]:
        """Return the parts that are there, the file itself the last."""
        rotated = self._path.parent.glob(f"{glob.escape(self._path.name)}.*")
        plain = [one for one in rotated if not one.name.endswith(PACKED) and one.is_file()]
        last = [self._path] if self._path.exists() else []
        return [*sorted(plain, key=lambda one: one.stat().st_mtime_ns), *last]


def _is_same(path: Path, file: BinaryIO) -> bool:
    return samestat(path.stat(), os.fstat(file.fileno()))


def lines_of(piece: bytes) -> list[str]:
    """Return the lines of a piece of text, without their ends."""
    *lines, last = piece.decode("utf-8", "replace").split("\n")
    return [line.removesuffix("\r") for line in (*lines, *([last] if last else []))]
