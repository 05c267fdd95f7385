"""One coordinator at a time: whether the loads of a partition follow from elections.

Leader epochs (KIP-101) only grow, and a broker loads a partition that it was elected for. The log
of the broker that it takes the partition from bears that out: it unloads the partition, or ends. A
broker learns of an election late (see `LEARNS_MS`), and may schedule a load in a lower epoch until
then. A Scala broker finishes a load that it has begun, and unloads the partition after that.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

from reference_coordinator.replay import Stall
from reference_coordinator.replay.coordinator_epochs import LEARNS_MS
from reference_coordinator.replay.lateness import Lateness, lateness_of
from reports.judgement.coordinators.coordinator_epochs import CoordinatorEpochs, Load
from reports.judgement.lateness.broker_activity import clock
from reports.judgement.timelines.compare import LATE_MS
from reports.judgement.timelines.member_lines import row_of

Json = dict[str, Any]


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
        in_order = sorted(loads, key=lambda load: (_epoch(load), load.at_ms))
        for before, load in pairwise(in_order):
            if not _is_borne_out(epochs, partition, before, load, late):
                broker = "it" if before.broker == load.broker else f"broker {before.broker}"
                yield f"{_loaded(partition, load)}, and nothing shows that {broker} gave it up"


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
    if before.broker == load.broker:
        if _started(epochs, load.broker, before.at_ms, load.at_ms):
            return True
        by_ms = load.at_ms
    else:
        by_ms = _known_ms(epochs, load, late[before.broker])
    events = (*epochs.of_partitions.get(partition, ()), *epochs.of_brokers)
    return any(
        event.broker == before.broker
        and event.kind in ("unloaded", "ended")
        and before.at_ms <= event.at_ms <= by_ms
        for event in events
    )


def _known_ms(epochs: CoordinatorEpochs, load: Load, late: Lateness) -> float:
    """Return until when another broker may not know of a load, given what may hold it up."""
    return late.latest(load.at_ms, LEARNS_MS + epochs.reconnects_ms + LATE_MS)


def _started(epochs: CoordinatorEpochs, broker: str, from_ms: float, until_ms: float) -> bool:
    """Tell whether a broker was started within a time."""
    return any(
        (event.broker, event.kind) == (broker, "started") and from_ms < event.at_ms < until_ms
        for event in epochs.of_brokers
    )


def _loaded(partition: int, load: Load) -> str:
    return f"broker {load.broker} loaded {_name(partition, load)} at {clock(load.at_ms)} UTC"


def _name(partition: int, load: Load) -> str:
    epoch = "" if load.epoch is None else f" in epoch {load.epoch}"
    return f"__consumer_offsets-{partition}{epoch}"
