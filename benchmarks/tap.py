"""What the tap costs.

One real broker, directly and through the tap in turn. The requests are heartbeats of groups, which
the tap decodes and writes: the dearest kind. It ends with an error if an answer is missing, if the
tap wrote another number of lines than there were requests, or if fewer than 95 % of the requests
asked for came about.
"""

import asyncio
import io
import os
import statistics
import struct
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from chaos import tap
from chaos.clusters.process import ProcessCluster
from kafka_protocol.apis import ApiKey
from kafka_protocol.errors import Error
from kafka_protocol.kio_bodies import to_body, to_entity

CONNECTIONS = 50
ROUNDS = 3
CONFIG = {"group.initial.rebalance.delay.ms": 1_000, "group.max.session.timeout.ms": 120_000}
_LENGTH = struct.Struct(">i")


class Client:
    """A connection; one request at a time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._sent = 0

    async def open(self, address: str) -> None:
        """Connect to `host:port`."""
        host, _, port = address.rpartition(":")
        self._reader, self._writer = await asyncio.open_connection(host, int(port))

    async def ask(self, api: int, version: int, body: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its answer."""
        schema: Any = load_request_schema(api, version)
        header = schema.__header_schema__
        self._sent += 1
        buffer = io.BytesIO()
        entity_writer(header)(
            buffer,
            header(
                request_api_key=api, request_api_version=version, correlation_id=self._sent,
                client_id=self.name,
            ),
        )  # fmt: skip
        entity_writer(schema)(buffer, to_entity(schema, body))
        payload = buffer.getvalue()
        self._writer.write(_LENGTH.pack(len(payload)) + payload)
        (size,) = _LENGTH.unpack(await self._reader.readexactly(4))
        answer = await self._reader.readexactly(size)
        response: Any = load_response_schema(api, version)
        _, start = entity_reader(response.__header_schema__)(answer, 0)
        return to_body(entity_reader(response)(answer, start)[0])

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


@dataclass
class Latencies:
    """Of the answers to heartbeats at a rate, in ms; `cpu` is the tap's share of a core."""

    requests: int
    rate: float
    p50_ms: float
    p99_ms: float
    cpu: float = 0.0


def _beat(group: str, member_id: str, generation: int) -> dict[str, Any]:
    return {"groupId": group, "generationId": generation, "memberId": member_id,
            "groupInstanceId": None}  # fmt: skip


async def latencies(address: str, rate: float, seconds: float) -> Latencies:
    """Send heartbeats of unknown members at a rate, over several connections in turn."""
    clients = [Client(f"bench-{number}") for number in range(CONNECTIONS)]
    for client in clients:
        await client.open(address)
    taken_ms: list[float] = []
    end = time.monotonic() + seconds

    async def run(number: int, client: Client) -> None:
        every_s = CONNECTIONS / rate
        due = time.monotonic() + every_s * number / CONNECTIONS
        while due < end:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            began = time.perf_counter()
            answer = await client.ask(ApiKey.HEARTBEAT, 4, _beat("bench", "nobody", 1))
            taken_ms.append((time.perf_counter() - began) * 1000)
            assert answer["errorCode"] != Error.NONE
            due += every_s

    began = time.monotonic()
    await asyncio.gather(*(run(number, client) for number, client in enumerate(clients)))
    rate = len(taken_ms) / (time.monotonic() - began)
    for client in clients:
        client.close()
    cuts = statistics.quantiles(taken_ms, n=100)
    return Latencies(len(taken_ms), rate, cuts[49], cuts[98])


async def ready(address: str) -> None:
    """Wait until the broker coordinates groups."""
    client = Client("scout")
    await client.open(address)
    while True:
        await client.ask(ApiKey.FIND_COORDINATOR, 1, {"key": "bench", "keyType": 0})
        beat = await client.ask(ApiKey.HEARTBEAT, 4, _beat("bench", "nobody", 1))
        if beat["errorCode"] == Error.UNKNOWN_MEMBER_ID:
            return client.close()
        await asyncio.sleep(0.2)


def _median(rounds: Sequence[Latencies]) -> Latencies:
    return sorted(rounds, key=lambda one: one.p50_ms)[len(rounds) // 2]


def _lines(running: tap.RunningTap) -> int:
    return (running.folder / "1" / "group.log").read_bytes().count(b"\n")


def measure(folder: Path, rate: float, seconds: float) -> dict[str, Any]:
    """Measure all; the tap stays on one core."""
    direct: list[Latencies] = []
    through: list[Latencies] = []
    cluster = ProcessCluster(f"bench-{os.getpid()}", folder / "brokers", brokers=1, config=CONFIG)
    settings = tap.TapSettings({1: cluster.bootstrap}, folder / "tap")
    with cluster, tap.running(settings) as running:
        process = psutil.Process(running.process_id)
        process.cpu_affinity([0])
        asyncio.run(ready(cluster.bootstrap))
        asyncio.run(latencies(running.bootstrap, rate, 3.0))  # warms all three up
        for _ in range(ROUNDS):
            direct.append(asyncio.run(latencies(cluster.bootstrap, rate, seconds)))
            spent, lines = process.cpu_times(), _lines(running)
            before_s = spent.user + spent.system
            one = asyncio.run(latencies(running.bootstrap, rate, seconds))
            spent = process.cpu_times()
            one.cpu = (spent.user + spent.system - before_s) / seconds
            through.append(one)
            if (wrote := _lines(running) - lines) != one.requests:
                raise SystemExit(f"the tap wrote {wrote} lines of {one.requests} requests")
        if (slowest := min(one.rate for one in (*direct, *through))) < 0.95 * rate:
            raise SystemExit(f"{slowest:.0f} requests/s came about, not {rate:.0f}")
    without, with_tap = _median(direct), _median(through)
    return {"direct": asdict(without), "through": asdict(with_tap)}
