"""The order of Scala's sets, where what a coordinator does hangs on it.

Sources: `mutable.HashSet` and `immutable.Set` of scala-library 2.13, which Kafka's jars are for.
"""

from collections.abc import Iterable

from reference_coordinator.assignors.java import string_hash

_INT = 0xFFFFFFFF
FIRST_TABLE, LOAD = 16, 0.75
SMALL = 4
"""So many an immutable set keeps as they were put in; more stand in a trie."""
BITS = 5
"""What a level of the trie takes of the hash."""
HASH = 32


def in_set_order(texts: Iterable[str]) -> list[str]:
    """Lay strings out as `toSet` of a `mutable.HashSet` lists them that has held no more.

    One that once held twelve keeps a larger table, and so perhaps another order.
    """
    hashed = {text: string_hash(text) for text in texts}
    table = FIRST_TABLE
    while len(hashed) >= table * LOAD:
        table *= 2
    if len(hashed) > SMALL:
        improved = {text: _improved(value) for text, value in hashed.items()}
        return _walked(list(hashed), improved, 0)
    spread = {text: value ^ value >> 16 for text, value in hashed.items()}
    return sorted(hashed, key=lambda text: (spread[text] & (table - 1), _signed(spread[text])))


def _improved(value: int) -> int:
    """`Hashing.improve`."""
    value = (value + ~(value << 9)) & _INT
    value ^= value >> 14
    value = (value + (value << 4)) & _INT
    return value ^ value >> 10


def _walked(texts: list[str], hashes: dict[str, int], level: int) -> list[str]:
    """Walk a node of the trie: those that are alone in their place, then the nodes below."""
    if BITS * level >= HASH:  # one and the same hash
        return texts
    places: dict[int, list[str]] = {}
    for text in texts:
        places.setdefault(hashes[text] >> BITS * level & 31, []).append(text)
    in_order = [places[place] for place in sorted(places)]
    alone = [text for place in in_order if len(place) == 1 for text in place]
    below = [text for p in in_order if len(p) > 1 for text in _walked(p, hashes, level + 1)]
    return [*alone, *below]


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value
