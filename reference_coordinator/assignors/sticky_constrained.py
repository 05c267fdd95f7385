"""Sticky where all subscriptions are equal: Kafka's `ConstrainedAssignmentBuilder` (KAFKA-9987).

Each member gets the minimum quota, the number of partitions divided by that of members; as many
members as partitions remain get one more, the maximum quota.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from reference_coordinator.assignors.claims import Settled
from reference_coordinator.assignors.consumer_protocol import TopicPartition
from reference_coordinator.assignors.jvm_order import units
from reference_coordinator.assignors.members import partitions_of

Shares = dict[str, list[TopicPartition]]


@dataclass(slots=True)
class _Keeping:
    """What members keep. `more` is how many may still get the maximum quota."""

    small: int
    more: int
    shares: Shares = field(default_factory=dict)
    given_up: dict[TopicPartition, str] = field(default_factory=dict)
    under: list[str] = field(default_factory=list)
    """Those that have less than the smaller size."""
    at_small: list[str] = field(default_factory=list)
    """Those that have the smaller size, and might get one more."""

    def keep(self, member_id: str, had: list[TopicPartition]) -> None:
        """Let a member keep what it had, as far as there is room."""
        size = self.small
        if len(had) < self.small:
            self.under.append(member_id)
        elif self.more and len(had) > self.small:
            size += 1
            self.more -= 1
        elif self.more:
            self.at_small.append(member_id)
        self.shares[member_id] = had[:size]
        self.given_up |= dict.fromkeys(had[size:], member_id)


def assign_constrained(
    settled: Settled, partitions: Mapping[str, int]
) -> tuple[Shares, dict[TopicPartition, str]]:
    """Return the shares, and those partitions with their takers that change hands."""
    if not settled.owned:
        return {}, {}
    keeping = _Keeping(*divmod(sum(partitions.values()), len(settled.owned)))
    for member_id, owned in settled.owned.items():
        had = [partition for partition in owned if partition not in settled.disputed]
        keeping.keep(member_id, sorted(had, key=lambda had: (had.partition, units(had.topic))))
    taken = {partition for share in keeping.shares.values() for partition in share}
    topics = sorted(partitions, key=units)
    free = [partition for partition in partitions_of(topics, partitions) if partition not in taken]
    takers = _deal(keeping, free)
    moving = {
        partition: taker
        for partition, taker in takers.items()
        if partition in settled.disputed or keeping.given_up.get(partition, taker) != taker
    }
    return keeping.shares, moving


def _deal(keeping: _Keeping, free: list[TopicPartition]) -> dict[TopicPartition, str]:
    """Deal what is free in turns: first to those under the smaller size, then one more each."""
    under, at_small = (deque(sorted(ids, key=units)) for ids in (keeping.under, keeping.at_small))
    takers = {}
    for partition in free:
        filling = bool(under)
        taker = (under or at_small).popleft()
        share = keeping.shares[taker]
        share.append(partition)
        takers[partition] = taker
        if filling:
            (under if len(share) < keeping.small else at_small).append(taker)
    return takers
