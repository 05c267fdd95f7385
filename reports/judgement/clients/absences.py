"""Faults on members against brokers: a client that the journal has down sends nothing."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from operator import attrgetter
from typing import Any

from reference_coordinator.replay import ObservedRequest, Stall
from reference_coordinator.replay.lateness import NEVER_LATE, Lateness
from reports.judgement.breaches import Breach, breach
from reports.judgement.run.disturbance import Absence
from reports.timing import DOWN_MS, TAKEN_UP_MS

Json = dict[str, Any]

_FROM_MS = attrgetter("from_ms")


@dataclass(slots=True)
class Absent:
    """The absences of one group's clients, and those that requests contradict.

    `stalls` are the times in which brokers stood still.
    """

    absences: Sequence[Absence] = ()
    stalls: Sequence[Stall] = ()
    _left: dict[str, list[Absence]] = field(default_factory=lambda: defaultdict(list))
    _lateness: dict[str, Lateness] = field(default_factory=dict)
    _turns: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By connection: when the first arrived of the requests that waited for their turn, one after
    another, and when the last was answered."""

    def __post_init__(self) -> None:
        for one in sorted(self.absences, key=_FROM_MS):
            self._left[one.client].append(one)
        for broker in {stall.broker for stall in self.stalls}:
            held_up = [stall for stall in self.stalls if stall.broker == broker]
            self._lateness[broker] = Lateness.of(held_up)

    def add(self, requests: Iterable[tuple[ObservedRequest, float]]) -> Iterator[Json]:
        """Take requests, with their arrival in ms; yield rows of `BREACHES`, without the group.

        Of the requests in one absence the first counts.
        """
        for seen, arrived_ms in requests:
            if seen.client_id not in self._left:
                continue
            lateness = self._lateness.get(seen.broker, NEVER_LATE)
            waited_ms = self._waited_since(seen, arrived_ms, lateness)
            left = self._left[seen.client_id]
            begun = bisect_left(left, seen.earliest_ms, key=_FROM_MS)
            for place in reversed(range(begun)):
                one = left[place]
                if arrived_ms >= one.until_ms:
                    break  # and so did those before
                last_ms = lateness.latest(one.from_ms + one.held_ms, DOWN_MS)
                if last_ms < min(waited_ms, seen.earliest_ms):
                    del left[place]
                    yield breach(
                        Breach.SENT_WHILE_DOWN,
                        arrived_ms,
                        f"no request of {one.client}: {one.what}",
                        f"{seen.api} of {one.client}",
                        shown_by=seen,
                        from_ms=one.from_ms,
                    )

    def _waited_since(self, seen: ObservedRequest, arrived_ms: float, lateness: Lateness) -> float:
        """Return since when a request may have waited for its turn."""
        first_ms, answered_ms = self._turns.get(seen.connection, (arrived_ms, -inf))
        if arrived_ms > lateness.latest(answered_ms, TAKEN_UP_MS):
            first_ms = arrived_ms
        self._turns[seen.connection] = first_ms, seen.answered_ms
        return first_ms
