"""Partitions that a rebalance has moved so far: Kafka's `PartitionMovements` (KIP-54).

If one partition of a topic moves from A to B and another from B to A, both members lose one without
need; so a move back takes the partition that came.
"""

from dataclasses import dataclass, field

from reference_coordinator.assignors.consumer_protocol import TopicPartition
from reference_coordinator.assignors.jvm_order import bucket, partition_hash


@dataclass(slots=True)
class _Moved:
    """Partitions moved in one direction; `most` is the highest count (Java tables never shrink)."""

    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    most: int = 0

    def add(self, partition: TopicPartition) -> None:
        self.partitions[partition] = None
        self.most = max(self.most, len(self.partitions))

    def first(self) -> TopicPartition:
        """Return the first one in the order of a `HashSet`."""
        return min(self.partitions, key=lambda moved: bucket(partition_hash(moved), self.most))


@dataclass(slots=True)
class Movements:
    """The moves so far: from the first owner to the last."""

    _ways: dict[TopicPartition, tuple[str, str]] = field(default_factory=dict)
    _moved: dict[tuple[str, str, str], _Moved] = field(default_factory=dict)
    """By topic, source and destination."""

    def best(self, partition: TopicPartition, holder: str, taker: str) -> TopicPartition:
        """Return what to move instead of a partition: one of its topic that came the other way."""
        source = self._ways[partition][0] if partition in self._ways else holder
        came = self._moved.get((partition.topic, taker, source))
        return partition if came is None else came.first()

    def note(self, partition: TopicPartition, holder: str, taker: str) -> None:
        """Note a move; a partition that is back at its first owner counts as not moved."""
        source = holder
        if partition in self._ways:
            source, stop = self._ways.pop(partition)
            left = self._moved[partition.topic, source, stop]
            del left.partitions[partition]
            if not left.partitions:
                del self._moved[partition.topic, source, stop]
        if source != taker:
            self._ways[partition] = source, taker
            self._moved.setdefault((partition.topic, source, taker), _Moved()).add(partition)
