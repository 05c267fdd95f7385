"""Samples of the processes of a run: threads, open descriptors, resident memory."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from groupquake.background import Background

EVERY_S = 2.0
KINDS = ("threads", "descriptors", "memory MB")

OURS: Mapping[str, str] = {
    "chaos.tap": "tap",
    "locust": "Locust",
    "guard.py": "guard",
    "kafka.Kafka": "brokers",
    "groupquake": "runner",
}
"""The names of processes, by a word of their command lines, folders left out; the first that fits
counts. What comes and goes, such as a duplicate of a member, has none."""
LEFT_TO_OTHERS = ("brokers",)
"""Processes that are shown for information: they are Kafka's."""

Series = dict[tuple[str, str], list[tuple[float, float]]]
"""By process and kind: (UTC epoch seconds, value)."""


class Sampler(Background):
    """Samples a process and all that it started, in a thread, inside a `with` block.

    Processes of one name are added up. `series` may be read once the block has ended.
    """

    thread_name = "sampler"

    def __init__(self, pid: int, every_s: float = EVERY_S) -> None:
        self.series: Series = defaultdict(list)
        self._root = psutil.Process(pid)
        self._every_s = every_s

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            with suppress(psutil.Error):  # it has ended meanwhile
                self._sample(time.time())

    def _sample(self, now_s: float) -> None:
        sums: dict[tuple[str, str], float] = defaultdict(float)
        for process in (self._root, *self._root.children(recursive=True)):
            with suppress(psutil.Error), process.oneshot():
                name = name_of(process.cmdline())
                if name is None or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                seen = (process.num_threads(), process.num_fds(), process.memory_info().rss / 1e6)
                for kind, value in zip(KINDS, seen, strict=True):
                    sums[name, kind] += value
        for key, value in sums.items():
            self.series[key].append((now_s, value))


def name_of(command: Sequence[str]) -> str | None:
    """Return what a process is called, by the modules and classes of its command line."""
    words = {Path(word).name for word in command}
    return next((name for word, name in OURS.items() if word in words), None)


def within(series: Series, from_s: float, until_s: float) -> Series:
    """Keep the samples of a time."""
    return _kept(series, lambda at_s: from_s <= at_s < until_s)


def without(series: Series, spans: Sequence[tuple[float, float]]) -> Series:
    """Leave out the samples of some times."""
    return _kept(series, lambda at_s: not any(begun <= at_s < over for begun, over in spans))


def _kept(series: Series, keeps: Callable[[float], bool]) -> Series:
    return {key: [one for one in samples if keeps(one[0])] for key, samples in series.items()}
