"""Partitions of topics: who leads them, and their records, in memory.

Records are bytes that a producer sent, whole batches of format 2; no broker looks further into
them than their heads.
"""

import struct
from collections import deque
from dataclasses import dataclass, field
from itertools import islice

from reference_coordinator.server.timing import KEPT_BATCHES

_HEAD = struct.Struct(">qiibxxxxxxi")
_LENGTH_ENDS, _FORMAT = 12, 2
"""How a batch begins: the offset of its first record, its length, the epoch of its leader, magic,
checksum and attributes, and the offset of its last record, counted from the first."""
_PRODUCED, _NOBODY = slice(43, 57), b"\xff" * 8
"""Where a batch has its producer's id, epoch and sequence; the id of one that is not idempotent."""
_KNOWN = 20
"""In how many of the newest batches one is looked for that a producer sends again: Kafka knows the
last five of each (`ProducerStateEntry.NUM_BATCHES_TO_RETAIN`)."""


@dataclass(eq=False)
class Partition:
    """A partition; all replicas are one, so that any of them may lead. None does at first.

    `offsets` are those of the records in `batches`, which are kept beside their own.
    """

    replicas: tuple[int, ...]
    leader: int = -1
    epoch: int = -1
    offsets: range = range(0)
    batches: deque[tuple[range, bytes]] = field(default_factory=lambda: deque(maxlen=KEPT_BATCHES))

    def append(self, content: bytes) -> int:
        """Store a batch, unless an idempotent producer (KIP-98) sends it again.

        Returns the offset of its first record. Raises ValueError if it is no batch.
        """
        first = self.offsets.stop
        _, length, _, form, last = _HEAD.unpack_from(content.ljust(_HEAD.size, b"\0"))
        if form != _FORMAT or length != len(content) - _LENGTH_ENDS or last < 0:
            raise ValueError("not one batch of format 2")
        produced = content[_PRODUCED]
        for offsets, known in islice(reversed(self.batches), _KNOWN):
            if known[_PRODUCED] == produced and not produced.startswith(_NOBODY):
                return offsets.start
        head = struct.pack(">qii", first, length, self.epoch)
        self.batches.append((range(first, first + last + 1), head + content[len(head) :]))
        self.offsets = range(self.batches[0][0].start, first + last + 1)
        return first

    def read(self, offset: int, most_bytes: int) -> bytes:
        """Return the batches from the one with an offset on; at least one, if there is any."""
        found: list[bytes] = []
        for offsets, content in self.batches:
            if offsets.stop > offset:
                most_bytes -= len(content)
                if found and most_bytes < 0:
                    break
                found.append(content)
        return b"".join(found)
