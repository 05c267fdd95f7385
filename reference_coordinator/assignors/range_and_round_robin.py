"""The two assignors without memory: range and round robin."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from reference_coordinator.assignors.consumer_protocol import TopicPartition
from reference_coordinator.assignors.jvm_order import units
from reference_coordinator.assignors.members import (
    Member,
    in_order,
    partitions_of,
    topics_in_hash_order,
)


def assign_ranges(
    members: Sequence[Member],
    partitions: Mapping[str, int],
    order: Callable[[Iterable[Member]], list[Member]] = in_order,
) -> dict[str, list[TopicPartition]]:
    """Assign each topic by runs of partitions; the first subscribers get one more each."""
    shares: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    in_line = order(members)
    for topic in topics_in_hash_order(members, partitions):
        subscribers = [member for member in in_line if topic in member.subscription.topics]
        each, more = divmod(partitions[topic], len(subscribers))
        end = 0
        for place, member in enumerate(subscribers):
            start, end = end, end + each + (place < more)
            shares[member.member_id] += [TopicPartition(topic, n) for n in range(start, end)]
    return shares


def assign_round_robin(
    members: Sequence[Member], partitions: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Assign topics by name; a member that does not subscribe to a topic stays first in line."""
    shares: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    wanted = {topic for member in members for topic in member.subscription.topics}
    topics = sorted((topic for topic in wanted if partitions.get(topic)), key=units)
    circle = deque(in_order(members))
    for partition in partitions_of(topics, partitions):
        while partition.topic not in circle[0].subscription.topics:
            circle.rotate(-1)
        shares[circle[0].member_id].append(partition)
        circle.rotate(-1)
    return shares
