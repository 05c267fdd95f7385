"""What may not happen any more as a coordinator gives a partition up."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Self

from reference_coordinator.classic.timeline import ExpectedRebalance
from reference_coordinator.replay import ExpectedLine, Outage
from reference_coordinator.replay.coordinator_epochs import LEARNS_MS
from reports.judgement.coordinators.coordinator_epochs import CoordinatorEpochs
from reports.judgement.timelines.compare import LATE_MS
from reports.judgement.timelines.member_lines import OF_LOADS

Json = dict[str, Any]
GIVEN_UP = ("unloaded", "ended")


@dataclass(frozen=True)
class Unsure:
    """What the coordinators of a partition may have left undone.

    A timer that may still expire after the end of its coordinator's epoch need not expire before:
    `ends` gives the number of the load, and when its epoch ended, in ms. In `short_epochs` a broker
    may have loaded nothing.
    """

    ends: Sequence[tuple[int, float]]
    short_epochs: Sequence[Outage]

    @classmethod
    def of(cls, epochs: CoordinatorEpochs, partition: int | None) -> Self:
        """Gather them from what the brokers of a partition logged; nothing without one."""
        if partition is None:
            return cls((), ())
        ends = [
            (epochs.incarnation(partition, event.broker, event.at_ms), event.at_ms)
            for event in epochs.events_of(partition)
            if event.kind in GIVEN_UP
        ]
        return cls(ends, [*short_epochs(epochs, partition)])

    def without(
        self, expected: Iterable[ExpectedRebalance], compared: Iterable[Json]
    ) -> Iterator[Json]:
        """Leave out missing rebalances that the end of a coordinator epoch may have come before."""
        open_ = {
            (row.incarnation, row.old_generation, row.started_ms)
            for row in expected
            if self._may_end_before(row.incarnation, row.started_ms, row.latest_ms)
        }
        for row in compared:
            due = (row["incarnation"], row["expected_old_generation"], row["expected_started_ms"])
            if row["outcome"] != "missing" or due not in open_:
                yield row

    def may_be_missing(self, due: ExpectedLine) -> bool:
        """Tell whether a line that is due may not have been printed."""
        if due.line in OF_LOADS:
            return any(one.has(due.at_ms) for one in self.short_epochs)
        return self._may_end_before(due.incarnation, due.at_ms, due.latest_ms)

    def _may_end_before(self, incarnation: int, at_ms: float, latest_ms: float) -> bool:
        mine = (end_ms for number, end_ms in self.ends if number == incarnation > 0)
        return any(at_ms <= end_ms <= latest_ms for end_ms in mine)


def short_epochs(epochs: CoordinatorEpochs, partition: int) -> Iterator[Outage]:
    """Yield when a Scala broker loaded a partition that it had to give up at once.

    A load that begins when its broker leads the partition no more loads nothing, and prints that it
    is finished (`GroupMetadataManager.doLoadGroupsAndOffsets`: no log end offset). Seen on 3.9.1,
    whose three brokers were shut down within 2 s: resigned 43 ms after such a load, and went while
    another one waited for 300 ms.
    """
    events = epochs.events_of(partition)
    ends = [(event.broker, event.at_ms) for event in events if event.kind in GIVEN_UP]
    for load in epochs.loads.get(partition, ()):
        until_ms = load.at_ms + LEARNS_MS + LATE_MS
        given_up = [at for broker, at in ends if broker == load.broker and at >= load.scheduled_ms]
        if load.scheduled_ms < load.at_ms and (at_ms := min(given_up, default=inf)) <= until_ms:
            yield Outage(load.scheduled_ms, max(at_ms, load.at_ms))
