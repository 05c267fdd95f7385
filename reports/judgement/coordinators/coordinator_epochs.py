"""Coordinator epochs: which broker coordinated a partition of `__consumer_offsets`, and when.

The brokers' own lines about loading and unloading tell it. Their number grows with brokers and
partitions, not with requests, so every Spark task gets all of them.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Any

from kafka_protocol.append_errors import append_error
from kafka_protocol.offsets_topic import partition_of
from reference_coordinator.replay import EpochEvent, Parting, Stall

Row = Mapping[str, Any]

EPOCH_EVENTS = {
    "loading": "loading",
    "loaded": "loaded",
    "load_failed": "unloaded",
    "unload_started": "unloaded",
}
"""What these lines say of a partition, as the kind of an epoch event."""
FAILED_WRITES = ("write_failed", "batch_too_large", "commit_failed", "metadata_failed")
"""Templates of lines about a record that could not be written: of a partition, or of a group."""
OF_LOADS = (*EPOCH_EVENTS, "load_scheduled", "load_ignored")
"""Templates of lines about a broker that loads or unloads a partition."""
LINES = (*OF_LOADS, "starting", "shutting_down", *FAILED_WRITES)
"""Templates of all lines that coordinator epochs are derived from."""


@dataclass(frozen=True, slots=True)
class Load:
    """A load that a broker finished."""

    broker: str
    at_ms: float
    epoch: int | None
    """The leader epoch, from 2.8 on."""
    line: int
    scheduled_ms: float
    """When the broker scheduled it; on Java, whose loads give way to unloads, as `at_ms`."""
    process: int = 0


@dataclass(slots=True)
class CoordinatorEpochs:
    """Which broker coordinated which partition of `__consumer_offsets`, and when.

    `partitions` is the number of partitions; None if no line names any.
    """

    partitions: int | None
    reconnects_ms: float = 0.0
    """How long a broker may wait before it asks its ZooKeeper again, where it has one."""
    of_brokers: list[EpochEvent] = field(default_factory=list)
    """When each broker started, took its first request, and ended: events of all its partitions."""
    of_partitions: dict[int, list[EpochEvent]] = field(default_factory=lambda: defaultdict(list))
    of_groups: dict[str, list[EpochEvent]] = field(default_factory=lambda: defaultdict(list))
    """When each broker could not write a record of a group (Scala)."""
    loads: dict[int, list[Load]] = field(default_factory=lambda: defaultdict(list))
    """In order of time."""
    loading: list[Stall] = field(default_factory=list)
    """When the one thread of a Scala broker that loads and unloads was at a load: what it has to
    unload waits for that (`GroupMetadataManager.scheduler`)."""
    partings: tuple[Parting, ...] = ()
    """When faults cut brokers off from the others."""

    @property
    def hindered(self) -> Sequence[Stall]:
        """When brokers could not give a partition up: at a load, or as they knew no better."""
        return [*self.loading, *(one.unaware for one in self.partings)]

    def partition_of(self, group: str) -> int | None:
        """Return the partition of a group, from the hash of its name as Kafka computes it.

        Brokers log a line for every partition, loaded or not, which gives the number of partitions.
        """
        return partition_of(group, self.partitions) if group and self.partitions else None

    def events_of(self, partition: int | None, group: str = "") -> list[EpochEvent]:
        """List when brokers loaded or unloaded a partition, started, took requests or ended.

        And when they could not write to the partition, or a record of the group.
        """
        if partition is None:
            return []
        of_group = self.of_groups.get(group, ())
        return [*self.of_partitions.get(partition, ()), *of_group, *self.of_brokers]

    def incarnation(self, partition: int | None, broker: str, at_ms: float) -> int:
        """Return the number of the load that a broker last finished before a time, or 0.

        Loads count by broker: a paused coordinator may go on for a while after it was replaced.
        """
        loads = () if partition is None else self.loads.get(partition, ())
        return last_finished(loads, broker, at_ms)


def last_finished(loads: Iterable[Load | EpochEvent], broker: str, at_ms: float) -> int:
    """Return the number of the load that a broker last finished before a time, or 0.

    The loads of all brokers are given, in order of time, and numbered so.
    """
    numbered = enumerate(loads, 1)
    return max((n for n, one in numbered if one.broker == broker and one.at_ms <= at_ms), default=0)


def coordinator_epochs(
    lines: Iterable[Row],
    processes: Iterable[Row],
    partitions: int | None,
    requests_enabled: Iterable[tuple[str, float]] = (),
    reconnects_ms: float = 0.0,
    before: Mapping[int, tuple[str, float]] = {},
    partings: tuple[Parting, ...] = (),
) -> CoordinatorEpochs:
    """Derive coordinator epochs from lines of the templates `LINES`.

    A broker process ends when it begins to shut down, or with its last line of any kind, whose time
    `processes` give (`last_ms`). `requests_enabled` says when brokers (ids) were seen to answer
    requests, in ms. `before` are all partitions that brokers had loaded before their logs begin,
    each with its broker, and when it was known. `partings` are those of faults.
    """
    found = CoordinatorEpochs(len(before) or partitions, reconnects_ms, partings=partings)
    for partition, (broker, at_ms) in before.items():
        found.of_partitions[partition].append(EpochEvent(at_ms, broker, "loaded"))
        found.loads[partition].append(Load(broker, at_ms, None, 0, at_ms))
    found.of_brokers += (EpochEvent(at, broker, "opened") for broker, at in requests_enabled)
    ends = {(row["broker"], row["process"]): row["last_ms"] for row in processes}
    loads = _Loads(found)
    for row in sorted(lines, key=itemgetter("broker", "line")):
        template, process = row["template"], (row["broker"], row["process"])
        if template == "starting":
            found.of_brokers.append(EpochEvent(row["at_ms"], row["broker"], "started"))
        elif template == "shutting_down":
            ends[process] = min(ends.get(process, row["at_ms"]), row["at_ms"])
        elif template in FAILED_WRITES:  # Java names the partition, Scala the group
            event = EpochEvent(row["at_ms"], row["broker"], append_error(row["message"]))
            if row["partition"] is not None:
                found.of_partitions[row["partition"]].append(event)
            else:
                found.of_groups[row["group"]].append(event)
        elif row["partition"] is not None:
            loads.add(row)
    for (broker, _), at_ms in sorted(ends.items()):
        if at_ms is not None:
            found.of_brokers.append(EpochEvent(at_ms, broker, "ended"))
    for of_partition in found.loads.values():
        of_partition.sort(key=attrgetter("at_ms", "broker"))
    return found


@dataclass(slots=True)
class _Loads:
    """Lines about loads come in, those of a broker in their order; epoch events and loads, out."""

    found: CoordinatorEpochs
    _begun: dict[tuple[str, int], EpochEvent | None] = field(default_factory=dict)
    """The `loading` of a broker and partition that was its last line."""
    _waiting: dict[tuple[str, int, int], deque[float]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    """When a process scheduled loads of a partition that it has not finished; of Java nothing is
    known (`Load`). A broker may schedule another before it has loaded."""
    _loading_ms: dict[tuple[str, int, int], float] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Take the next line of `OF_LOADS`."""
        template, broker, partition = row["template"], row["broker"], row["partition"]
        at_ms, process, events = row["at_ms"], row["process"], self.found.of_partitions[partition]
        begun, self._begun[broker, partition] = self._begun.get((broker, partition)), None
        if (kind := EPOCH_EVENTS.get(template)) is not None:
            epoch = row["epoch"] if kind == "loaded" else None
            events.append(EpochEvent(at_ms, broker, kind, epoch))
        place = broker, process, partition
        waiting, scheduled_ms = self._waiting[place], at_ms
        if template == "load_scheduled":
            waiting.append(at_ms)
        elif template == "load_ignored":
            if begun is not None:  # Java says that it loads before it checks whether it has to
                events.remove(begun)
            if waiting:
                waiting.pop()
        elif template == "loading":
            self._begun[broker, partition] = events[-1]
            if waiting:
                self._loading_ms[place] = at_ms
        elif template == "loaded":
            if waiting:
                scheduled_ms = waiting.popleft()
                from_ms = self._loading_ms.pop(place, at_ms)
                self.found.loading.append(Stall(broker, from_ms, at_ms, proven=False))
            load = Load(broker, at_ms, row["epoch"], row["line"], scheduled_ms, process)
            self.found.loads[partition].append(load)
