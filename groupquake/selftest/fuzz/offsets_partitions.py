"""Which partition of the brokers' group topic a group is in: its name decides, so names are chosen.

The Java coordinator writes what is new in a partition as one batch, and where a record is too large
all of the batch fails, whosever it is. So groups with such records have a partition to themselves.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from queue import SimpleQueue


class OffsetsPartitions:
    """The partitions: some that groups share, and those that one group has at a time."""

    def __init__(self, partitions: int) -> None:
        """Divide them up: a third is shared."""
        self._partitions = partitions
        self._shared = range(max(1, partitions // 3))
        self._free: SimpleQueue[int] = SimpleQueue()
        for partition in range(len(self._shared), partitions):
            self._free.put(partition)
        self.has_exclusive = partitions > 1

    @contextmanager
    def group(self, name: str, *, alone: bool) -> Iterator[str]:
        """Complete a group's name so that it shares its partition, or is alone there meanwhile."""
        if not alone:
            yield self._name(name, self._shared)
            return
        partition = self._free.get()
        try:
            yield self._name(name, range(partition, partition + 1))
        finally:
            self._free.put(partition)

    def _name(self, name: str, partitions: range) -> str:
        names = (f"{name}.{number}" if number else name for number in count())
        return next(n for n in names if partition_of(n, self._partitions) in partitions)


def partition_of(group: str, partitions: int) -> int:
    """Tell a group's partition as Kafka does: by Java's hash code of the name, without its sign."""
    code = 0
    for character in group.encode("ascii"):
        code = (31 * code + character) & 0xFFFFFFFF
    if code == 1 << 31:  # the one whose absolute value is no int
        return 0
    return min(code, (1 << 32) - code) % partitions
