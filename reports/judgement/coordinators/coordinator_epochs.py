"""Coordinator epochs: which broker coordinated a partition of `__consumer_offsets`, and when.

The brokers' own lines about loading and unloading tell it. Their number grows with brokers and
partitions, not with requests, so every Spark task gets all of them.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from kafka_protocol.append_errors import append_error
from kafka_protocol.offsets_topic import partition_of
from reference_coordinator.replay import EpochEvent, Parting, Stall
from reports.judgement.timelines.member_lines import row_of

Row = Mapping[str, Any]
Json = dict[str, Any]

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
    """A load that a broker finished; the loads of a partition are numbered in order of time."""

    broker: str
    at_ms: float
    incarnation: int
    epoch: int | None
    """The leader epoch, from 2.8 on."""
    line: int
    scheduled_ms: float
    """When the broker scheduled it; on Java, whose loads give way to unloads, as `at_ms`."""


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
    loading: list[Stall] = field(default_factory=list)
    """When the one thread of a Scala broker that loads and unloads was at a load: what it has to
    unload waits for that (`GroupMetadataManager.scheduler`)."""
    partings: tuple[Parting, ...] = ()
    """When faults cut brokers off from the others."""
    repeated_loads: dict[int, list[Json]] = field(default_factory=lambda: defaultdict(list))
    """Second loads in one leader epoch, as unexpected lines (see `member_lines`), without group."""

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
        loads = self.loads.get(partition, ()) if partition is not None else ()
        mine = (load for load in loads if load.broker == broker and load.at_ms <= at_ms)
        return max((load.incarnation for load in mine), default=0)


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
    rows = sorted(lines, key=lambda row: (row["broker"], row["line"]))
    found = CoordinatorEpochs(len(before) or partitions, reconnects_ms, partings=partings)
    for partition, (broker, at_ms) in before.items():
        found.of_partitions[partition].append(EpochEvent(at_ms, broker, "loaded"))
        found.loads[partition].append(Load(broker, at_ms, 1, None, 0, at_ms))
    found.of_brokers += (EpochEvent(at, broker, "opened") for broker, at in requests_enabled)
    ends = {(row["broker"], row["process"]): row["last_ms"] for row in processes}
    for row in rows:
        process = row["broker"], row["process"]
        if row["template"] == "starting":
            found.of_brokers.append(EpochEvent(row["at_ms"], row["broker"], "started"))
        elif row["template"] == "shutting_down":
            ends[process] = min(ends.get(process, row["at_ms"]), row["at_ms"])
    for (broker, _), at_ms in sorted(ends.items()):
        if at_ms is not None:
            found.of_brokers.append(EpochEvent(at_ms, broker, "ended"))
    _add_partition_events(found, rows)
    _add_failed_writes(found, rows)
    scheduled_ms = _add_loading(found, rows)
    _number_loads(found, [row for row in rows if row["template"] == "loaded"], scheduled_ms)
    return found


def _add_loading(found: CoordinatorEpochs, lines: Iterable[Row]) -> dict[tuple[str, int], float]:
    """Add when the thread of a Scala broker was at a load.

    Return when brokers scheduled loads, by broker and line of the `loaded` that followed. A broker
    may schedule another before it has loaded; of Java nothing is known (`Load`).
    """
    waiting: dict[tuple[str, int, int], deque[float]] = defaultdict(deque)
    begun: dict[tuple[str, int, int], float] = {}
    scheduled_ms = {}
    for row in lines:
        place, at_ms = (row["broker"], row["process"], row["partition"]), row["at_ms"]
        match row["template"]:
            case "load_scheduled":
                waiting[place].append(at_ms)
            case "load_ignored" if waiting[place]:
                waiting[place].pop()
            case "loading" if waiting[place]:
                begun[place] = at_ms
            case "loaded" if waiting[place]:
                scheduled_ms[row["broker"], row["line"]] = waiting[place].popleft()
                from_ms = begun.pop(place, at_ms)
                found.loading.append(Stall(row["broker"], from_ms, at_ms, proven=False))
    return scheduled_ms


def _add_partition_events(found: CoordinatorEpochs, lines: Iterable[Row]) -> None:
    """Add which broker loaded or unloaded a partition."""
    of_broker = itemgetter("broker", "partition")
    about = [r for r in lines if r["partition"] is not None and r["template"] in OF_LOADS]
    about.sort(key=lambda row: (*of_broker(row), row["line"]))
    for (broker, partition), rows in groupby(about, key=of_broker):
        mine = list(rows)
        for row, following in zip(mine, [*mine[1:], None], strict=True):
            # the Java coordinator logs that it is about to load before it checks whether it has to
            ignored = following is not None and following["template"] == "load_ignored"
            kind = EPOCH_EVENTS.get(row["template"])
            if kind is not None and not (row["template"] == "loading" and ignored):
                epoch = row["epoch"] if kind == "loaded" else None
                event = EpochEvent(row["at_ms"], broker, kind, epoch)
                found.of_partitions[partition].append(event)


def _add_failed_writes(found: CoordinatorEpochs, lines: Iterable[Row]) -> None:
    """Add which broker could not write, and why: Java names the partition, Scala the group."""
    for row in lines:
        if row["template"] in FAILED_WRITES:
            event = EpochEvent(row["at_ms"], row["broker"], append_error(row["message"]))
            if row["partition"] is not None:
                found.of_partitions[row["partition"]].append(event)
            else:
                found.of_groups[row["group"]].append(event)


def _number_loads(
    found: CoordinatorEpochs, loaded: list[Row], scheduled_ms: Mapping[tuple[str, int], float]
) -> None:
    """Number the loads of each partition over all brokers, and find second loads in one epoch.

    A leader epoch (KIP-101) belongs to one broker, which loads the partition once in it. Before 2.8
    no line names the epoch. A second load after a restart of that broker is not reported.
    """
    first: dict[tuple[int, int], tuple[Row, int]] = {}
    for row in sorted(loaded, key=itemgetter("at_ms", "broker")):
        partition, epoch = row["partition"], row["epoch"]
        loads = found.loads[partition]
        broker, at_ms, line = row["broker"], row["at_ms"], row["line"]
        scheduled = scheduled_ms.get((broker, line), at_ms)
        loads.append(Load(broker, at_ms, len(loads) + 1, epoch, line, scheduled))
        if epoch is None:
            continue
        before, count = first.get((partition, epoch), (row, 0))
        first[partition, epoch] = before, count + 1
        restarted = before["broker"] == row["broker"] and before["process"] != row["process"]
        if count and not restarted:
            about = "loaded", f"__consumer_offsets-{partition} in epoch {epoch}"
            place = row["broker"], row["line"], row["at_ms"]
            again = row_of(about, "unexpected_line", place, nth=count + 1)
            found.repeated_loads[partition].append(again)
