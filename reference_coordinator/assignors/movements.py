"""Which partitions a rebalance has moved so far: what goes back should be what came (KIP-54).

Were a partition of a topic to go from A to B while another of it goes from B to A, both would
have lost one without need.
"""

from dataclasses import dataclass, field

from reference_coordinator.assignors.consumer_protocol import TopicPartition
from reference_coordinator.assignors.jvm_order import bucket, partition_hash


@dataclass(slots=True)
class _Moved:
    """Partitions that went one way; `most` is how many at most, as Java's tables never shrink."""

    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    most: int = 0

    def add(self, partition: TopicPartition) -> None:
        self.partitions[partition] = None
        self.most = max(self.most, len(self.partitions))

    def first(self) -> TopicPartition:
        """Return the one that a `HashSet` is walked from."""
        return min(self.partitions, key=lambda moved: bucket(partition_hash(moved), self.most))


@dataclass(slots=True)
class Movements:
    """What was moved, from whom at first to whom in the end."""

    _ways: dict[TopicPartition, tuple[str, str]] = field(default_factory=dict)
    _moved: dict[tuple[str, str, str], _Moved] = field(default_factory=dict)
    """By topic, from whom and to whom."""

    def best(self, partition: TopicPartition, holder: str, taker: str) -> TopicPartition:
        """Choose what to move instead of a partition: one of its topic that came the other way."""
        source = self._ways[partition][0] if partition in self._ways else holder
        came = self._moved.get((partition.topic, taker, source))
        return partition if came is None else came.first()

    def note(self, partition: TopicPartition, holder: str, taker: str) -> None:
        """Note that a partition was moved; back where it came from, it was not moved at all."""
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
