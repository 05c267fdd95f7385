"""The topic of the coordinators' records, and which of its partitions a group is in."""

from kafka_protocol.jvm import signed, string_hash

OFFSETS_TOPIC = "__consumer_offsets"


def partition_of(group: str, partitions: int) -> int:
    """Return a group's partition of the offsets topic: Java's `String.hashCode`, without its sign.

    Source: `partitionFor` of Kafka's group coordinators, the same since 0.9.
    """
    code = abs(signed(string_hash(group)))
    return code % 2**31 % partitions  # Java has no positive 2**31, and takes 0 for it
