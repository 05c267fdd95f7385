"""Quantiles of what benchmarks measure; the nearest rank, so each is a measured value."""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import ceil


def quantile(counted: Mapping[float, int], share: float) -> float:
    """Return a quantile of values, each counted. Raises ValueError if there are none."""
    rank, seen = max(1, ceil(share * sum(counted.values()))), 0
    for value in sorted(counted):
        seen += counted[value]
        if seen >= rank:
            return value
    raise ValueError("no values")


def p50(values: Iterable[float]) -> float:
    """Return the median, as the lower of two."""
    return quantile(Counter(values), 0.5)


def p99(values: Iterable[float]) -> float:
    """Return the p99."""
    return quantile(Counter(values), 0.99)
