"""A file of lines that another process appends to."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def following(path: Path, take: Callable[[str], object]) -> Iterator[None]:
    """Inside the block, hand every line on, in another thread, soon after it was appended."""
    tail, over = Tail(path), threading.Event()

    def follow() -> None:
        last = False
        while not last:
            last = over.wait(0.2)
            for line in tail.appended():
                take(line)

    follower = threading.Thread(target=follow, name=f"follower of {path.name}")
    follower.start()
    try:
        yield
    finally:
        over.set()
        follower.join()
