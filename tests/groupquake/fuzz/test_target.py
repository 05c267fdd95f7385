"""Groups are put into partitions of the group topic by their names."""

from groupquake.fuzz.target import OffsetsPartitions
from kafka_protocol.offsets_topic import partition_of


def test_most_groups_share_partitions_and_one_may_be_alone_in_its_own() -> None:
    offsets_partitions = OffsetsPartitions(12)
    lone = set()
    for number in range(40):
        with (
            offsets_partitions.group(f"one-{number}", alone=False) as shared,
            offsets_partitions.group(f"two-{number}", alone=True) as alone,
        ):
            assert shared.startswith(f"one-{number}")
            assert partition_of(shared, 12) < 4
            lone.add(partition_of(alone, 12))
    assert lone == set(range(4, 12))


def test_nobody_is_alone_where_there_is_one_partition() -> None:
    assert not OffsetsPartitions(1).has_exclusive
    assert OffsetsPartitions(2).has_exclusive
