"""Round robin: all partitions, dealt one by one to the next member that wants the topic."""

from collections import deque
from collections.abc import Mapping, Sequence

from reference_coordinator.assignors.consumer_protocol import TopicPartition
from reference_coordinator.assignors.jvm_order import units
from reference_coordinator.assignors.members import Member, in_order, partitions_of


def assign(
    members: Sequence[Member], partitions: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Deal the topics in the order of their names; members passed over keep waiting their turn."""
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
