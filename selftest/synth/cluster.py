"""The brokers of a synthesized run: which coordinates a partition, and their lines about no group.

Times are ms since the first broker started.
"""

from collections.abc import Iterator, Mapping

from reference_coordinator.driving.wording import LOADED, SHUTDOWN, Wording
from selftest.timing import ELECTED_MS, LOADING_MS

BROKERS = ("1", "2", "3")
PARTITIONS = 6
"""Of the offsets topic, as `chaos.clusters` sets it up."""
Line = tuple[str, float, str]
"""The broker, the time, and what stands behind time and number."""


def coordinator_of(partition: int) -> str:
    """Return the broker that coordinates a partition."""
    return BROKERS[partition % len(BROKERS)]


def loads_ms(partition: int) -> tuple[float, float]:
    """Return when the coordinator begins to load a partition, and when it has."""
    loading_ms = ELECTED_MS + 3 * partition
    return loading_ms, loading_ms + LOADING_MS


def lines(wording: Wording, end_ms: float) -> Iterator[Line]:
    """Yield all lines about no group, in no order, of brokers that are stopped at `end_ms`."""
    for place, broker in enumerate(BROKERS):
        for step, name in enumerate(("starting", "started")):
            yield _line(wording, broker, 35.0 * place + step, name, _loader(broker))
        for name, after_ms in SHUTDOWN.items():
            at_ms = end_ms + after_ms + 17 * int(broker)
            yield _line(wording, broker, at_ms, name, "kafka-shutdown-hook")
    for partition in range(PARTITIONS):
        broker, (loading_ms, loaded_ms) = coordinator_of(partition), loads_ms(partition)
        values: dict[str, object] = {"partition": partition, "epoch": 0}
        yield _line(wording, broker, loading_ms, "loading", _loader(broker), values)
        thread = f"group-coordinator-event-processor-{partition % 4}"
        values |= {"rest": f"{int(loaded_ms - loading_ms)}ms where {LOADED}"}
        yield _line(wording, broker, loaded_ms, "loaded", thread, values)


def _loader(broker: str) -> str:
    return f"kafka-{broker}-metadata-loader-event-handler"


def _line(
    wording: Wording, broker: str, at_ms: float, name: str, thread: str,
    values: Mapping[str, object] | None = None,
) -> Line:  # fmt: skip
    return broker, at_ms, wording.broker_line(broker, name, thread, values)
