"""Groups are put into partitions of the group topic by their names."""

from groupquake.selftest.fuzz.offsets_partitions import OffsetsPartitions, partition_of


def test_a_name_is_hashed_as_java_does() -> None:
    assert partition_of("hello", 1_000_000_000) == 99_162_322
    assert partition_of("", 12) == 0
    assert partition_of("polygenelubricants", 50) == 0  # whose hash code is the least there is
    assert partition_of("fuzz-7-83", 50) == 1_784_084_721 % 50  # its hash code is negative


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
