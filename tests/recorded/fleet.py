"""The recorded groups of real clients: librdkafka's, as applications use it."""

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Producer

SESSION_MS = 3_000
PARTITIONS = 8


class Fleet:
    """Consumers by name, polled in turn."""

    def __init__(self, bootstrap: str) -> None:
        """Start empty."""
        self.bootstrap = bootstrap
        self.members: dict[str, Consumer] = {}
        self.assigned: dict[str, int] = {}
        self.producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        self.committed = time.monotonic()
        self.commits = True

    def start(self, name: str, group: str, instance: str | None = None) -> None:
        """Open a member."""
        config: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "group.id": group,
            "client.id": name,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 800,
            "max.poll.interval.ms": 8000,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range",
            "broker.address.family": "v4",
            "log_level": 0,
        }
        if instance is not None:
            config["group.instance.id"] = instance
        consumer = Consumer(config)
        self.assigned[name] = 0

        def on_assign(_: Consumer, partitions: list[Any]) -> None:
            self.assigned[name] += 1

        consumer.subscribe(["orders"], on_assign=on_assign)
        self.members[name] = consumer

    def close(self, name: str) -> None:
        """Close a member as an application would."""
        self.members.pop(name).close()

    def kill(self, name: str) -> None:
        """Drop a member: its sockets go, nothing is said to the broker."""
        del self.members[name]

    def poll(self, until: Callable[[], bool], limit_s: float = 30) -> None:
        """Poll everybody until something is so."""
        end = time.monotonic() + limit_s
        while not until():
            if time.monotonic() > end:
                raise TimeoutError("the recording got stuck")
            commit = self.commits and time.monotonic() > self.committed + 2
            for consumer in self.members.values():
                consumer.poll(0)
                if commit and consumer.assignment():
                    consumer.commit(asynchronous=True)
            if commit:
                self.committed = time.monotonic()
                for partition in range(PARTITIONS):
                    self.producer.produce("orders", b"an order", partition=partition)
            self.producer.poll(0)
            time.sleep(0.005)

    def poll_for(self, seconds: float) -> None:
        """Poll everybody for a while."""
        end = time.monotonic() + seconds
        self.poll(lambda: time.monotonic() > end)

    def settle(self, *names: str) -> None:
        """Poll until members have their partitions, and a little on."""
        self.poll(lambda: all(self.assigned[name] for name in names))
        self.poll_for(1)

    def restart(self, name: str, group: str, instance: str | None) -> None:
        """Close a member, and start it again inside its session."""
        self.close(name)
        self.poll_for(1)
        self.start(name, group, instance)
        self.settle(name)

    def crash(self, name: str, group: str) -> None:
        """Kill a static member, and bring it back when its session is over."""
        self.kill(name)
        self.poll_for(SESSION_MS / 1000 + 1.5)
        self.start(name, group, name)
        self.settle(name)

    def duplicate(self, instance: str, group: str) -> None:
        """Start a second process with an id that is in use; the first is fenced."""
        self.start("impostor", group, instance)
        self.settle("impostor")
        self.close(instance)
