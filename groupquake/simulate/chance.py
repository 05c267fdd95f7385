"""What Kafka and the machine leave open: drawn, or always the least, or always the most."""

import random

Span = tuple[float, float]
"""From least to most."""


class Chance:
    """Gives numbers between two bounds.

    `share` 0 gives the least of each and 1 the most: the two extreme courses. None draws.
    """

    def __init__(self, seed: str, share: float | None = None) -> None:
        self._random = random.Random(seed)
        self._share = share

    def between(self, span: Span) -> float:
        """Return a number of a span."""
        share = self._random.random() if self._share is None else self._share
        return span[0] + (span[1] - span[0]) * share

    def below(self, count: int) -> int:
        """Return a whole number from 0 to before `count`; in extreme courses an end of them."""
        return min(int(self.between((0, count))), count - 1)
