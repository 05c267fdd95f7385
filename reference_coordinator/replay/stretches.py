"""The evidence of a coordinator epoch in the likely order, cut into stretches.

A stretch ends wherever no window reaches across. Most stretches are one request that only restarts
a timer, and are taken many at a time (`fast_path`). So the evidence stands in columns, one place
for each request and epoch event, and `Candidate`s are made when a stretch is looked at by itself.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, compress
from operator import attrgetter, gt
from typing import Any

from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.evidence import EpochEvent, ObservedRequest
from reference_coordinator.replay.lateness import NEVER_LATE, Lateness
from reference_coordinator.timing import SETTLING_MS, Tolerance

Cause = ObservedRequest | EpochEvent | None
_AT_MS, _EARLIEST_MS = attrgetter("at_ms"), attrgetter("earliest_ms")


class Stretches(Sequence[list[Candidate]]):
    """The stretches as lists of candidates, and the columns that they are made of.

    `cuts` are the places where stretches begin, and `begins_ms` their earliest times.
    """

    __slots__ = ("at_ms", "begins_ms", "causes", "cuts", "earliest_ms", "latest_ms")

    def __init__(
        self,
        earliest_ms: list[float],
        at_ms: list[float],
        latest_ms: list[float],
        causes: list[Cause],
    ) -> None:
        """Cut what the columns hold, in the likely order."""
        self.earliest_ms, self.at_ms, self.latest_ms = earliest_ms, at_ms, latest_ms
        self.causes = causes
        self.cuts: list[int] = []
        self.begins_ms: list[float] = []
        self._cut(0)

    @classmethod
    def none(cls) -> "Stretches":
        """Return those of no evidence."""
        return cls([], [], [], [])

    @classmethod
    def of(
        cls,
        requests: Sequence[ObservedRequest],
        epoch_events: Sequence[EpochEvent],
        tolerance: Tolerance,
        lateness: Lateness = NEVER_LATE,
        end: Candidate | None = None,
    ) -> "Stretches":
        """Cut evidence, the requests in order of their likely instants; `end` comes last.

        A request without response likely acted when it was sent; see `backtracking` for when else.
        """
        early = tolerance.early
        columns: list[list[Any]] = [
            list(map(_EARLIEST_MS, requests)),
            list(map(_AT_MS, requests)),
            [seen.latest_ms if seen.response else seen.at_ms + early for seen in requests],
            list(requests),
        ]
        for candidate in sorted(_of_events(epoch_events, tolerance, lateness), key=_AT_MS):
            place = bisect_right(columns[1], candidate.at_ms)
            for column, value in zip(columns, candidate, strict=False):
                column.insert(place, value)
        if end is not None:
            for column, value in zip(columns, end, strict=False):
                column.append(value)
        return cls(*columns)

    def _cut(self, first: int) -> None:
        """Cut what comes from a place on wherever no window reaches across."""
        if first == len(self.causes):
            return
        starts = list(accumulate(reversed(self.earliest_ms[first:]), min))[::-1]
        reaches = accumulate(self.latest_ms[first:], max)
        cuts = [True, *map(gt, starts[1:], reaches)]
        self.cuts += compress(range(first, len(self.causes)), cuts)
        self.begins_ms += compress(starts, cuts)

    def __len__(self) -> int:
        return len(self.cuts)

    def __getitem__(self, index: int) -> list[Candidate]:  # type: ignore[override]
        """Return the candidates of a stretch, made anew."""
        return list(map(self.candidate, range(self.cuts[index], self.end(index))))

    def candidate(self, place: int) -> Candidate:
        """Return the candidate at a place."""
        return Candidate(
            self.earliest_ms[place], self.at_ms[place], self.latest_ms[place], self.causes[place]
        )

    def end(self, index: int) -> int:
        """Return the place after a stretch."""
        return self.cuts[index + 1] if index + 1 < len(self.cuts) else len(self.causes)

    def next_ms(self, index: int) -> float | None:
        """Return when the stretch after one begins; None after the last."""
        return self.begins_ms[index + 1] if index + 1 < len(self.cuts) else None

    def followed_before(self, limit_ms: float) -> int:
        """Return how many stretches, from the first on, are followed by one before a time."""
        return bisect_left(self.begins_ms, limit_ms) - 1

    def causes_from(self, index: int) -> Iterator[tuple[float, Cause]]:
        """Yield what comes from a stretch on, each with its likely instant."""
        first = self.cuts[index] if index < len(self.cuts) else len(self.causes)
        return zip(self.at_ms[first:], self.causes[first:], strict=True)

    def skip(self, index: int, until_ms: float) -> None:
        """Take out what likely came before a time, from a stretch on; cut the rest again."""
        first = self.cuts[index] if index < len(self.cuts) else len(self.causes)
        later = [at_ms >= until_ms for at_ms in self.at_ms[first:]]
        columns: list[list[Any]] = [self.earliest_ms, self.at_ms, self.latest_ms, self.causes]
        for column in columns:
            column[first:] = compress(column[first:], later)
        del self.cuts[index:], self.begins_ms[index:]
        self._cut(first)


def _of_events(
    epoch_events: Sequence[EpochEvent], tolerance: Tolerance, lateness: Lateness
) -> Iterator[Candidate]:
    """Turn epoch events into candidates.

    A broker takes a group up, and gives it up, a little before or after it says so: it answers as
    one that loads somewhere between "scheduled" and "finished".
    """
    ends = [s.at_ms for s in epoch_events if s.kind == "loaded"]
    for epoch_event in epoch_events:
        if epoch_event.earliest_ms is not None and epoch_event.latest_ms is not None:
            window = epoch_event.earliest_ms - tolerance.early, epoch_event.at_ms
            yield Candidate(*window, epoch_event.latest_ms, epoch_event)
            continue
        at_ms, earliest, latest = (
            epoch_event.at_ms,
            epoch_event.at_ms,
            epoch_event.at_ms + tolerance.early,
        )
        if epoch_event.kind == "loading":
            latest = min((end for end in ends if end >= at_ms), default=at_ms) + tolerance.early
        elif epoch_event.kind == "loaded":
            begins = (s.at_ms for s in epoch_events if s.kind == "loading" and s.at_ms <= at_ms)
            earliest, latest = max(begins, default=at_ms), lateness.latest(at_ms, SETTLING_MS)
        elif epoch_event.kind == "unloaded":
            latest = lateness.latest(at_ms, tolerance.timer)
        yield Candidate(earliest - tolerance.early, at_ms, latest, epoch_event)
