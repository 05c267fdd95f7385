"""What the tests of real clusters share: a topic, members, and waiting for them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.clusters import Cluster


def eventually(condition: Callable[[], bool], what: str, timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout_s} s for: {what}"
        time.sleep(0.05)


def create_topic(cluster: Cluster, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    # librdkafka keeps a request to the controller until its metadata names one, and asks rarely
    eventually(lambda: admin.list_topics(timeout=5).controller_id >= 0, "a controller")
    topic = NewTopic(name, 3, len(cluster.brokers))
    admin.create_topics([topic])[name].result(15)


def await_leaders(cluster: Cluster, name: str) -> None:
    """Wait until the brokers' metadata names a leader of each of the topic's partitions.

    A consumer that asks before finds no topic, and asks again only after minutes.
    """
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})

    def led() -> bool:
        topic = admin.list_topics(timeout=5).topics.get(name)
        leaders = [each.leader for each in topic.partitions.values()] if topic else []
        return bool(leaders) and min(leaders) >= 0

    eventually(led, f"leaders of {name}")


@contextmanager
def member(cluster: Cluster, topic: str, group: str, **more: str) -> Iterator[Consumer]:
    """A member of the group that has its partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "heartbeat.interval.ms": 200,
            "log_level": 0,
            **{key.replace("_", "."): value for key, value in more.items()},
        }
    )
    consumer.subscribe([topic])

    def has_partitions() -> bool:
        consumer.poll(0.05)
        return bool(consumer.assignment())

    try:
        eventually(has_partitions, f"partitions in {group}")
        yield consumer
    finally:
        consumer.close()
