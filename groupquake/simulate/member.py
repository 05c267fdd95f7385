"""One process of a member in virtual time."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from kafka_protocol.consumer_protocol import Subscription, TopicPartition
from kafka_protocol.join_reason import JoinReason
from kafka_protocol.versions import FIRST_JOIN_WITH_JOIN_REASON, LIBRDKAFKA, NEWEST
from loadtest.wire.leader import Member, shares
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.driving.simulation import Process

KEPT = 4_096
"""How many subscriptions are kept, encoded and decoded: most members have the same one."""
WIRE = "wire"
"""The client of `loadtest.wire.client`, which tells why it joins, and keeps its member id."""


@dataclass(eq=False)
class SimulatedMember(Process):
    """One process of a member."""

    beats_from_ms: float = 0.0
    """A time of its heartbeats' grid."""
    topics: tuple[str, ...] = ()
    """What it subscribes to."""
    owned: tuple[TopicPartition, ...] = ()
    listed: frozenset[tuple[str, str | None, str]] = frozenset()
    """The members in the last JoinGroup response (id, instance id, metadata), if it leads."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The partitions by topic that it assigned, if it leads."""
    is_silent: bool = False
    """Whether it sends nothing, as it is frozen or its application does not poll."""
    is_polled: bool = True
    """Whether its application polls; a member joins again only as it does."""
    unheard: list[Callable[[], None]] = field(default_factory=list)
    """What came for it meanwhile."""
    join_reason: JoinReason = JoinReason.RESTART
    """Why it joins next (KIP-423)."""
    is_wire: bool = False
    stopped_ms: float | None = None
    """Since when it has been without its partitions because of a rebalance."""

    def see(self, topics: tuple[str, ...], counts: Mapping[str, int]) -> None:
        """Subscribe to topics; librdkafka names in its JoinGroup only those that there are."""
        sees_all = self.versions is not LIBRDKAFKA
        self.topics = tuple(topic for topic in topics if sees_all or topic in counts)

    def subscription(self, *, is_eager: bool) -> str:
        """Return what its JoinGroup says of it, as base64: an eager one owns nothing then."""
        owned = () if is_eager else self.owned
        generation = self.client.generation if self.is_wire or not is_eager else -1
        return _encoded(self.topics, owned, generation)

    def assignments(self, assignor: str, counts: Mapping[str, int]) -> list[dict[str, str]]:
        """Return the assignments that it makes, if it leads; `counts` are partitions by topic."""
        if not self.client.leads:
            return []
        self.counts = dict(counts)
        members = [Member(one, _decoded(text), instance) for one, instance, text in self.listed]
        return [
            {"memberId": one, "assignment": b64encode(share).decode()}
            for one, share in shares(assignor, members, counts).items()
        ]


@lru_cache(maxsize=KEPT)
def _encoded(topics: tuple[str, ...], owned: tuple[TopicPartition, ...], generation: int) -> str:
    return b64encode(Subscription(topics, owned=owned, generation=generation).encode()).decode()


@lru_cache(maxsize=KEPT)
def _decoded(metadata: str) -> Subscription:
    return Subscription.decode(b64decode(metadata))


def versions_of(client: str, rules: Profile) -> Mapping[str, int]:
    """Return the versions that a client speaks with a coordinator of these rules."""
    if client.startswith(("librdkafka", "confluent")):
        return LIBRDKAFKA
    if client == WIRE and rules.join_reason_counts:
        return {**NEWEST, "JOIN_GROUP": FIRST_JOIN_WITH_JOIN_REASON}
    return NEWEST
