"""Chunks of one group that are read again: one stays in memory, several go to a temporary file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import IO

import msgspec

from reports.judgement.logged import Chunk

_unpacked: Callable[[bytes], Chunk] = msgspec.msgpack.Decoder(Chunk).decode


@dataclass(slots=True)
class KeptChunks:
    """Chunks in the order in which they came."""

    _only: Chunk | None = None
    _file: IO[bytes] | None = None
    _sizes: list[int] = field(default_factory=list)

    def add(self, chunk: Chunk) -> None:
        """Keep one more."""
        if self._only is None and self._file is None:
            self._only = chunk
            return
        if self._file is None:
            assert self._only is not None
            self._file = TemporaryFile()  # noqa: SIM115, `close` closes it
            self._write(self._only)
            self._only = None
        self._write(chunk)

    def _write(self, chunk: Chunk) -> None:
        assert self._file is not None
        self._sizes.append(self._file.write(msgspec.msgpack.encode(chunk)))

    def __iter__(self) -> Iterator[Chunk]:
        """Yield those that were kept."""
        if self._only is not None:
            yield self._only
        if self._file is not None:
            self._file.seek(0)
            for size in self._sizes:
                yield _unpacked(self._file.read(size))

    def close(self) -> None:
        """Delete the temporary file, if there is one."""
        if self._file is not None:
            self._file.close()
