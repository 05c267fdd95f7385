"""The files of a run that executors read themselves.

Where the files are not on a path, Spark reads their lines (`log_files`).
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from reports.judgement.errors import EvidenceError
from reports.judgement.log.log_bytes import DAMAGED, FORMS, lines_of, unpacked_pieces
from reports.judgement.log.log_places import LOG, logs_in


class File(NamedTuple):
    """A file on a path, as it was listed."""

    path: str
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, path: Path | str) -> "File":
        """List a file."""
        stat = Path(path).stat()
        return cls(str(path), stat.st_size, stat.st_mtime_ns)


def logs_of(folder: Path, kind: str) -> Mapping[str, Sequence[File]]:
    """List the files of logs in a run folder; `kind` is the folder of its brokers' or the tap's.

    Raises EvidenceError where there is none, or one whose place in its log is not known.
    """
    names = (LOG, f"{LOG}.gz", f"{LOG}.[0-9]*")
    found = [str(file) for name in names for file in folder.glob(f"{kind}/*/{name}")]
    if not found:
        raise EvidenceError(
            f"{folder}: no {kind}/<id>/{LOG}; give the folder of a run, such as runs/latest"
        )
    return {log: [*map(File.of, files)] for log, files in logs_in(found).items()}


@dataclass(slots=True)
class Count:
    """What was read of a log, counted without regard to lines: bytes, newlines, lines' rests."""

    size: int = 0
    newlines: int = 0
    rests: int = 0
    damages: int = 0

    @property
    def lines(self) -> int:
        """How many lines that is; what stands for a damage is one."""
        return self.newlines + self.rests + self.damages

    def of(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Pass pieces of a file on."""
        last = b"\n"
        for piece in pieces:
            self.size += len(piece)
            self.newlines += piece.count(b"\n")
            last = piece[-1:] or last
            yield piece
        self.rests += last != b"\n"


def lines_in(one: File, count: Count) -> Iterator[bytes]:
    """Yield the lines of a file. Raises EvidenceError where the file changed.

    Whatever stood in it before, it has to be the file that was listed, to the end of reading it.
    """
    with Path(one.path).open("rb") as file:
        _refuse_change(file.fileno(), one)
        damage: list[str] = []
        before = count.size
        yield from lines_of(count.of(unpacked_pieces(file, one.path, damage)))
        if one.path.endswith(tuple(FORMS)):
            count.size = before + one.size
        count.damages += len(damage)
        yield from (DAMAGED + what.encode() for what in damage)
        _refuse_change(file.fileno(), one)


def _refuse_change(file: int, one: File) -> None:
    stat = os.fstat(file)
    if (stat.st_size, stat.st_mtime_ns) != (one.size, one.mtime_ns):
        raise changed(one.path)


def changed(file: str) -> EvidenceError:
    """Return the error for a file that is not the one that was listed, or not read as a whole."""
    return EvidenceError(
        f"{file}: it changed while it was read; report it again when the logs no longer change"
    )
