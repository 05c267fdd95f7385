"""Coordinator epochs: which broker coordinated a partition of `__consumer_offsets`, and when.

The brokers' own lines about loading and unloading tell it. Their number grows with brokers and
partitions, not with requests, so every Spark task gets all of them.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import inf
from operator import attrgetter, itemgetter
from typing import Any, Self

from kafka_protocol.append_errors import append_error
from kafka_protocol.offsets_topic import partition_of
from reference_coordinator.classic.timeline import ExpectedRebalance
from reference_coordinator.replay import EpochEvent, ExpectedLine, Outage, Parting, Stall
from reports.judgement.rows import Row
from reports.judgement.timelines import member_lines
from reports.timing import METADATA_KNOWN_MS

EPOCH_EVENTS = {
    "loading": "loading",
    "loaded": "loaded",
    "load_failed": "unloaded",
    "unload_started": "unloaded",
}  # what these lines say of a partition, as the kind of an epoch event
GIVEN_UP = ("unloaded", "ended")
"""The events by which a broker coordinates a partition no more."""
FAILED_WRITES = ("write_failed", "batch_too_large", "commit_failed", "metadata_failed")
"""Templates of lines about a record that could not be written: of a partition, or of a group."""
OF_LOADS = (*EPOCH_EVENTS, "load_scheduled", "load_ignored")
"""Templates of lines about a broker that loads or unloads a partition."""
EPOCH_TEMPLATES = (*OF_LOADS, "starting", "shutting_down", *FAILED_WRITES)
"""Templates of all lines that coordinator epochs are derived from."""


@dataclass(frozen=True, slots=True)
class Load:
    """A load that a broker finished."""

    broker: str
    at_ms: float
    epoch: int | None  # the leader epoch, from 2.8 on
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
    partings: tuple[Parting, ...] = ()  # when faults cut brokers off from the others

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

    def coordinated(self, group: str) -> list[dict[str, Any]]:
        """List who coordinated a group, `since_ms` and `until_ms`, which is None if not known."""
        found, going_on = list[dict[str, Any]](), dict[str, dict[str, Any]]()
        for event in sorted(self.events_of(self.partition_of(group)), key=attrgetter("at_ms")):
            if event.kind == "loaded" and event.broker not in going_on:
                began = {"broker": event.broker, "since_ms": event.at_ms, "until_ms": None}
                going_on[event.broker] = began
                found.append(began)
            elif event.kind in GIVEN_UP and event.broker in going_on:
                going_on.pop(event.broker)["until_ms"] = event.at_ms
        return found

    def given_up_ms(self, partition: int, broker: str, *kinds: str) -> list[float]:
        """List when a broker gave a partition up, by events of these kinds."""
        events = self.events_of(partition)
        return [one.at_ms for one in events if one.broker == broker and one.kind in kinds]

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
    """Derive coordinator epochs from lines of the templates `EPOCH_TEMPLATES`.

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
    of_loads = []
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
            of_loads.append(row)
    place = itemgetter("partition", "broker", "process")
    for (partition, _, _), rows in groupby(sorted(of_loads, key=place), place):
        _add_loads(found, partition, rows)
    for (broker, _), at_ms in sorted(ends.items()):
        if at_ms is not None:
            found.of_brokers.append(EpochEvent(at_ms, broker, "ended"))
    for of_partition in found.loads.values():
        of_partition.sort(key=attrgetter("at_ms", "broker"))
    return found


def _add_loads(found: CoordinatorEpochs, partition: int, rows: Iterable[Row]) -> None:
    """Add what the lines `OF_LOADS` of one process tell of a partition; they come in their order.

    A broker may schedule another load before it has loaded; of Java's nothing is known (`Load`).
    """
    events, scheduled = found.of_partitions[partition], deque[float]()
    begun: EpochEvent | None = None
    from_ms: float | None = None
    for row in rows:
        template, broker, at_ms = row["template"], row["broker"], row["at_ms"]
        if (kind := EPOCH_EVENTS.get(template)) is not None:
            epoch = row["epoch"] if kind == "loaded" else None
            events.append(EpochEvent(at_ms, broker, kind, epoch))
        if template == "load_scheduled":
            scheduled.append(at_ms)
        elif template == "load_ignored":
            if begun is not None:  # Java says that it loads before it checks whether it has to
                events.remove(begun)
            if scheduled:
                scheduled.pop()
        elif template == "loading" and scheduled:
            from_ms = at_ms
        elif template == "loaded":
            scheduled_ms = scheduled.popleft() if scheduled else None
            if scheduled_ms is not None:
                since_ms = at_ms if from_ms is None else from_ms
                found.loading.append(Stall(broker, since_ms, at_ms, proven=False))
                from_ms = None
            due_ms = at_ms if scheduled_ms is None else scheduled_ms
            load = Load(broker, at_ms, row["epoch"], row["line"], due_ms, row["process"])
            found.loads[partition].append(load)
        begun = events[-1] if template == "loading" else None


@dataclass(frozen=True)
class Unsure:
    """What the coordinators of a partition may have left undone as they gave it up.

    A timer that may still expire after the end of its coordinator's epoch need not expire before:
    `ends` gives the number of the load, and when its epoch ended, in ms. In `short_epochs` a broker
    may have loaded nothing.
    """

    ends: Sequence[tuple[int, float]] = ()
    short_epochs: Sequence[Outage] = ()

    @classmethod
    def of(cls, epochs: CoordinatorEpochs, partition: int | None) -> Self:
        """Gather them from what the brokers of a partition logged; nothing without one."""
        if partition is None:
            return cls()
        ends = [
            (epochs.incarnation(partition, event.broker, event.at_ms), event.at_ms)
            for event in epochs.events_of(partition)
            if event.kind in GIVEN_UP
        ]
        return cls(ends, [*short_epochs(epochs, partition)])

    def without(self, expected: Iterable[ExpectedRebalance], compared: Iterable[Any]) -> list[Any]:
        """Leave out missing rebalances that the end of a coordinator epoch may have come before."""
        open_ = {
            (row.incarnation, row.old_generation, row.started_ms)
            for row in expected
            if self._may_end_before(row.incarnation, row.started_ms, row.latest_ms)
        }
        due = itemgetter("incarnation", "expected_old_generation", "expected_started_ms")
        return [row for row in compared if row["outcome"] != "missing" or due(row) not in open_]

    def may_be_missing(self, due: ExpectedLine) -> bool:
        """Tell whether a line that is due may not have been printed."""
        if due.line in member_lines.OF_LOADS:
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
    for load in epochs.loads.get(partition, ()):
        times = epochs.given_up_ms(partition, load.broker, *GIVEN_UP)
        end_ms = min((at_ms for at_ms in times if at_ms >= load.scheduled_ms), default=inf)
        if load.scheduled_ms < load.at_ms and end_ms <= load.at_ms + METADATA_KNOWN_MS:
            yield Outage(load.scheduled_ms, max(end_ms, load.at_ms))
