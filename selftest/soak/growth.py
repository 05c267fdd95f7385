"""Samples of the processes of a run, and whether what they use stays flat.

Samples that follow each other are alike: memory rises in steps, a fault lasts for seconds. So a
line is laid through the means of blocks of the time, which are nearly independent; else its error
bars would be too short, and noise would count as a leak.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Any

import numpy as np
import pandas as pd
import psutil

from groupquake.background import Background
from selftest.timing import HOUR_S, SAMPLED_EVERY_S

BOUNDS: Mapping[str, float] = {"threads": 5.0, "descriptors": 20.0, "memory MB": 50.0}
"""What a process may gain in an hour and be flat. One that keeps a thread or a socket at each fault
gains 60 an hour, and one that keeps two megabytes 120."""
ONCE: Mapping[str, float] = {"threads": 0.0, "descriptors": 0.0, "memory MB": 20.0}
"""What it may gain once, however short the time: the first fault of a kind loads modules and fills
caches. In 30 minutes memory may so gain 90 MB an hour in all."""
OURS: Mapping[str, str] = {"chaos.tap": "tap", "locust": "Locust", "groupquake": "runner"}
"""The names of processes, by a word of their command lines, folders left out; the first that fits
counts. Others have none: brokers, or what comes and goes, such as a duplicate of a member."""
BLOCKS = 20
_FEWEST = 6
_TWO_SIDED_95 = NormalDist().inv_cdf(0.975)


class Sampler(Background):
    """Samples a process and all that it started, in a thread, inside a `with` block.

    Processes of one name are added up. `rows` are (UTC epoch seconds, process, kind, value).
    Open connections of clients to brokers, directly or by the tap, are no descriptors here: how
    many a client keeps depends on who leads its partitions. 40 librdkafka clients of three brokers
    had 165 at first, and 130 to 160 after each of twelve pauses. A client that is left over has
    threads or other descriptors too.
    """

    thread_name = "sampler"

    def __init__(self, pid: int, every_s: float = SAMPLED_EVERY_S) -> None:
        self.rows: list[tuple[float, str, str, float]] = []
        self._root = psutil.Process(pid)
        self._every_s = every_s

    @property
    def samples(self) -> pd.DataFrame:
        """All samples."""
        return pd.DataFrame(self.rows, columns=["at_s", "process", "of", "value"])

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            with suppress(psutil.Error):  # it has ended meanwhile
                self._sample(time.time())

    def _sample(self, now_s: float) -> None:
        sums: dict[tuple[str, str], float] = defaultdict(float)
        named: list[tuple[str, psutil.Process]] = []
        served: set[int] = set()
        for process in (self._root, *self._root.children(recursive=True)):
            with suppress(psutil.Error):
                name = name_of(process.cmdline())
                if name is not None and process.status() != psutil.STATUS_ZOMBIE:
                    named.append((name, process))
                if name in (None, "tap"):
                    sockets = process.net_connections("tcp")
                    served |= {s.laddr.port for s in sockets if s.status == psutil.CONN_LISTEN}
        for name, process in named:
            with suppress(psutil.Error), process.oneshot():
                descriptors = process.num_fds()  # before: what comes meanwhile is no growth
                others = descriptors - _of_clients(name, process.net_connections("tcp"), served)
                seen = (process.num_threads(), others, process.memory_info().rss / 1e6)
                for kind, value in zip(BOUNDS, seen, strict=True):
                    sums[name, kind] += value
        self.rows += [(now_s, *key, value) for key, value in sums.items()]


def _of_clients(name: str, sockets: Sequence[Any], served: Collection[int]) -> int:
    """Return how many sockets of a process are open connections of clients; ports are `served`.

    For each that a client has to the tap, the tap has one to a broker.
    """
    is_open = [s for s in sockets if s.status == psutil.CONN_ESTABLISHED]
    if name == "tap":
        return 2 * sum(s.laddr.port in served for s in is_open)
    return sum(s.raddr.port in served for s in is_open) if name == "Locust" else 0


def name_of(command: Sequence[str]) -> str | None:
    """Return what a process is called, by the modules and classes of its command line."""
    words = {Path(word).name for word in command}
    return next((name for word, name in OURS.items() if word in words), None)


def without(samples: pd.DataFrame, spans: Sequence[tuple[float, float]]) -> pd.DataFrame:
    """Leave out the samples of some times."""
    for begun_s, over_s in spans:
        samples = samples[~samples["at_s"].between(begun_s, over_s, inclusive="left")]
    return samples


def allowed(kind: str, lasts_s: float) -> float:
    """Return what a process may gain in an hour, by samples of so long a time."""
    return BOUNDS[kind] + ONCE[kind] * HOUR_S / lasts_s


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
