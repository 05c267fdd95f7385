"""Java's orders, where the result of an assignor hangs on them.

Strings compare by UTF-16 code units. `HashMap` and `HashSet` are walked bucket by bucket, in a
bucket in the order of insertion; buckets that hold so many that Java makes trees of them (eight,
in a table of 64) are not modelled.
"""

from collections.abc import Callable, Iterable
from struct import iter_unpack
from typing import TypeVar

from reference_coordinator.assignors.consumer_protocol import TopicPartition

K = TypeVar("K")

_FIRST_TABLE = 16
_LOAD = 0.75
_INT = 0xFFFFFFFF


def units(text: str) -> bytes:
    """What a string is compared by."""
    return text.encode("utf-16-be", "surrogatepass")


def string_hash(text: str) -> int:
    """`String.hashCode`, as an unsigned number."""
    value = 0
    for (unit,) in iter_unpack(">H", units(text)):
        value = (31 * value + unit) & _INT
    return value


def partition_hash(partition: TopicPartition) -> int:
    """`TopicPartition.hashCode`, as an unsigned number."""
    return (31 * (31 + partition.partition) + string_hash(partition.topic)) & _INT


def bucket(value: int, size: int) -> int:
    """Which bucket a hash falls into, in a table that has held `size` entries at most."""
    table = _FIRST_TABLE
    while size > table * _LOAD:
        table *= 2
    return (value ^ value >> 16) & (table - 1)


def in_hash_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> list[K]:
    """Lay keys out as a `HashMap` walks them that they were put into one by one."""
    unique = list(dict.fromkeys(keys))
    return sorted(unique, key=lambda key: bucket(hash_of(key), len(unique)))
