import pytest

from groupquake.kafka_admin import partition_for

HASHES = {"hello": 99162322, "polygenelubricants": -(2**31), "killed": -1131353987}
"""What Java gives for these; the second is the one that has no positive counterpart."""


@pytest.mark.parametrize("group", HASHES)
@pytest.mark.parametrize("partitions", [1, 6, 50])
def test_a_group_belongs_to_the_partition_that_java_s_hash_gives(group, partitions):
    code = 0 if HASHES[group] == -(2**31) else abs(HASHES[group])
    assert partition_for(group, partitions) == code % partitions
