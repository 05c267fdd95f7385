"""One process of a member in virtual time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kafka_protocol.consumer_protocol import TopicPartition
from reference_coordinator.driving.members import MemberProcess


@dataclass(eq=False)
class SimulatedMember(MemberProcess):
    """One process of a member."""

    beats_from_ms: float = 0.0
    """A time of its heartbeats' grid."""
    owned: tuple[TopicPartition, ...] = ()
    listed: frozenset[tuple[str, str | None, str]] = frozenset()
    """The members in the last JoinGroup response (id, instance id, metadata), if it leads."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The partitions by topic that it assigned, if it leads."""
    is_silent: bool = False
    """Whether it sends nothing, as it is frozen or its application does not poll."""
    unheard: list[Callable[[], None]] = field(default_factory=list)
    """What came for it meanwhile."""
    stopped_ms: float | None = None
    """Since when it has been without its partitions because of a rebalance."""
