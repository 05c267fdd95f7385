"""What it costs that members note the records that they process: a million of a real broker.

A member of librdkafka polls them in this process, once as it does, once without noting any. Seconds
are processor time of the thread that polls. It ends with an error unless each record was noted.
"""

import json
import statistics
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.clusters.process import ProcessCluster
from loadtest.configs import MemberConfig
from loadtest.history import History, now_ms
from loadtest.members.librdkafka import BATCH, LibrdkafkaClient
from loadtest.members.member import Client, Member
from loadtest.processed import producer_since

Json = dict[str, Any]
RECORDS, PARTITIONS, ROUNDS = 1_000_000, 16, 3
TOPIC = "orders"


class _Forgetful(LibrdkafkaClient):
    """One that counts records, and notes none."""

    def poll_once(self) -> None:
        """Poll without waiting."""
        assert self._consumer is not None
        size = 0
        for _ in range(BATCH):
            message = self._consumer.poll(0)
            if self._callbacks:
                self._process_callbacks()
            if message is None:
                break
            if error := message.error():
                raise click.ClickException(error.str())
            self._uncommitted += 1
            size += len(message)
        if size:
            self._member.report("poll", 0.0, size)
        self._commit_when_due(self._consumer)


def measure(folder: Path) -> Json:
    """Return seconds with and without, as medians, and the history's bytes."""
    with ProcessCluster("records", folder / "kafka", brokers=1) as cluster:
        size = _produce(cluster.bootstrap)
        took: dict[type[LibrdkafkaClient], list[float]] = {LibrdkafkaClient: [], _Forgetful: []}
        for number in range(ROUNDS):
            for client, seconds in took.items():
                path = folder / f"{client.__name__}-{number}.jsonl"
                seconds.append(_consume(client, path, cluster.bootstrap, size))
    histories = folder.glob(f"{LibrdkafkaClient.__name__}-*.jsonl")
    with_s, without_s = took.values()
    pairs = list(zip(with_s, without_s, strict=True))
    return {
        "more_s": statistics.median(noted - bare for noted, bare in pairs),
        "ratio": statistics.median(noted / bare for noted, bare in pairs),
        "without_s": statistics.median(without_s),
        "bytes": statistics.median(map(_bytes_noted, histories)),
    }


def _produce(bootstrap: str) -> int:
    """Write the records; return the bytes of their values."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
    producer, size = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True}), 0
    name = producer_since("producer-0", now_ms())
    for number in range(RECORDS):
        value = f"{name} {number // PARTITIONS + 1}"
        size += len(value)
        while True:
            try:
                producer.produce(TOPIC, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    return size


def _consume(client: type[LibrdkafkaClient], path: Path, bootstrap: str, due: int) -> float:
    """Consume all records; return the seconds that its polls took."""
    seen, took_s = 0, 0.0

    def report(name: str, *_: object, **__: object) -> None:
        nonlocal seen
        if name == "poll":
            seen += int(str(_[1]))

    def start(member: Member) -> Client:
        return client(member, bootstrap, lambda call: call())

    times = (45_000, 3_000, 300_000, 1_000, 300_000)
    config = MemberConfig("m", path.stem, "dynamic", None, (TOPIC,), "range", *times)
    with closing(History(path)) as history:
        member = Member(config, start, history, lambda _: report)
        member.open()
        while seen < due:
            before, began_s = seen, time.thread_time()
            member.poll_once()
            took_s += time.thread_time() - began_s
            if seen == before:
                time.sleep(member.poll_every_s)
        member.close()
    return took_s


def _bytes_noted(history: Path) -> int:
    """Return the bytes of the lines about records, which have to name each."""
    lines = [(len(text) + 1, json.loads(text)) for text in history.read_text().splitlines()]
    noted = [(size, line["ranges"]) for size, line in lines if line["event"] == "processed"]
    every = [pair for _, ranges in noted for pairs in ranges.values() for pair in pairs]
    records = sum(last - first + 1 for first, last in every)
    if records != RECORDS or any(line["event"] == "misnumbered" for _, line in lines):
        raise click.ClickException(f"{history}: not all records, or not in order: {records:,}")
    return sum(size for size, _ in noted)
