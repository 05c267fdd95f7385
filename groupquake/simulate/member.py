"""One process of a member in virtual time."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kafka_protocol.consumer_protocol import TopicPartition
from kafka_protocol.join_reason import JoinReason
from kafka_protocol.versions import FIRST_JOIN_WITH_JOIN_REASON
from loadtest.wire.leader import members_of, shares
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.driving.members import LIBRDKAFKA, NEWEST, MemberProcess

WIRE = "wire"
"""The client of `loadtest.wire.client`, which tells why it joins, and keeps its member id."""


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
    join_reason: JoinReason = JoinReason.RESTART
    """Why it joins next (KIP-423)."""
    is_wire: bool = False
    stopped_ms: float | None = None
    """Since when it has been without its partitions because of a rebalance."""

    def assignments(self, assignor: str, counts: Mapping[str, int]) -> list[dict[str, str]]:
        """Return what a leader assigns of so many partitions by topic; nothing for a follower."""
        if not self.client.leads:
            return []
        self.counts = dict(counts)
        listed = [
            {"memberId": one, "groupInstanceId": instance, "metadata": metadata}
            for one, instance, metadata in self.listed
        ]
        given = shares(assignor, members_of(listed), self.counts)
        return [
            {"memberId": one, "assignment": b64encode(share).decode()}
            for one, share in given.items()
        ]


def versions_of(client: str, rules: Profile) -> Mapping[str, int]:
    """Return the versions that a client speaks with a coordinator of these rules."""
    if client.startswith(("librdkafka", "confluent")):
        return LIBRDKAFKA
    if client == WIRE and rules.join_reason_counts:
        return {**NEWEST, "JOIN_GROUP": FIRST_JOIN_WITH_JOIN_REASON}
    return NEWEST
