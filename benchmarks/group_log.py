"""What the group log costs a broker.

One real broker, in pairs of windows: with the log of groupquake, and with its loggers at FATAL, as
the broker itself switches them. Which window comes first changes from pair to pair, so that drift
falls on both. With traffic, heartbeats come at a rate, and a window gives the broker's processor
time for each; without, it gives the share of a core that the broker takes. It ends with an error
if the log has a line too many or too few.
"""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import psutil

from benchmarks.tap import CONFIG, Client, latencies, ready
from chaos.clusters.process import ProcessCluster
from kafka_protocol.request_log import LOGGER as REQUEST_LOGGER

LOGGERS = (REQUEST_LOGGER, "org.apache.kafka.coordinator.group")
_ALTER, _LOGGER, _SET = 44, 8, 0
"""IncrementalAlterConfigs, the kind of resource and the operation (KIP-412)."""
RATE = 2_000.0
IDLE_TICKS = 20
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass
class Pairs:
    """A figure with the log and without, by pair, and its unit."""

    unit: str
    logged: list[float]
    bare: list[float]

    @property
    def ratios(self) -> list[float]:
        """Return with : without, by pair."""
        return [one / other for one, other in zip(self.logged, self.bare, strict=True)]

    def summary(self) -> dict[str, Any]:
        """Return the medians, and the quartiles and extremes of the ratios."""
        first, _, third = quantiles(self.ratios, n=4, method="inclusive")
        return asdict(self) | {
            "pairs": len(self.logged),
            "logged_p50": median(self.logged),
            "bare_p50": median(self.bare),
            "ratio_p50": median(self.ratios),
            "ratio_quartiles": (first, third),
            "ratio_extremes": (min(self.ratios), max(self.ratios)),
        }


class Broker:
    """The broker, its log and its processor time."""

    def __init__(self, cluster: ProcessCluster) -> None:
        self.address = cluster.bootstrap
        self.log = cluster.brokers[0].group_log
        self._process = psutil.Process(cluster.process_ids[1])

    def cpu_s(self) -> float:
        """Return the processor time that it has taken."""
        spent = self._process.cpu_times()
        return float(spent.user + spent.system)

    def log_requests(self, *, on: bool) -> None:
        """Switch the group log."""
        asyncio.run(self._switch("DEBUG" if on else "FATAL"))

    async def _switch(self, level: str) -> None:
        client = Client("switch")
        await client.open(self.address)
        configs = [{"name": one, "configOperation": _SET, "value": level} for one in LOGGERS]
        resource = {"resourceType": _LOGGER, "resourceName": "1", "configs": configs}
        body = {"resources": [resource], "validateOnly": False}
        answer = await client.ask(_ALTER, 1, body)
        client.close()
        if error := answer["responses"][0]["errorCode"]:
            raise SystemExit(f"the broker does not switch its loggers: error {error}")


def measure(
    folder: Path, pairs: int, seconds: float, show: Callable[[str], None]
) -> dict[str, dict[str, Any]]:
    """Measure processor time and answers with traffic, and processor time without."""
    cluster = ProcessCluster(f"bench-{os.getpid()}", folder / "brokers", brokers=1, config=CONFIG)
    with cluster:
        broker = Broker(cluster)
        asyncio.run(ready(broker.address))
        asyncio.run(latencies(broker.address, RATE, 3 * seconds))  # warms it up
        cpu = Pairs("µs of processor time a heartbeat", [], [])
        answers = Pairs("ms, p50 of a heartbeat's answer", [], [])
        idle = Pairs("% of a core", [], [])
        for number in range(pairs):
            for on in (number % 2 == 0, number % 2 == 1):
                show(f"group log: pair {number + 1} of {pairs}, {'with' if on else 'without'}")
                broker.log_requests(on=on)
                took, answered = _busy(broker, seconds, on=on)
                _add(cpu, took, on=on)
                _add(answers, answered, on=on)
                _add(idle, _idle(broker, seconds / 2), on=on)
    return {"traffic": cpu.summary(), "answers": answers.summary(), "idle": idle.summary()}


def _busy(broker: Broker, seconds: float, *, on: bool) -> tuple[float, float]:
    """Return the broker's µs for each heartbeat, and the median ms of their answers."""
    read_to, before_s = broker.log.stat().st_size, broker.cpu_s()
    found = asyncio.run(latencies(broker.address, RATE, seconds))
    spent_s = broker.cpu_s() - before_s
    with broker.log.open() as lines:
        lines.seek(read_to)
        logged = sum('"requestApiKey":12,' in line for line in lines)
    if logged != (found.requests if on else 0):
        raise SystemExit(f"the log has {logged} lines of {found.requests} heartbeats")
    return spent_s / found.requests * 1e6, found.p50_ms


def _idle(broker: Broker, seconds: float) -> float:
    """Return the share of a core that the broker takes without requests, in percent.

    Processor time is counted in ticks of 10 ms: a window holds at least `IDLE_TICKS` of them.
    """
    began, before_s = time.monotonic(), broker.cpu_s()
    while (spent_s := broker.cpu_s() - before_s) < IDLE_TICKS * TICK_S:
        time.sleep(seconds)
    return 100 * spent_s / (time.monotonic() - began)


def _add(pairs: Pairs, value: float, *, on: bool) -> None:
    (pairs.logged if on else pairs.bare).append(value)
