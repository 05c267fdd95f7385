"""Topics of a served cluster: who leads their partitions, and the records, in memory.

Records are bytes that a producer sent, whole batches of format 2; no broker looks into them.
"""

import base64
import struct
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from reference_coordinator.server.timing import KEPT_BATCHES

_BASE_OFFSET = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_EPOCH_AT, _LAST_DELTA_AT = 12, 23
"""Where a batch has the epoch of its leader, and the offset of its last record less the first."""


def new_id() -> str:
    """Return an id of 16 random bytes, as Kafka prints it."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


class Batch(NamedTuple):
    """Records from an offset on, up to before another."""

    first: int
    end: int
    content: bytes


@dataclass(eq=False)
class Partition:
    """A partition; all replicas are one. `leader` is None while none of `isr` runs."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None = None
    epoch: int = -1
    """Which election the leader is from."""
    batches: deque[Batch] = field(default_factory=lambda: deque(maxlen=KEPT_BATCHES))
    waiting: set[Callable[[], None]] = field(default_factory=set)
    """What is called when records come."""

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
        first = self.end
        (last_delta,) = _LEADER_EPOCH.unpack_from(content, _LAST_DELTA_AT)
        stored = bytearray(content)
        _BASE_OFFSET.pack_into(stored, 0, first)
        _LEADER_EPOCH.pack_into(stored, _EPOCH_AT, self.epoch)
        self.batches.append(Batch(first, first + last_delta + 1, bytes(stored)))
        for call in tuple(self.waiting):
            call()
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

    def elect(self, alive: Sequence[int]) -> bool:
        """Let the first replica lead that is in sync and alive; tell whether the leader changed."""
        leader = next((one for one in self.replicas if one in self.isr and one in alive), None)
        changed = leader != self.leader
        self.leader, self.epoch = leader, self.epoch + changed
        return changed


@dataclass(eq=False)
class Topic:
    """A topic; its partitions by number."""

    name: str
    partitions: list[Partition] = field(default_factory=list)
    printed_id: str = field(default_factory=new_id)
    """Its id, as Kafka prints it."""
