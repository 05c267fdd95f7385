"""Range: topic by topic, every member gets a run of partitions; the first ones get one more."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from reference_coordinator.assignors.consumer_protocol import TopicPartition
from reference_coordinator.assignors.members import Member, in_order, topics_in_hash_order


def assign(
    members: Sequence[Member],
    partitions: Mapping[str, int],
    order: Callable[[Iterable[Member]], list[Member]] = in_order,
) -> dict[str, list[TopicPartition]]:
    """Lay members out in `order` along each topic that they want."""
    shares: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    laid_out = order(members)
    for topic in topics_in_hash_order(members, partitions):
        takers = [member for member in laid_out if topic in member.subscription.topics]
        each, more = divmod(partitions[topic], len(takers))
        end = 0
        for place, member in enumerate(takers):
            start, end = end, end + each + (place < more)
            shares[member.member_id] += [TopicPartition(topic, n) for n in range(start, end)]
    return shares
