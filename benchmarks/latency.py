"""What the tap and the group log cost, by heartbeats at a rate to one real broker.

The requests are heartbeats of groups, which tap and log decode and write: the dearest kind.
A measurement ends with an error if an answer is missing, if a log has a line too many or too few,
or if fewer than 95 % of the requests asked for came about.
"""

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from statistics import median, quantiles
from typing import Any

import psutil
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from benchmarks.table import p50, p99
from chaos.clusters.process import ProcessCluster
from chaos.tap import process as tap
from kafka_protocol.errors import Error
from kafka_protocol.request_log import LOGGER as REQUEST_LOGGER
from loadtest.wire import Connection

CONNECTIONS = 50
ROUNDS = 3
RATE = 2_000.0
CONFIG = {"group.initial.rebalance.delay.ms": 1_000, "group.max.session.timeout.ms": 120_000}
BEAT = {"groupId": "bench", "generationId": 1, "memberId": "nobody"}
WITHIN_S = 10.0
"""How long the last answers are awaited."""
LOGGERS = (REQUEST_LOGGER, "org.apache.kafka.coordinator.group")
IDLE_TICKS = 20
TICK_S = 1 / os.sysconf("SC_CLK_TCK")

Json = dict[str, Any]


@dataclass
class Latencies:
    """Of the answers to heartbeats at a rate, in ms; `cpu` is the tap's share of a core."""

    requests: int
    rate: float
    p50_ms: float
    p99_ms: float
    cpu: float = 0.0


def _connect(address: str, name: str) -> Connection:
    host, _, port = address.rpartition(":")
    return Connection(host, int(port), name)


def latencies(address: str, rate: float, seconds: float) -> Latencies:
    """Send heartbeats of unknown members at a rate, over several connections in turn."""
    connections = [_connect(address, f"bench-{number}") for number in range(CONNECTIONS)]
    sent, answered, taken_ms = 0, 0, list[float]()
    with DefaultSelector() as ready:
        for connection in connections:
            ready.register(connection, EVENT_READ, connection)
        began_s = time.monotonic()
        while (now_s := time.monotonic()) < began_s + seconds or answered < sent:
            due_s = began_s + sent / rate
            if now_s >= began_s + seconds:
                due_s = began_s + seconds + WITHIN_S
                if now_s >= due_s:
                    raise SystemExit(f"{answered} of {sent} heartbeats were answered")
            elif due_s <= now_s:
                connections[sent % CONNECTIONS].send("HEARTBEAT", 4, BEAT)
                sent += 1
                continue
            for key, _ in ready.select(due_s - now_s):
                for exchange in key.data.receive(0):
                    assert exchange.error == Error.UNKNOWN_MEMBER_ID
                    taken_ms.append(exchange.answered_ms - exchange.sent_ms)
                    answered += 1
    for connection in connections:
        connection.close()
    return Latencies(sent, sent / seconds, p50(taken_ms), p99(taken_ms))


def await_coordinator(address: str) -> None:
    """Wait until the broker coordinates groups."""
    connection = _connect(address, "scout")
    while connection.ask("HEARTBEAT", 4, BEAT)["errorCode"] != Error.UNKNOWN_MEMBER_ID:
        connection.ask("FIND_COORDINATOR", 1, {"key": "bench", "keyType": 0})
        time.sleep(0.2)
    connection.close()


def _cpu_s(process: psutil.Process) -> float:
    """Return the processor time that a process has taken."""
    spent = process.cpu_times()
    return float(spent.user + spent.system)


# What the tap costs: directly and through it in turn.


def of_tap(folder: Path, rate: float, seconds: float) -> Json:
    """Measure answers with the tap and without; it stays on one core."""
    direct: list[Latencies] = []
    through: list[Latencies] = []
    with ExitStack() as stack:
        cluster = stack.enter_context(_broker(folder))
        settings = tap.TapSettings({1: cluster.bootstrap}, folder / "tap")
        running = stack.enter_context(tap.running(settings))
        process = psutil.Process(running.process_id)
        process.cpu_affinity([0])
        await_coordinator(cluster.bootstrap)
        latencies(running.bootstrap, rate, 3.0)  # warms all three up
        for _ in range(ROUNDS):
            direct.append(latencies(cluster.bootstrap, rate, seconds))
            before_s, lines = _cpu_s(process), _lines_of(running)
            one = latencies(running.bootstrap, rate, seconds)
            one.cpu = (_cpu_s(process) - before_s) / seconds
            through.append(one)
            if (wrote := _lines_of(running) - lines) != one.requests:
                raise SystemExit(f"the tap wrote {wrote} lines of {one.requests} requests")
    if (slowest := min(one.rate for one in (*direct, *through))) < 0.95 * rate:
        raise SystemExit(f"{slowest:.0f} requests/s came about, not {rate:.0f}")
    median = lambda side: sorted(side, key=lambda one: one.p50_ms)[ROUNDS // 2]
    return {"direct": asdict(median(direct)), "through": asdict(median(through))}


def _broker(folder: Path) -> ProcessCluster:
    return ProcessCluster(f"bench-{os.getpid()}", folder / "brokers", brokers=1, config=CONFIG)


def _lines_of(running: tap.RunningTap) -> int:
    return (running.folder / "1" / "group.log").read_bytes().count(b"\n")


# What the group log costs: with it, and with its loggers at FATAL, as the broker switches them.


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

    def add(self, value: float, *, on: bool) -> None:
        """Add the figure of a window."""
        (self.logged if on else self.bare).append(value)

    def summary(self) -> Json:
        """Return the medians, and the quartiles of the ratios."""
        first, _, third = quantiles(self.ratios, n=4, method="inclusive")
        return asdict(self) | {
            "pairs": len(self.logged),
            "bare_p50": median(self.bare),
            "ratio_p50": median(self.ratios),
            "ratio_quartiles": (first, third),
        }


def of_group_log(folder: Path, pairs: int, seconds: float, show: Callable[[str], None]) -> Json:
    """Measure processor time and answers with traffic, and processor time without.

    Windows come in pairs. Which one is first changes each time, so that drift falls on both.
    """
    with _broker(folder) as cluster:
        address, log = cluster.bootstrap, cluster.brokers[0].group_log
        process = psutil.Process(cluster.process_ids[1])
        await_coordinator(address)
        latencies(address, RATE, 3 * seconds)  # warms it up
        found = {
            "traffic": Pairs("µs of processor time a heartbeat", [], []),
            "answers": Pairs("ms, p50 of a heartbeat's answer", [], []),
            "idle": Pairs("% of a core", [], []),
        }
        for number in range(pairs):
            for on in (number % 2 == 0, number % 2 == 1):
                show(f"group log: pair {number + 1} of {pairs}, {'with' if on else 'without'}")
                _switch(address, on=on)
                read_to, before_s = log.stat().st_size, _cpu_s(process)
                beats = latencies(address, RATE, seconds)
                took_s = _cpu_s(process) - before_s
                _check(log, read_to, beats.requests if on else 0)
                found["traffic"].add(took_s / beats.requests * 1e6, on=on)
                found["answers"].add(beats.p50_ms, on=on)
                found["idle"].add(_idle(process, seconds / 2), on=on)
    return {name: of.summary() for name, of in found.items()}


def _switch(address: str, *, on: bool) -> None:
    """Switch the loggers of the group log in the running broker (KIP-412)."""
    level = "DEBUG" if on else "FATAL"
    loggers = ConfigResource(ConfigResourceType.BROKER_LOGGER, "1", dict.fromkeys(LOGGERS, level))
    with KafkaAdminClient(bootstrap_servers=address) as client:
        client.alter_configs([loggers], raise_on_unknown=False)


def _check(log: Path, read_to: int, beats: int) -> None:
    """Check that the log has a line of each heartbeat since a place."""
    with log.open() as lines:
        lines.seek(read_to)
        logged = sum('"requestApiKey":12,' in line for line in lines)
    if logged != beats:
        raise SystemExit(f"the log has {logged} lines of {beats} heartbeats")


def _idle(process: psutil.Process, seconds: float) -> float:
    """Return the share of a core that the broker takes without requests, in percent.

    Processor time is counted in ticks of 10 ms: a window holds at least `IDLE_TICKS` of them.
    """
    began, before_s = time.monotonic(), _cpu_s(process)
    while (spent_s := _cpu_s(process) - before_s) < IDLE_TICKS * TICK_S:
        time.sleep(seconds)
    return 100 * spent_s / (time.monotonic() - began)
