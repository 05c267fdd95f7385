"""A file of lines that another process appends to."""

from collections.abc import Iterator
from pathlib import Path

_CHUNK = 1 << 20


class Tail:
    """A file and the position read so far; a file that does not exist yet is read once it does."""

    def __init__(self, path: Path) -> None:
        self.lines = 0
        """How many lines were read: the number of the last one."""
        self._path = path
        self._offset = 0
        self._partial = b""

    def appended(self) -> Iterator[str]:
        """Yield the whole lines that were appended since; a line without its end waits."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self._offset)
            while chunk := file.read(_CHUNK):
                self._offset += len(chunk)
                *lines, self._partial = (self._partial + chunk).split(b"\n")
                for line in lines:
                    self.lines += 1
                    yield line.decode(errors="replace")
