"""Elections without a fault: a broker missed its heartbeats to the controller, or is shut down.

The partitions that it leads get other leaders, and writes that are under way fail, though the plan
did nothing to a broker. Two brokers bear such an election out by lines of their own: one unloads
the partition, the other one loads it, in a higher leader epoch. What the first one alone says, such
as that a write failed, bears nothing out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from reference_coordinator.replay import Outage, Stall
from reference_coordinator.replay.coordinator_epochs import LEARNS_MS
from reference_coordinator.replay.lateness import Lateness, lateness_of
from reports.judgement.coordinators.coordinator_epochs import CoordinatorEpochs, Load
from reports.judgement.lateness.broker_activity import clock
from reports.judgement.timelines.compare import LATE_MS

KNOWN_MS = LEARNS_MS + LATE_MS
"""How far the lines of the two brokers about one election may lie apart, and how long before its
line a broker may refuse writes: it tells its replicas of an election before its coordinator."""


@dataclass(frozen=True, slots=True)
class Election:
    """A broker lost a partition of `__consumer_offsets` to another one; times in ms.

    It unloaded the partition at `unloaded_ms`. Writes may have failed in the `outage`.
    """

    partition: int
    broker: str
    unloaded_ms: float
    outage: Outage

    @property
    def described(self) -> str:
        """What happened, in words."""
        return (
            f"broker {self.broker} lost its leadership of __consumer_offsets-{self.partition}"
            f" without a fault of the plan, at {clock(self.unloaded_ms)} UTC:"
            " a busy machine or a defect outside the coordinator"
        )


def unplanned_elections(
    epochs: CoordinatorEpochs,
    partition: int | None,
    outages: Sequence[Outage],
    stalls: Sequence[Stall] = (),
    until_ms: float = inf,
) -> list[Election]:
    """Return the elections of a partition that no fault explains, and two brokers bear out.

    `outages` are those of the plan's faults; from `until_ms` on brokers are shut down. What may
    hold brokers up, and so their lines apart, are `stalls`.
    """
    return [
        election
        for first_ms, last_ms, election in _elections(epochs, partition, stalls)
        if first_ms < until_ms
        and not any(one.from_ms <= last_ms and one.until_ms >= first_ms for one in outages)
    ]


def of_shutdown(
    epochs: CoordinatorEpochs, partition: int | None, stalls: Sequence[Stall], stopped_ms: float
) -> Iterator[Outage]:
    """Yield when writes may fail because brokers that the run shuts down give a partition up.

    `stopped_ms` is when it began to stop the load and the brokers. What a session that expires then
    makes a coordinator write may fail, and its successor does not load it.
    """
    for first_ms, _, election in _elections(epochs, partition, stalls):
        if first_ms >= stopped_ms:
            yield election.outage


def _elections(
    epochs: CoordinatorEpochs, partition: int | None, stalls: Sequence[Stall]
) -> Iterator[tuple[float, float, Election]]:
    """Yield each election with the times of the first and the last line that bear it out."""
    if partition is None:
        return
    loads = epochs.loads.get(partition, ())
    late = lateness_of({load.broker for load in loads}, (*stalls, *epochs.loading))
    for before, load in pairwise(sorted(loads, key=lambda one: (one.epoch or 0, one.at_ms))):
        lost_ms = _unloaded_ms(epochs, partition, before, load, late[before.broker])
        if lost_ms is None:
            continue
        first_ms, last_ms = min(lost_ms, load.scheduled_ms), max(lost_ms, load.at_ms)
        begun_ms = late[before.broker].earliest(first_ms, KNOWN_MS)
        outage = Outage(begun_ms, last_ms + KNOWN_MS)
        yield first_ms, last_ms, Election(partition, before.broker, lost_ms, outage)


def _unloaded_ms(
    epochs: CoordinatorEpochs, partition: int, before: Load, load: Load, late: Lateness
) -> float | None:
    """Return when the broker that had a partition unloaded it for the next one; None if never.

    Before 2.8 no line names the epoch: the order of times has to do.
    """
    named = (before.epoch, load.epoch) != (None, None)
    higher = (load.epoch or 0) > (before.epoch or 0)
    if before.broker == load.broker or (named and not higher):
        return None
    by_ms = late.latest(load.at_ms, KNOWN_MS + epochs.reconnects_ms)
    times = (
        event.at_ms
        for event in epochs.of_partitions.get(partition, ())
        if (event.broker, event.kind) == (before.broker, "unloaded")
        and before.at_ms <= event.at_ms <= by_ms
    )
    return max(times, default=None)
