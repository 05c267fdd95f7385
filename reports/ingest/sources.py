"""The files of a run that are read in splits: ranges of bytes that executors read themselves.

Where the files are not on a path, Spark reads their lines (`log_files`).
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from reports.judgement.errors import EvidenceError
from reports.judgement.log.log_bytes import (
    DAMAGED,
    FORMS,
    lines_of,
    pieces_between,
    unpacked_pieces,
)
from reports.judgement.log.log_places import LOG, Split, in_order

NAMES = (LOG, f"{LOG}.gz", f"{LOG}.[0-9]*")
"""The files of a log, as globs."""


class Range(NamedTuple):
    """A split of a file on a path: its bytes from `start` to `end`, and how the file was listed."""

    path: str
    start: int
    end: int
    size: int
    mtime_ns: int

    @property
    def split(self) -> Split:
        """What it is called."""
        return Split(Path(self.path).as_uri(), self.start)


def ranges_of(files: Iterable[Path], split_bytes: int) -> list[Range]:
    """List the splits of some files, of at most so many bytes; a packed file is one."""
    found = []
    for file in files:
        stat = file.stat()
        step = stat.st_size if file.suffix in FORMS else split_bytes
        for start in range(0, stat.st_size, step or 1):
            end = min(start + step, stat.st_size)
            found.append(Range(str(file), start, end, stat.st_size, stat.st_mtime_ns))
    return found


def logs_of(folder: Path, kind: str) -> list[Path]:
    """List the files of logs in a run folder; `kind` is the folder of its brokers' or the tap's.

    Raises EvidenceError where there is none, or one whose place in its log is not known.
    """
    found = [file for name in NAMES for file in folder.glob(f"{kind}/*/{name}")]
    if not found:
        raise no_log(str(folder), kind)
    return sorted(found, key=lambda file: in_order(Split(str(file), 0)))


@dataclass(slots=True)
class Count:
    """What was read of a split, counted without regard to lines: bytes, newlines, a line's rest."""

    size: int = 0
    newlines: int = 0
    rest: bool = False
    damages: int = 0

    @property
    def lines(self) -> int:
        """How many lines that is; what stands for a damage is one."""
        return self.newlines + self.rest + self.damages

    def of(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Pass pieces of a file on."""
        for piece in pieces:
            self.size += len(piece)
            self.newlines += piece.count(b"\n")
            if piece:
                self.rest = not piece.endswith(b"\n")
            yield piece


def lines_in(one: Range, count: Count) -> Iterator[bytes]:
    """Yield the lines whose first byte is in a range. Raises EvidenceError where the file changed.

    Whatever stood in it before, it has to be the file that was listed, to the end of reading it.
    """
    with Path(one.path).open("rb") as file:
        _refuse_change(file.fileno(), one)
        if one.path.endswith(tuple(FORMS)):
            damage: list[str] = []
            yield from lines_of(count.of(unpacked_pieces(file, one.path, damage)))
            count.damages, count.size = len(damage), one.size
            yield from (DAMAGED + what.encode() for what in damage)
        else:
            yield from lines_of(count.of(pieces_between(file, one.start, one.end)))
        _refuse_change(file.fileno(), one)


def _refuse_change(file: int, one: Range) -> None:
    stat = os.fstat(file)
    if (stat.st_size, stat.st_mtime_ns) != (one.size, one.mtime_ns):
        raise changed(one.path)


def no_log(run: str, kind: str) -> EvidenceError:
    """Return the error for a place without a log of a `kind`: the folder of brokers or tap."""
    return EvidenceError(
        f"{run}: no {kind}/<id>/{LOG}; give the folder of a run, such as runs/latest"
    )


def changed(file: str) -> EvidenceError:
    """Return the error for a file that is not the one that was listed, or not read as a whole."""
    return EvidenceError(
        f"{file}: it changed while it was read; report it again when the logs no longer change"
    )
