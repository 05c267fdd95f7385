"""One coordinator at a time: whether loads follow from elections, and elections from faults.

Leader epochs (KIP-101) only grow, and a broker loads a partition that it was elected for. The log
of the broker that it takes the partition from bears that out: it unloads the partition, or ends. A
broker learns of an election late (see `LEARNS_MS`), and may schedule a load in a lower epoch until
then. A Scala broker finishes a load that it has begun, and unloads the partition after that.

Without a fault, a broker that missed its heartbeats to the controller loses the partitions that it
leads, and writes that are under way fail. Two brokers bear such an election out by lines of their
own: one unloads the partition, the other one loads it, in a higher leader epoch. What the first one
alone says, such as that a write failed, bears nothing out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from math import inf

from reference_coordinator.replay import Outage, Stall
from reference_coordinator.replay.lateness import Lateness, lateness_of
from reports.judgement.coordinators.coordinator_epochs import GIVEN_UP, CoordinatorEpochs, Load
from reports.judgement.rows import Json
from reports.judgement.run.disturbance import Disturbance, Source, clock
from reports.judgement.timelines.member_lines import row_of
from reports.timing import METADATA_KNOWN_MS


def unexpected_loads(
    epochs: CoordinatorEpochs, partition: int, stalls: Sequence[Stall]
) -> Iterator[Json]:
    """Yield second loads in one epoch, and loads in one that was over, as `member_lines`.

    A second load after a restart of its broker is no finding. Before 2.8 no line names the epoch.
    """
    first: dict[int, Load] = {}
    counts = Counter[int]()
    for load in epochs.loads.get(partition, ()):
        if load.epoch is not None:
            before = first.setdefault(load.epoch, load)
            counts[load.epoch] += 1
            restarted = before.broker == load.broker and before.process != load.process
            if before is not load and not restarted:
                yield _unexpected(_name(partition, load), load, counts[load.epoch])
    for load, higher in _behind(epochs, partition, stalls):
        if not _started(epochs, load.broker, higher.at_ms, load.at_ms):
            yield _unexpected(f"{_name(partition, load)} after epoch {higher.epoch}", load)


def _unexpected(subject: str, load: Load, nth: int = 1) -> Json:
    place = {"broker": load.broker, "line": load.line, "at_ms": load.at_ms}
    return row_of(("loaded", subject), "unexpected_line", place, nth=nth)


def doubts(epochs: CoordinatorEpochs, stalls: Sequence[Stall]) -> Iterator[str]:
    """Say which loads no log bears out.

    A broker that starts may know old metadata, and load in an epoch that is over.
    """
    brokers = {load.broker for load in chain.from_iterable(epochs.loads.values())}
    late = lateness_of(brokers, (*stalls, *epochs.hindered))
    for partition, loads in sorted(epochs.loads.items()):
        for load, higher in _behind(epochs, partition, stalls):
            if _started(epochs, load.broker, higher.at_ms, load.at_ms):
                yield f"{_loaded(partition, load)}, and epoch {higher.epoch} had begun"
        for before, load in _successions(loads):
            if not _is_borne_out(epochs, partition, before, load, late):
                broker = "it" if before.broker == load.broker else f"broker {before.broker}"
                yield f"{_loaded(partition, load)}, and nothing shows that {broker} gave it up"


def unplanned_elections(
    epochs: CoordinatorEpochs,
    partition: int | None,
    outages: Sequence[Outage],
    stalls: Sequence[Stall] = (),
    until_ms: float = inf,
) -> Iterator[Disturbance]:
    """Yield the elections of a partition that no fault explains, and two brokers bear out.

    `outages` are those of the plan's faults; from `until_ms` on brokers are shut down. What may
    hold brokers up, and so their lines apart, are `stalls`.
    """
    for first_ms, last_ms, election in _elections(epochs, partition, stalls):
        if first_ms < until_ms and not any(
            one.from_ms <= last_ms and one.until_ms >= first_ms for one in outages
        ):
            yield election


def of_shutdown(
    epochs: CoordinatorEpochs, partition: int | None, stalls: Sequence[Stall], stopped_ms: float
) -> Iterator[Outage]:
    """Yield when writes may fail because brokers that the run shuts down give a partition up.

    `stopped_ms` is when it began to stop the load and the brokers. What a session that expires then
    makes a coordinator write may fail, and its successor does not load it.
    """
    for first_ms, _, election in _elections(epochs, partition, stalls):
        if first_ms >= stopped_ms:
            yield Outage(election.from_ms, election.until_ms)


def _elections(
    epochs: CoordinatorEpochs, partition: int | None, stalls: Sequence[Stall]
) -> Iterator[tuple[float, float, Disturbance]]:
    """Yield each election with the times of the first and the last line that bear it out.

    Before 2.8 no line names the epoch: the order of times has to do.
    """
    if partition is None:
        return
    loads = epochs.loads.get(partition, ())
    late = lateness_of({load.broker for load in loads}, (*stalls, *epochs.loading))
    for before, load in _successions(loads):
        named = (before.epoch, load.epoch) != (None, None)
        if before.broker == load.broker or (named and _epoch(load) <= _epoch(before)):
            continue
        by_ms = late[before.broker].latest(load.at_ms, METADATA_KNOWN_MS + epochs.reconnects_ms)
        unloads = epochs.given_up_ms(partition, before.broker, "unloaded")
        lost_ms = max((ms for ms in unloads if before.at_ms <= ms <= by_ms), default=None)
        if lost_ms is None:
            continue
        first_ms, last_ms = min(lost_ms, load.scheduled_ms), max(lost_ms, load.at_ms)
        from_ms = late[before.broker].earliest(first_ms, METADATA_KNOWN_MS)
        cause = (
            f"broker {before.broker} lost its leadership of __consumer_offsets-{partition}"
            f" without a fault of the plan, at {clock(lost_ms)} UTC:"
            " a busy machine or a defect outside the coordinator"
        )
        until_ms = last_ms + METADATA_KNOWN_MS
        election = Disturbance(before.broker, from_ms, until_ms, cause, Source.ELECTION)
        yield first_ms, last_ms, election


def _successions(loads: Iterable[Load]) -> Iterator[tuple[Load, Load]]:
    """Yield each two loads of which one follows the other, in the order of leader epochs."""
    return pairwise(sorted(loads, key=lambda load: (_epoch(load), load.at_ms)))


def _behind(
    epochs: CoordinatorEpochs, partition: int, stalls: Sequence[Stall]
) -> Iterator[tuple[Load, Load]]:
    """Yield each load in an epoch that its broker must have known to be over, and the later one."""
    loads = [load for load in epochs.loads.get(partition, ()) if load.epoch is not None]
    unaware = (one.unaware for one in epochs.partings)
    late = lateness_of({load.broker for load in loads}, (*stalls, *unaware))
    for place, load in enumerate(loads):
        known = (
            other
            for other in loads[:place]
            if other.broker == load.broker
            or load.scheduled_ms > _known_ms(epochs, other, late[load.broker])
        )
        latest = max(known, key=_epoch, default=load)
        if _epoch(latest) > _epoch(load):
            yield load, latest


def _epoch(load: Load) -> int:
    return load.epoch or 0


def _is_borne_out(
    epochs: CoordinatorEpochs,
    partition: int,
    before: Load,
    load: Load,
    late: Mapping[str, Lateness],
) -> bool:
    """Tell whether the broker that had a partition gave it up, or ended, before the next load."""
    by_ms = load.at_ms
    if before.broker != load.broker:
        by_ms = _known_ms(epochs, load, late[before.broker])
    elif _started(epochs, load.broker, before.at_ms, load.at_ms):
        return True
    times = epochs.given_up_ms(partition, before.broker, *GIVEN_UP)
    return any(before.at_ms <= at_ms <= by_ms for at_ms in times)


def _known_ms(epochs: CoordinatorEpochs, load: Load, late: Lateness) -> float:
    """Return until when another broker may not know of a load, given what may hold it up."""
    return late.latest(load.at_ms, METADATA_KNOWN_MS + epochs.reconnects_ms)


def _started(epochs: CoordinatorEpochs, broker: str, from_ms: float, until_ms: float) -> bool:
    return any(
        (event.broker, event.kind) == (broker, "started") and from_ms < event.at_ms < until_ms
        for event in epochs.of_brokers
    )


def _loaded(partition: int, load: Load) -> str:
    return f"broker {load.broker} loaded {_name(partition, load)} at {clock(load.at_ms)} UTC"


def _name(partition: int, load: Load) -> str:
    epoch = "" if load.epoch is None else f" in epoch {load.epoch}"
    return f"__consumer_offsets-{partition}{epoch}"
