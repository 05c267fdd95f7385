"""Records a run folder for the tests: `python record.py FOLDER [--kafka X] [--coordinator Y]`.

Three real brokers. Two groups of real clients, `static` and `dynamic`, and one group for each wire
script of the protocol corners; in the end a coordinator is killed.
"""

import argparse
import json
import lzma
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka.admin import AdminClient, NewTopic
from fleet import PARTITIONS, Fleet

from chaos.clusters.process import ProcessCluster
from kafka_protocol.errors import Error
from loadtest.wire_scripts.members import (
    Group,
    await_expiry_rebalance,
    form_group,
    join_rebalance,
    keep_alive,
    rebalance,
)
from loadtest.wire_scripts.protocol_corners import MAX_SIZE, PROTOCOL_CORNERS

CONFIG: dict[str, str | int | bool] = {
    "group.initial.rebalance.delay.ms": 500,
    "group.min.session.timeout.ms": 1000,
    "group.max.size": MAX_SIZE,
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
}
EXPERIMENT = """\
name: recorded
description: The evidence that the tests of the comparison start from.
cluster:
  brokers: 3
  version: {version}
  coordinator: {coordinator}
  config: {config}
workload:
  topics:
    - {{name: orders, partitions: 8, replication_factor: 3}}
  groups:
    - name: static
      topics: [orders]
      session_timeout: 3s
      heartbeat_interval: 800ms
      max_poll_interval: 8s
      members:
        - {{kind: static, count: 4, instance_id: "static-{{n}}"}}
    - name: dynamic
      topics: [orders]
      session_timeout: 3s
      heartbeat_interval: 800ms
      max_poll_interval: 8s
      members:
        - {{kind: dynamic, count: 3}}
phases: {{impact: 20s, recovery: 1s}}
expect:
  - {{group: static, phase: impact, reason: session_expired, rebalances: 1}}
  - {{group: static, phase: impact, rebalances: 2}}
  - {{group: dynamic, phase: impact, rebalances: 2}}
"""


class Journal:
    """The few journal entries of a recording."""

    def __init__(self, file: Path) -> None:
        """Start a file."""
        self.file = file
        self.faults = 0

    def write(self, **entry: object) -> None:
        """Append an entry."""
        with self.file.open("a") as out:
            out.write(json.dumps({"at_ms": round(time.time() * 1000), **entry}) + "\n")

    def fault(
        self,
        name: str,
        target: str,
        group: str | None,
        inject: Callable[[], object],
        log: Path | None = None,
        **args: int,
    ) -> None:
        """Do a fault between its entries; a kill tells how many lines the broker's log has."""
        self.faults += 1
        fault = {"fault_id": f"f{self.faults}"}
        self.write(event="intent", fault=name, target=target, group=group, args=args, **fault)
        inject()
        lines = {} if log is None else {"log_lines": log.read_bytes().count(b"\n")}
        self.write(event="injected", **fault, **lines)
        self.write(event="verified", verified=True, witness="the recorder", **fault)
        self.write(event="healed", healed=True, how="started again", **fault)


def create_topics(bootstrap: str) -> None:
    """Create what is consumed, and Kafka's own topic: partition 2 alone with broker 3."""
    placed = [[node, node % 3 + 1, (node + 1) % 3 + 1] for node in (1, 2, 3, 1, 2, 1)]
    offsets = NewTopic(
        "__consumer_offsets",
        len(placed),
        replica_assignment=placed,
        config={"cleanup.policy": "compact"},
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic("orders", PARTITIONS, 3), offsets]).values():
        created.result(30)


def clients(fleet: Fleet, journal: Journal) -> None:
    """Restart, duplicate and crash members of the groups of real clients."""
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
            "member.restart", name, "static", lambda n=name: fleet.restart(n, "static", n)
        )
    moved, used, lost = dynamic[1], static[2], static[3]
    journal.fault("member.restart", moved, "dynamic", lambda: fleet.restart(moved, "dynamic", None))
    journal.fault(
        "member.duplicate-instance", used, "static", lambda: fleet.duplicate(used, "static")
    )
    journal.fault("member.kill", lost, "static", lambda: fleet.crash(lost, "static"))


def failover(group: Group, kill: Callable[[], None]) -> None:
    """The coordinator is killed: its successor knows all members and restarts all sessions."""
    a, b, c = (group.static(name) for name in "abc")
    d = group.dynamic("d")
    form_group(a, b, c, d)
    d.leave()
    join_rebalance(a, b, c)
    d = group.dynamic("d")
    rebalance(d, a, b, c)
    b.disconnect()
    b = group.static("b")
    b.rejoin()
    keep_alive(1, a, b, c, d)
    elsewhere = group.static("b")
    elsewhere.member_id, elsewhere.generation = b.member_id, b.generation
    elsewhere.move(group.elsewhere)
    elsewhere.heartbeat(Error.NOT_COORDINATOR)
    elsewhere.commit_offset(Error.NOT_COORDINATOR)
    elsewhere.sync(Error.NOT_COORDINATOR)
    elsewhere.join(Error.NOT_COORDINATOR)
    elsewhere.session_timeout_ms = 1
    elsewhere.join(Error.INVALID_SESSION_TIMEOUT, Error.NOT_COORDINATOR)
    kill()
    for member in (a, b, d):
        member.move(elsewhere.port)
        member.find(group.coordinator)
    keep_alive(1, a, b, d)
    b.commit_offset()
    a.disconnect()
    a = group.static("a", port=b.port)
    a.rejoin()
    await_expiry_rebalance(a, b, d)
    keep_alive(1, a, b, d)


def run_scripts(
    cluster: ProcessCluster, clients_done: threading.Event, kill: Callable[[int], None]
) -> None:
    """Run all wire scripts at the same time, and that of the failover at last.

    It may kill its coordinator once `clients_done` is set.
    """
    ports = {broker.id: broker.port for broker in cluster.brokers}
    last = Group("failover", ports)

    def one(script: Callable) -> None:  # type: ignore[type-arg]
        group = Group(script.__name__, ports)
        group.find()
        began = time.monotonic()
        script(group)
        print(f"{group.name}: {time.monotonic() - began:.1f} s")

    def kill_coordinator() -> None:
        clients_done.wait()
        kill(last.coordinator)

    with ThreadPoolExecutor(len(PROTOCOL_CORNERS)) as scripts:
        list(scripts.map(one, PROTOCOL_CORNERS))
    last.find()
    failover(last, kill_coordinator)


def play(cluster: ProcessCluster, journal: Journal) -> None:
    """Do everything that is worth recording."""
    fleet = Fleet(cluster.bootstrap)
    clients_done = threading.Event()
    failures: list[BaseException] = []

    def kill(broker: int) -> None:
        log = next(one.group_log for one in cluster.brokers if one.id == broker)
        journal.fault(
            "broker.kill",
            f"broker-{broker}",
            None,
            lambda: cluster.act("kill", broker),
            log,
            broker=broker,
        )

    def wire_scripts() -> None:
        try:
            run_scripts(cluster, clients_done, kill)
        except BaseException as error:  # noqa: BLE001 (the main thread raises it)
            failures.append(error)

    scripts = threading.Thread(target=wire_scripts)
    scripts.start()
    try:
        clients(fleet, journal)
        fleet.commits = False  # they wait for the replica that goes, and heartbeats behind them
        clients_done.set()
        fleet.poll(lambda: not scripts.is_alive(), limit_s=60)
    finally:
        clients_done.set()
        scripts.join()
    if failures:
        raise failures[0]
    cluster.act("start", 3)
    journal.write(event="phase", phase="recovery")
    fleet.poll_for(1)
    journal.write(event="phase", phase="teardown")
    for name in list(fleet.members):
        fleet.close(name)
    journal.write(event="phase", phase="end")


def main(target: Path, version: str, coordinator: str) -> None:
    """Record into a folder; logs are compressed, as they are kept in the repository."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with TemporaryDirectory() as scratch:
        brokers = Path(scratch) / "brokers"
        cluster = ProcessCluster(
            f"recorded-{time.time():.0f}",
            brokers,
            version=version,
            coordinator=coordinator,
            config=CONFIG,
        )
        journal = Journal(target / "journal.jsonl")
        with cluster:
            create_topics(cluster.bootstrap)
            play(cluster, journal)
        for broker in cluster.brokers:
            kept = target / "brokers" / str(broker.id) / "group.log.xz"
            kept.parent.mkdir(parents=True)
            kept.write_bytes(
                lzma.compress(broker.group_log.read_bytes(), preset=9 | lzma.PRESET_EXTREME)
            )
    (target / "experiment.yaml").write_text(
        EXPERIMENT.format(version=version, coordinator=coordinator, config=json.dumps(CONFIG))
    )
    steps = [{"id": f"f{number}"} for number in range(1, journal.faults + 1)]
    (target / "plan.json").write_text(json.dumps({"steps": steps}) + "\n")
    environment = {
        "kafka_version": version,
        "coordinator": coordinator,
        "cluster": "process",
        "seed": 0,
        "broker_config": CONFIG,
        "repeat_command": f"python tests/recorded/record.py FOLDER --kafka {version}"
        f" --coordinator {coordinator}",
    }
    (target / "environment.json").write_text(json.dumps(environment, indent=2) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kafka", default="4.3.0")
    parser.add_argument("--coordinator", default="java", choices=("java", "scala"))
    asked = parser.parse_args()
    main(asked.folder, asked.kafka, asked.coordinator)
