"""Members as a leader knows them, and the orders in which assignors lay them out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reference_coordinator.assignors.consumer_protocol import Subscription, TopicPartition
from reference_coordinator.assignors.jvm_order import in_hash_order, string_hash, units


@dataclass(frozen=True, slots=True)
class Member:
    """A member, as a JoinGroup answer tells its leader."""

    member_id: str
    subscription: Subscription
    group_instance_id: str | None = None


def in_order(members: Iterable[Member]) -> list[Member]:
    """Static members by instance id, then dynamic ones by member id (KIP-345, from 2.4 on)."""
    return sorted(members, key=_place)


def _place(member: Member) -> tuple[bool, bytes]:
    instance = member.group_instance_id
    return instance is None, units(member.member_id if instance is None else instance)


def in_hash_order_of_ids(members: Iterable[Member]) -> list[Member]:
    """As a Java leader walks the map that it keeps subscriptions in."""
    by_id = {member.member_id: member for member in members}
    return [by_id[member_id] for member_id in in_hash_order(by_id, string_hash)]


def topics_in_hash_order(members: Iterable[Member], partitions: Mapping[str, int]) -> list[str]:
    """As a Java leader walks the topics that members want and that have partitions."""
    walked = in_hash_order_of_ids(members)
    wanted = in_hash_order(
        (topic for member in walked for topic in member.subscription.topics), string_hash
    )
    return in_hash_order((topic for topic in wanted if partitions.get(topic)), string_hash)


def partitions_of(topics: Iterable[str], partitions: Mapping[str, int]) -> list[TopicPartition]:
    """List the partitions of topics, one after the other."""
    return [
        TopicPartition(topic, number) for topic in topics for number in range(partitions[topic])
    ]
