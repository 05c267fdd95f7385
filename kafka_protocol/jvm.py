"""What Kafka's coordinators inherit from Java and Scala: the hash of a string, the order of a set.

Scala's sets are those of scala-library 2.13, which Kafka's jars are for.
"""

from collections.abc import Iterable

_FIRST_TABLE = 16
_LOAD = 0.75
_INT = 0xFFFFFFFF
_SMALL_SET = 4
"""A Scala immutable set up to this size keeps the order of insertion; a larger one is a trie."""
_TRIE_BITS = 5
"""Bits of the hash that one level of the trie uses."""
_HASH_BITS = 32


def string_hash(text: str) -> int:
    """Return `String.hashCode`, unsigned."""
    value = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        value = (31 * value + unit) & _INT
    return value


def in_scala_set_order(texts: Iterable[str]) -> list[str]:
    """Return strings in the order of `toSet` of a `mutable.HashSet` that never held more.

    A set that once held twelve keeps a larger table, and so perhaps another order.
    """
    hashed = {text: string_hash(text) for text in texts}
    table = _FIRST_TABLE
    while len(hashed) >= table * _LOAD:
        table *= 2
    if len(hashed) > _SMALL_SET:
        improved = {text: _improved_hash(value) for text, value in hashed.items()}
        return _trie_order(list(hashed), improved, 0)
    spread = {text: value ^ value >> 16 for text, value in hashed.items()}
    return sorted(hashed, key=lambda text: (spread[text] & (table - 1), signed(spread[text])))


def _improved_hash(value: int) -> int:
    """Return `Hashing.improve` of a hash."""
    value = (value + ~(value << 9)) & _INT
    value ^= value >> 14
    value = (value + (value << 4)) & _INT
    return value ^ value >> 10


def _trie_order(texts: list[str], hashes: dict[str, int], level: int) -> list[str]:
    """Return a trie node's strings: those alone in their slot, then those of the nodes below."""
    if _TRIE_BITS * level >= _HASH_BITS:  # equal hashes
        return texts
    places: dict[int, list[str]] = {}
    for text in texts:
        places.setdefault(hashes[text] >> _TRIE_BITS * level & 31, []).append(text)
    in_order = [places[place] for place in sorted(places)]
    alone = [text for place in in_order if len(place) == 1 for text in place]
    below = [text for p in in_order if len(p) > 1 for text in _trie_order(p, hashes, level + 1)]
    return [*alone, *below]


def signed(value: int) -> int:
    """Return an `int` of Java's, given as an unsigned number."""
    return value - (1 << 32) if value >> 31 else value
