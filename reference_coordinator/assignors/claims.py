"""What members had, settled between them: a later generation beats an earlier one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reference_coordinator.assignors.consumer_protocol import TopicPartition
from reference_coordinator.assignors.members import Member
from reference_coordinator.assignors.sticky_data import NO_GENERATION, Claim


@dataclass(slots=True)
class Settled:
    """Who has what. `owned` is in the order of the members; `former` has outdated owners.

    `disputed` are partitions that two members claim of one generation: no member keeps them.
    """

    owned: dict[str, list[TopicPartition]] = field(default_factory=dict)
    disputed: set[TopicPartition] = field(default_factory=set)
    former: dict[TopicPartition, str] = field(default_factory=dict)


def settle(
    members: Sequence[Member], claims: Mapping[str, Claim], partitions: Mapping[str, int]
) -> Settled:
    """Go through the claims in the order of `members`; partitions that do not exist are left out.

    A member that came first is judged by its subscription's generation alone, even where its claim
    stands in the user data: so does Kafka (`AbstractStickyAssignor.allSubscriptionsEqual`). Kafka
    keeps claims to partitions that a topic had before it was deleted and created again with fewer.
    """
    settled = Settled(former=_former(members, claims))
    holders: dict[TopicPartition, Member] = {}
    for member in members:
        claim, mine = claims[member.member_id], settled.owned.setdefault(member.member_id, [])
        generation = NO_GENERATION if claim.generation is None else claim.generation
        for partition in _existing(claim.partitions, partitions):
            holder = holders.get(partition)
            if holder is None:
                mine.append(partition)
            else:
                earlier = max(holder.subscription.generation, NO_GENERATION)
                if generation < earlier:
                    continue
                if partition in settled.owned[holder.member_id]:
                    settled.owned[holder.member_id].remove(partition)
                if generation == earlier:
                    settled.disputed.add(partition)
                else:
                    mine.append(partition)
            holders[partition] = member
    return settled


def _existing(
    claimed: Iterable[TopicPartition], partitions: Mapping[str, int]
) -> list[TopicPartition]:
    return [claim for claim in claimed if claim.partition < partitions.get(claim.topic, 0)]


def _former(members: Sequence[Member], claims: Mapping[str, Claim]) -> dict[TopicPartition, str]:
    """Find the latest owners among the members whose generation is not the newest."""
    generations = [claim.generation for claim in claims.values() if claim.generation is not None]
    newest = max([NO_GENERATION, *generations])
    latest: dict[TopicPartition, tuple[int, str]] = {}
    for member in members:
        claim = claims[member.member_id]
        generation = NO_GENERATION if claim.generation is None else claim.generation
        if generation < newest:
            for partition in claim.partitions:
                if partition not in latest or generation > latest[partition][0]:
                    latest[partition] = generation, member.member_id
    return {partition: owner for partition, (_, owner) in latest.items()}
