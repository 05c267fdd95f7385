"""Chunks of one group that are read again: the first stays in memory, others go to a file."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import IO

import msgspec

from reports.judgement.logged import Chunk

_unpacked: Callable[[bytes], Chunk] = msgspec.msgpack.Decoder(Chunk).decode


@dataclass(slots=True)
class KeptChunks:
    """Chunks in the order in which they came."""

    _first: list[Chunk] = field(default_factory=list)
    _file: IO[bytes] | None = None
    _sizes: list[int] = field(default_factory=list)

    def add(self, chunk: Chunk) -> None:
        """Keep one more: the first in memory, the others in the file."""
        if not self._first:
            self._first.append(chunk)
            return
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115, `close` closes it
        self._sizes.append(self._file.write(msgspec.msgpack.encode(chunk)))

    def passing(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Keep chunks, and pass them on."""
        for chunk in chunks:
            self.add(chunk)
            yield chunk

    def __len__(self) -> int:
        """Count them."""
        return len(self._first) + len(self._sizes)

    def __iter__(self) -> Iterator[Chunk]:
        """Yield those that were kept."""
        yield from self._first
        if self._file is not None:
            self._file.seek(0)
            for size in self._sizes:
                yield _unpacked(self._file.read(size))

    def close(self) -> None:
        """Delete the temporary file, if there is one."""
        if self._file is not None:
            self._file.close()
