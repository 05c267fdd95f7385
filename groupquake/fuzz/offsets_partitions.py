"""Chooses group names by partition of `__consumer_offsets`, which follows from the name.

The Java coordinator writes the new records of a partition as one batch. A record that is too large
fails the whole batch, also for other groups. So a group with such records gets its own partition.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from queue import SimpleQueue

from kafka_protocol.offsets_topic import partition_of


class OffsetsPartitions:
    """The partitions: groups share a third of them; each other one is one group's at a time."""

    def __init__(self, partitions: int) -> None:
        """Divide the partitions."""
        self._partitions = partitions
        self._shared = range(max(1, partitions // 3))
        self._free: SimpleQueue[int] = SimpleQueue()
        for partition in range(len(self._shared), partitions):
            self._free.put(partition)
        self.has_exclusive = partitions > 1

    @contextmanager
    def group(self, name: str, *, alone: bool) -> Iterator[str]:
        """Complete a group name so that its partition is shared, or exclusive during the block."""
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
