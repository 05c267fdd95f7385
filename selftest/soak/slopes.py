"""Whether what was sampled of a process stays flat: its slope by least squares, with error bars.

Samples that follow each other are alike: memory rises in steps, a fault lasts for seconds. So the
line goes through the means of blocks of the time, which are nearly independent; else the error bars
would be too short, and noise would count as a leak.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist, fmean

import numpy as np

BLOCKS = 20
HOUR_S = 3_600.0
_FEWEST = 6
_TWO_SIDED_95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Slope:
    """A line through samples: `per_hour` and half the width of its 95 % interval.

    `first` and `last` are the means of the first and the last block.
    """

    first: float
    last: float
    per_hour: float
    error: float

    def is_flat(self, bound_per_hour: float) -> bool:
        """Tell whether the 95 % interval includes less than a bound: no leak is proven."""
        return self.per_hour - self.error < bound_per_hour


def slope_of(samples: Sequence[tuple[float, float]]) -> Slope | None:
    """Return the slope of (time in s, value); None if they are too few for error bars."""
    blocks = [part for part in np.array_split(np.array(samples, dtype=float), BLOCKS) if len(part)]
    if len(blocks) < _FEWEST:
        return None
    hours, values = np.array([part.mean(axis=0) for part in blocks]).T
    hours = (hours - hours[0]) / HOUR_S
    (per_hour, _), covariance = np.polyfit(hours, values, 1, cov=True)
    error = _quantile(len(blocks) - 2) * sqrt(covariance[0, 0])
    return Slope(fmean(values[:1]), fmean(values[-1:]), float(per_hour), error)


def _quantile(freedom: int) -> float:
    """Return the two-sided 95 % quantile of Student's t, by its expansion about the normal one.

    Source: Abramowitz and Stegun 26.7.5, the first two terms; right to 2 % from 4 degrees on.
    """
    z = _TWO_SIDED_95
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
