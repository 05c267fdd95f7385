"""The brokers of a synthesized run: who coordinates a partition when, and lines about no group.

Times are ms since the first broker started.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from kafka_protocol.coordinator_lines import Grammar
from kafka_protocol.log_line import Event
from selftest.timing import BACK_MS, BROKER_SESSION_MS, ELECTED_MS, LOADING_MS

BROKERS = ("1", "2", "3")
PARTITIONS = 6
"""Of the offsets topic, as `chaos.clusters` sets it up."""
SHUTDOWN = {"shutting_down": 0.0, "runtime_closing": 0.1, "events_closing": 1.0,
            "events_closed": 2.1, "runtime_closed": 3.0, "shut_down": 3.6}  # fmt: skip
"""The lines of a broker that shuts down, and when it writes them, in ms."""


class Tenure(NamedTuple):
    """The time in which a broker coordinates a partition; `epoch` counts its leaders."""

    broker: str
    epoch: int
    loading_ms: float
    loaded_ms: float
    ended_ms: float


class Printed(NamedTuple):
    """A line of a broker's process (1 is its first) about no group."""

    broker: str
    process: int
    at_ms: float
    event: Event


@dataclass(frozen=True)
class Cluster:
    """Three brokers, all stopped at `end_ms`; the third is killed at `kill_ms`, unless never."""

    grammar: Grammar
    groups: int
    end_ms: float
    kill_ms: float | None = None

    @property
    def killed(self) -> str:
        """The broker that is killed, if one is."""
        return BROKERS[-1]

    @cached_property
    def tenures(self) -> tuple[tuple[Tenure, ...], ...]:
        """The tenures of each partition, in order."""
        return tuple(tuple(self._tenures(partition)) for partition in range(PARTITIONS))

    def _tenures(self, partition: int) -> Iterator[Tenure]:
        first = BROKERS[partition % len(BROKERS)]
        falls = self.kill_ms is not None and first == self.killed
        ended_ms = self.kill_ms if falls and self.kill_ms is not None else self.end_ms
        loading_ms = ELECTED_MS + 3 * partition
        yield Tenure(first, 0, loading_ms, loading_ms + LOADING_MS, ended_ms)
        if falls:
            # an election within the outage, and the time to load every group
            loading_ms = ended_ms + BROKER_SESSION_MS + 5 * partition
            loaded_ms = loading_ms + LOADING_MS + 0.2 * self.groups / PARTITIONS
            survivor = BROKERS[partition // len(BROKERS) % 2]
            yield Tenure(survivor, 1, loading_ms, loaded_ms, self.end_ms)

    def lines(self) -> Iterator[Printed]:
        """Yield all lines about no group, in no order."""
        for place, broker in enumerate(BROKERS):
            yield from self._start(broker, 1, 35.0 * place)
            yield from self._stop(broker, 1 if broker != self.killed or not self.kill_ms else 2)
        for partition, tenures in enumerate(self.tenures):
            for tenure in tenures:
                yield from self._elected(partition, tenure)
        if self.kill_ms is not None:
            yield from self._start(self.killed, 2, self.kill_ms + BACK_MS)

    def _start(self, broker: str, process: int, at_ms: float) -> Iterator[Printed]:
        for step, name in enumerate(("starting", "started")):
            yield self._line(broker, process, at_ms + step, name, _loader(broker))

    def _stop(self, broker: str, process: int) -> Iterator[Printed]:
        for name, after_ms in SHUTDOWN.items():
            at_ms = self.end_ms + after_ms + 17 * int(broker)
            yield self._line(broker, process, at_ms, name, "kafka-shutdown-hook")

    def _elected(self, partition: int, tenure: Tenure) -> Iterator[Printed]:
        """The new coordinator loads the partition."""
        broker, epoch, loading_ms, loaded_ms, _ = tenure
        values = {"partition": partition, "epoch": epoch}
        yield self._line(broker, 1, loading_ms, "loading", _loader(broker), values)
        took = int(loaded_ms - loading_ms)
        records = 19 * self.groups // PARTITIONS if epoch else 0
        rest = (
            f"{took}ms where 0ms was spent in the scheduler."
            f" Loaded {records} records which total to {records * 367} bytes."
        )
        yield self._line(broker, 1, loaded_ms, "loaded", _processor(partition),
                         {**values, "rest": rest})  # fmt: skip

    def _line(
        self, broker: str, process: int, at_ms: float, name: str, thread: str,
        values: Mapping[str, object] | None = None,
    ) -> Printed:  # fmt: skip
        template = self.grammar.template(name)
        body = f"[GroupCoordinator id={broker}] {template.printed(values or {})}"
        logger = template.loggers[0]
        if name in ("starting", "started", "shutting_down", "shut_down"):
            logger = next(one for one in template.loggers if one.endswith("Service"))
        elif name in ("events_closing", "events_closed"):
            logger = next(one for one in template.loggers if one.endswith("Processor"))
        return Printed(broker, process, at_ms, Event(thread, "INFO", body, logger))


def _loader(broker: str) -> str:
    return f"kafka-{broker}-metadata-loader-event-handler"


def _processor(partition: int) -> str:
    return f"group-coordinator-event-processor-{partition % 4}"
