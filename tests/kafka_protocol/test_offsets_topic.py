import pytest

from kafka_protocol.offsets_topic import partition_of

HASHES = {"hello": 99162322, "polygenelubricants": -(2**31), "killed": -1131353987}
"""What Java gives for these; the second is the one that has no positive counterpart."""


@pytest.mark.parametrize("group", HASHES)
@pytest.mark.parametrize("partitions", [1, 6, 50])
def test_a_group_belongs_to_the_partition_that_java_s_hash_gives(group, partitions):
    code = 0 if HASHES[group] == -(2**31) else abs(HASHES[group])
    assert partition_of(group, partitions) == code % partitions


def test_the_hash_is_that_of_java_without_its_sign():
    assert partition_of("hello", 1_000_000_000) == 99_162_322
    assert partition_of("", 12) == 0
    assert partition_of("polygenelubricants", 50) == 0  # its hash code is -2**31
    assert partition_of("fuzz-7-83", 50) == 1_784_084_721 % 50  # its hash code is negative
