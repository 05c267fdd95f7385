"""How a synthesized group's requests read in `group.log`."""

import random
from collections.abc import Mapping
from typing import NamedTuple

from kafka_protocol import request_log, versions
from reference_coordinator.classic.effects import Response
from reference_coordinator.driving.bodies import response_body
from reference_coordinator.driving.simulation import Exchange


class Software(NamedTuple):
    """A client library: the versions of its requests, and how it names itself."""

    versions: Mapping[str, int]
    name: str
    version: str
    leave_reason: str = "not provided"
    """What it gives as the reason of a LeaveGroup, as the coordinator prints it (KIP-800)."""


LIBRDKAFKA = Software(
    versions.LIBRDKAFKA, "confluent-kafka-python", "2.16.1-rdkafka-2.16.0",
)  # fmt: skip
UNNAMED = Software(
    versions.NEWEST, "unknown", "unknown", "the consumer stops",
)  # fmt: skip
"""A client of newer versions that does not say what it is, as the tests' own."""


class Delays(NamedTuple):
    """How long a request takes in each part of its way, in µs, and on the network before it.

    `processor` is the time in the queue of the coordinator's event processor, `write` that of a
    record's replication.
    """

    network: int
    queue: int
    local: int
    processor: int
    write: int
    response_queue: int
    send: int


TYPICAL = (
    (120, 0.5), (130, 1.1), (90, 1.0), (250, 1.0), (3_000, 0.8), (90, 1.1), (160, 0.9),
)  # fmt: skip
"""The median of each delay in µs, and how far it strays (sigma of its logarithm)."""


def delays(dice: random.Random, count: int = 4_096) -> list[Delays]:
    """Draw delays as on a machine that is not idle: most are short, and some a hundred times."""
    return [
        Delays(*(1 + int(dice.lognormvariate(0.0, spread) * us) for us, spread in TYPICAL))
        for _ in range(count)
    ]


class Served(NamedTuple):
    """Where and how a request is served: when the broker read it, and its handler had it."""

    broker: str
    read_ms: float
    handed_ms: float
    took: Delays
    connection: str
    network_thread: int
    software: Software


def answered(
    exchange: Exchange, served: Served, response: Response, at_ms: float, more_us: int
) -> tuple[float, str]:
    """Return when a request's line is written, and the line behind its time.

    The coordinator answered at `at_ms`. The parts lose `more_us` by rounding down.
    """
    took, client = served.took, served.software
    remote = max(0, int((at_ms - served.handed_ms) * 1_000))
    total = took.queue + took.local + remote + took.response_queue + took.send
    parts_us = (took.queue, took.local, remote, took.response_queue, took.send)
    content = request_log.completed(
        request_log.header(exchange.api, exchange.api_version, exchange.serial, exchange.client_id),
        exchange.request,
        response_body(response, exchange),
        served.connection,
        (total + more_us) / 1_000,
        [us / 1_000 for us in parts_us],
    ) | request_log.sender(client.name, client.version)
    thread = (
        f"data-plane-kafka-network-thread-{served.broker}-PLAINTEXT-PLAINTEXT"
        f"-{served.network_thread}"
    )
    written_ms = served.read_ms + (total + more_us + 8) / 1_000
    return written_ms, f"{thread} DEBUG {request_log.printed(content)} ({request_log.LOGGER})"
