"""What Java and Scala give: the orders are those that scala-library 2.13.5 printed."""

from kafka_protocol.jvm import in_scala_set_order, string_hash
from kafka_protocol.offsets_topic import partition_of

ORDERS = (
    [1, 0],
    [1, 2, 0],
    [1, 0, 3, 2],
    [4, 3, 0, 1, 2],
    [4, 6, 7, 1, 0, 5, 2, 3],
    [0, 10, 5, 7, 6, 1, 2, 11, 3, 4, 8, 9],
    [5, 4, 0, 26, 14, 10, 12, 7, 17, 13, 28, 2, 16, 6, 23, 21, 8, 18, 15, 9, 24, 19, 29, 22, 20,
     3, 11, 25, 27, 1],
)  # fmt: skip


def test_the_order_of_a_set() -> None:
    for numbers in ORDERS:
        size = len(numbers)
        texts = [f"i{n}-{n * 7919 + size}-f459-4a91-b09f" for n in range(size)]
        assert in_scala_set_order(texts) == [texts[n] for n in numbers]


def test_strings_of_one_hash() -> None:
    """Whichever comes first, the walk has an end."""
    texts = ["Aa-1", "BB-1", "a", "b", "c"]
    assert sorted(in_scala_set_order(texts)) == texts


def test_a_group_belongs_to_the_partition_that_java_s_hash_gives() -> None:
    assert string_hash("hello") == 99_162_322
    assert partition_of("hello", 1_000_000_000) == 99_162_322
    assert partition_of("", 12) == 0
    assert partition_of("polygenelubricants", 50) == 0  # its hash code is -2**31
    assert partition_of("killed", 50) == 1_131_353_987 % 50  # its hash code is negative
    assert partition_of("fuzz-7-83", 6) == 1_784_084_721 % 6
