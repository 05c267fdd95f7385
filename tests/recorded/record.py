"""Records the run folder that the tests of the comparison start from: `python record.py FOLDER`.

Three real brokers, four static and three dynamic members. Besides restarts it holds what a lying
coordinator could lie about: a duplicate instance id, a member that dies and outstays its session.
"""

import gzip
import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.clusters.process import ProcessCluster

CONFIG: dict[str, str | int | bool] = {
    "group.initial.rebalance.delay.ms": 500,
    "group.min.session.timeout.ms": 1000,
}
SESSION_MS = 3_000
EXPERIMENT = """\
name: recorded
description: The evidence that the tests of the comparison start from.
cluster:
  brokers: 3
  version: 4.3.0
  config: {group.initial.rebalance.delay.ms: 500, group.min.session.timeout.ms: 1000}
workload:
  topics:
    - {name: orders, partitions: 8, replication_factor: 3}
  groups:
    - name: static
      topics: [orders]
      session_timeout: 3s
      heartbeat_interval: 500ms
      max_poll_interval: 8s
      members:
        - {kind: static, count: 4, instance_id: "static-{n}"}
    - name: dynamic
      topics: [orders]
      session_timeout: 3s
      heartbeat_interval: 500ms
      max_poll_interval: 8s
      members:
        - {kind: dynamic, count: 3}
phases: {impact: 20s, recovery: 1s}
expect:
  - {group: static, phase: impact, reason: session_expired, rebalances: 1}
  - {group: static, phase: impact, rebalances: 2}
  - {group: dynamic, phase: impact, rebalances: 2}
"""


class Fleet:
    """Consumers by name, polled in turn."""

    def __init__(self, bootstrap: str) -> None:
        """Start empty."""
        self.bootstrap = bootstrap
        self.members: dict[str, Consumer] = {}
        self.assigned: dict[str, int] = {}
        self.committed = time.monotonic()

    def start(self, name: str, group: str, instance: str | None = None) -> None:
        """Open a member."""
        config: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "group.id": group,
            "client.id": name,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 500,
            "max.poll.interval.ms": 8000,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range",
            "broker.address.family": "v4",
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
            commit = time.monotonic() > self.committed + 1
            for consumer in self.members.values():
                consumer.poll(0)
                if commit and consumer.assignment():
                    consumer.commit(asynchronous=True)
            if commit:
                self.committed = time.monotonic()
            time.sleep(0.005)

    def poll_for(self, seconds: float) -> None:
        """Poll everybody for a while."""
        end = time.monotonic() + seconds
        self.poll(lambda: time.monotonic() > end)

    def settle(self, *names: str) -> None:
        """Poll until members have their partitions, and a little on."""
        self.poll(lambda: all(self.assigned[name] for name in names))
        self.poll_for(1.2)


class Journal:
    """The few journal entries of a recording."""

    def __init__(self, file: Path) -> None:
        """Start a file."""
        self.file = file
        self.faults = 0

    def write(self, **entry: object) -> None:
        """Append an entry."""
        with self.file.open("a") as out:
            out.write(json.dumps({"at_ms": time.time() * 1000, **entry}) + "\n")

    def fault(self, name: str, target: str, group: str, work: Callable[[], None]) -> None:
        """Do a fault between its entries."""
        self.faults += 1
        fault = {"fault_id": f"f{self.faults}"}
        self.write(event="intent", fault=name, target=target, group=group, **fault)
        self.write(event="injected", **fault)
        work()
        self.write(event="verified", verified=True, witness="assignment callbacks", **fault)
        self.write(event="healed", healed=True, how="started again", **fault)


def restart(fleet: Fleet, name: str, group: str, instance: str | None, away_s: float) -> None:
    """Close a member, and start it again."""
    fleet.close(name)
    fleet.poll_for(away_s)
    fleet.start(name, group, instance)
    fleet.settle(name)


def crash(fleet: Fleet, name: str) -> None:
    """Kill a static member and bring it back when its session is over."""
    fleet.kill(name)
    fleet.poll_for(SESSION_MS / 1000 + 2.5)
    fleet.start(name, "static", name)
    fleet.settle(name)


def duplicate(fleet: Fleet, instance: str) -> None:
    """Start a second process with an id that is in use; the first is fenced."""
    fleet.start("impostor", "static", instance)
    fleet.settle("impostor")
    fleet.close(instance)


def play(fleet: Fleet, journal: Journal) -> None:
    """Do everything that is worth recording."""
    static = [f"static-{n}" for n in range(4)]
    dynamic = [f"dynamic-dynamic-{n}" for n in range(3)]
    journal.write(event="phase", phase="formation")
    for name in static:
        fleet.start(name, "static", name)
    for name in dynamic:
        fleet.start(name, "dynamic")
    fleet.settle(*static, *dynamic)
    journal.write(event="steady_state", ok=True, probes=[])
    journal.write(event="phase", phase="impact")
    for name in static[:2]:
        journal.fault(
            "member.restart", name, "static", lambda n=name: restart(fleet, n, "static", n, 1.2)
        )
    journal.fault(
        "member.restart",
        dynamic[1],
        "dynamic",
        lambda: restart(fleet, dynamic[1], "dynamic", None, 1.2),
    )
    journal.fault(
        "member.duplicate-instance", static[2], "static", lambda: duplicate(fleet, static[2])
    )
    journal.fault("member.kill", static[3], "static", lambda: crash(fleet, static[3]))
    journal.write(event="phase", phase="recovery")
    fleet.poll_for(1)
    journal.write(event="phase", phase="teardown")
    for name in list(fleet.members):
        fleet.close(name)
    journal.write(event="phase", phase="end")


def main(target: Path) -> None:
    """Record into a folder; logs are compressed, as they are kept in the repository."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with TemporaryDirectory() as scratch:
        cluster = ProcessCluster("recorded", Path(scratch) / "brokers", config=CONFIG)
        with cluster:
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
            admin.create_topics([NewTopic("orders", 8, 3)])["orders"].result(30)
            producer = Producer({"bootstrap.servers": cluster.bootstrap})
            for number in range(200):
                producer.produce("orders", str(number).encode())
            producer.flush(30)
            play(Fleet(cluster.bootstrap), Journal(target / "journal.jsonl"))
        for broker in cluster.brokers:
            kept = target / "brokers" / str(broker.id) / "group.log.gz"
            kept.parent.mkdir(parents=True)
            kept.write_bytes(gzip.compress(broker.group_log.read_bytes(), 9, mtime=0))
    (target / "experiment.yaml").write_text(EXPERIMENT)
    steps = [{"id": f"f{number}"} for number in range(1, 6)]
    (target / "plan.json").write_text(json.dumps({"steps": steps}) + "\n")
    environment = {
        "kafka_version": "4.3.0",
        "coordinator": "java",
        "seed": 0,
        "broker_config": CONFIG,
        "repeat_command": "python tests/recorded/record.py FOLDER",
    }
    (target / "environment.json").write_text(json.dumps(environment, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
