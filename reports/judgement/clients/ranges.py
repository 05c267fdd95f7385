"""Sets of offsets, as ranges with both ends in them."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

Range = tuple[int, int]


@dataclass(slots=True)
class Ranges:
    """Offsets of a partition: ranges in order, of which no two touch."""

    _firsts: list[int] = field(default_factory=list)
    _lasts: list[int] = field(default_factory=list)

    @property
    def ends(self) -> Range | None:
        """The lowest and the highest offset; None without any."""
        return (self._firsts[0], self._lasts[-1]) if self._firsts else None

    def add(self, first: int, last: int) -> None:
        """Add a range."""
        low, high = bisect_left(self._lasts, first - 1), bisect_right(self._firsts, last + 1)
        if low < high:
            first, last = min(first, self._firsts[low]), max(last, self._lasts[high - 1])
        self._firsts[low:high], self._lasts[low:high] = [first], [last]

    def within(self, first: int, last: int) -> Iterator[Range]:
        """Yield what of a range is in the set."""
        low, high = bisect_left(self._lasts, first), bisect_right(self._firsts, last)
        for at in range(low, high):
            yield max(first, self._firsts[at]), min(last, self._lasts[at])

    def missing(self, first: int, last: int) -> Iterator[Range]:
        """Yield what of a range is not in the set."""
        for known_first, known_last in self.within(first, last):
            if first < known_first:
                yield first, known_first - 1
            first = known_last + 1
        if first <= last:
            yield first, last
