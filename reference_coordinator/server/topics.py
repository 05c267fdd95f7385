"""Partitions of topics: who leads them, and their records, in memory.

Records are bytes that a producer sent, whole batches of format 2; no broker looks into them.
"""

import struct
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from reference_coordinator.server.timing import KEPT_BATCHES

_HEAD = struct.Struct(">qii")
"""How a batch begins: the offset of its first record, its length, the epoch of its leader."""
_LAST = struct.Struct(">i")
_LAST_AT = 23
"""Where it has the offset of its last record, counted from the first."""


class Batch(NamedTuple):
    """Records from an offset on, up to before another."""

    first: int
    end: int
    content: bytes


@dataclass(eq=False)
class Partition:
    """A partition; all replicas are one, so that any of them may lead. None does at first."""

    replicas: tuple[int, ...]
    leader: int = -1
    epoch: int = -1
    batches: deque[Batch] = field(default_factory=lambda: deque(maxlen=KEPT_BATCHES))

    @property
    def start(self) -> int:
        """The offset of the first record that is kept."""
        return self.batches[0].first if self.batches else 0

    @property
    def end(self) -> int:
        """The offset that the next record gets."""
        return self.batches[-1].end if self.batches else 0

    def append(self, content: bytes) -> int:
        """Store a batch; return the offset of its first record."""
        first, stored = self.end, bytearray(content)
        _, length, _ = _HEAD.unpack_from(stored)
        _HEAD.pack_into(stored, 0, first, length, self.epoch)
        (last,) = _LAST.unpack_from(stored, _LAST_AT)
        self.batches.append(Batch(first, first + last + 1, bytes(stored)))
        return first

    def read(self, offset: int, most_bytes: int) -> bytes:
        """Return the batches from the one with an offset on; at least one, if there is any."""
        found: list[bytes] = []
        for batch in self.batches:
            if batch.end > offset:
                most_bytes -= len(batch.content)
                if found and most_bytes < 0:
                    break
                found.append(batch.content)
        return b"".join(found)
