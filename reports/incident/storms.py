"""Storms: times in which one group began many rebalances."""

from collections.abc import Sequence
from typing import NamedTuple

STORM_REBALANCES = 5
STORM_MS = 300_000.0
"""So many rebalances of a group that began within so many ms are a storm. Rolling out a new release
to a group of dynamic members is one; two restarts in five minutes (four rebalances) are not."""


class Storm(NamedTuple):
    """From the first to the last beginning, and how many rebalances began."""

    from_ms: float
    until_ms: float
    rebalances: int


def storms(began_ms: Sequence[float]) -> list[Storm]:
    """Return the storms among beginnings in their order; windows that overlap are one storm."""
    found: list[tuple[int, int]] = []
    for first in range(len(began_ms) - STORM_REBALANCES + 1):
        last = first + STORM_REBALANCES - 1
        if began_ms[last] - began_ms[first] > STORM_MS:
            continue
        if found and found[-1][1] >= first:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return [Storm(began_ms[a], began_ms[b], b - a + 1) for a, b in found]
