import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from chaos.clusters import BrokerInfo, Cluster, ClusterError
from chaos.clusters.process import ProcessCluster

pytestmark = pytest.mark.cluster

ALLOWED = {
    "JOIN_GROUP",
    "SYNC_GROUP",
    "HEARTBEAT",
    "LEAVE_GROUP",
    "OFFSET_COMMIT",
    "CONSUMER_GROUP_HEARTBEAT",
}
LINE = re.compile(r"(\d+) \d{13} \d+ \S+ (?:INFO|DEBUG|WARN|ERROR) (.+) \([\w.$]+\)")
GOODBYE = "Shutdown complete. (org.apache.kafka.coordinator.group.GroupCoordinatorService)\n"


def eventually(condition: Callable[[], bool], what: str, timeout_s: float = 15) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout_s} s for: {what}"
        time.sleep(0.05)


def create_topic(cluster: Cluster, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topic = NewTopic(name, 3, len(cluster.brokers))
    admin.create_topics([topic])[name].result(15)


@pytest.fixture(scope="module")
def topic(cluster: ProcessCluster) -> str:
    create_topic(cluster, "orders")
    return "orders"


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
        eventually(has_partitions, f"partitions in {group}", timeout_s=30)
        yield consumer
    finally:
        consumer.close()


def brokers_that_say(cluster: Cluster, text: str) -> list[int]:
    return [broker.id for broker in cluster.brokers if text in broker.group_log.read_text()]


def recorded(cluster: Cluster) -> dict[int, psutil.Process]:
    """The processes that processes.json knows, once it is shown that they are the ones meant."""
    folder = cluster.brokers[0].group_log.parent.parent
    processes = {}
    for row in json.loads((folder / "processes.json").read_text())["brokers"]:
        process = psutil.Process(row["pid"])
        assert round(process.create_time() * 1000) == row["started_at_ms"]
        processes[row["id"]] = process
    return processes


def test_a_group_is_seen_in_the_log_of_its_coordinator_alone(
    cluster: ProcessCluster, topic: str
) -> None:
    with member(cluster, topic, "seen", client_id='odd}{"name'):
        pass
    for text in (
        "Preparing to rebalance group seen in state PreparingRebalance with old generation 0",
        "Stabilized group seen generation 1 with 1 members.",
        '"requestApiKeyName":"JOIN_GROUP"},"request":{"groupId":"seen"',
        "Group seen with generation 2 is now empty.",
    ):
        assert len(brokers_that_say(cluster, text)) == 1, text


def test_a_killed_broker_comes_back_where_it_was(cluster: ProcessCluster, topic: str) -> None:
    with member(cluster, topic, "survivor", group_instance_id="survivor-0"):
        (coordinator,) = brokers_that_say(cluster, "Stabilized group survivor")
    before = recorded(cluster)
    info = cluster.brokers[coordinator - 1]
    cluster.kill(coordinator)
    assert not before[coordinator].is_running()
    assert coordinator not in recorded(cluster)
    assert not info.group_log.read_text().endswith(GOODBYE)
    with pytest.raises(ClusterError, match=f"broker {coordinator} does not run; start it"):
        cluster.pause(coordinator)

    with info.group_log.open("a") as log:
        log.write("7 cut off")  # as SIGKILL does to a long line
    eventually(
        lambda: bool(brokers_that_say(cluster, "Loaded classic group survivor with 1 members.")),
        "another broker to load the group",
    )
    cluster.start_broker(coordinator)
    assert recorded(cluster).keys() == before.keys()
    assert recorded(cluster)[coordinator] != before[coordinator]
    with socket.create_connection(("127.0.0.1", info.port), timeout=1):
        pass
    lines = info.group_log.read_text().splitlines()
    first_words = [line for line in lines if line.startswith("1 ")]
    assert "7 cut off" in lines
    assert len(first_words) == 2, "one log, in which every start of the JVM counts from 1"


def test_a_stopped_broker_says_goodbye_last(cluster: ProcessCluster) -> None:
    info = cluster.brokers[0]
    cluster.stop_broker(info.id)
    assert info.group_log.read_text().endswith(GOODBYE)
    cluster.start_broker(info.id)
    assert info.id in recorded(cluster)


def test_a_paused_broker_holds_its_breath(cluster: ProcessCluster) -> None:
    info = cluster.brokers[2]
    process = recorded(cluster)[info.id]
    cluster.pause(info.id)
    try:
        eventually(lambda: process.status() == psutil.STATUS_STOPPED, "the process to stop")
        with socket.create_connection(("127.0.0.1", info.port), timeout=1):
            pass  # the kernel still takes connections
    finally:
        cluster.resume(info.id)
    eventually(lambda: process.status() != psutil.STATUS_STOPPED, "the process to go on")


def test_what_cannot_be_done_is_said(cluster: ProcessCluster) -> None:
    with pytest.raises(ClusterError, match="there is no broker 9; brokers are 1, 2, 3"):
        cluster.kill(9)
    with pytest.raises(ClusterError, match="broker 1 already runs"):
        cluster.start_broker(1)
    with pytest.raises(ClusterError, match="6 brokers asked for; a process cluster has 1 to 5"):
        ProcessCluster("none", Path(), brokers=6)
    with pytest.raises(ClusterError, match="2 brokers need 2 different ports"):
        ProcessCluster("none", Path(), brokers=2, ports=[9092, 9092])


def test_the_cluster_is_what_the_others_expect(cluster: ProcessCluster) -> None:
    known: Cluster = cluster
    assert known.bootstrap == ",".join(f"127.0.0.1:{broker.port}" for broker in known.brokers)
    assert [type(broker) for broker in known.brokers] == [BrokerInfo] * 3


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"process.roles": "nonsense"}, "storage cannot be formatted: .*nonsense.*process.roles"),
        ({"metric.reporters": "no.Such"}, "ended with status 1 .*Class no.Such cannot be found"),
    ],
)
def test_a_bad_property_fails_the_start(
    tmp_path: Path,
    run_id: str,
    marked: Callable[[str], list[Path]],
    config: dict[str, str],
    told: str,
) -> None:
    with pytest.raises(ClusterError, match=told):
        ProcessCluster(run_id, tmp_path, brokers=1, config=config).start()
    assert marked(run_id) == []
    assert json.loads((tmp_path / "processes.json").read_text())["brokers"] == []
    with pytest.raises(ClusterError, match="give every cluster a folder of its own"):
        ProcessCluster(run_id, tmp_path, brokers=1).start()


def test_what_a_cluster_leaves_behind_even_if_a_broker_was_paused(
    tmp_path: Path, run_id: str, marked: Callable[[str], list[Path]]
) -> None:
    told: list[str] = []
    with ProcessCluster(run_id, tmp_path, brokers=1, progress=told.append) as cluster:
        assert len(marked(run_id)) == 1
        create_topic(cluster, "orders")
        with member(cluster, "orders", "whole") as consumer:
            consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        cluster.pause(1)
    assert marked(run_id) == []
    assert any("starting 127.0.0.1:" in line for line in told)
    assert (tmp_path / "1" / "stdout.log").read_text() == ""
    assert "Completed request" not in (tmp_path / "1" / "server.log").read_text()

    log = (tmp_path / "1" / "group.log").read_text()
    assert log.endswith(GOODBYE)
    lines = [LINE.fullmatch(line) for line in log.splitlines()]
    fields = [line.groups() for line in lines if line]
    assert len(fields) == len(lines)
    # Threads overtake each other between numbering and writing: no gaps, but not in order.
    assert sorted(int(serial) for serial, *_ in fields) == list(range(1, len(lines) + 1))
    apis = {
        api[1]
        for _, message in fields
        if (api := re.match(r'Completed request:.*?"requestApiKeyName":"(\w+)"', message))
    }
    assert {"JOIN_GROUP", "SYNC_GROUP", "LEAVE_GROUP", "OFFSET_COMMIT"} <= apis <= ALLOWED
    others = [message for _, message in fields if not message.startswith("Completed request:")]
    assert all(message.startswith("[GroupCoordinator id=1") for message in others)
    assert not any("metadata image" in message for message in others)
    cluster.stop()  # once more does no harm


RUNNER = """
import sys, time
from pathlib import Path
from threading import Thread
from chaos.clusters.process import ProcessCluster
cluster = ProcessCluster(sys.argv[1], Path(sys.argv[2]), brokers=1)
starting = Thread(target=cluster.start)
starting.start()
starting.join()
print("started", flush=True)
time.sleep(600)
"""


def test_brokers_end_with_a_killed_runner_but_not_with_the_thread_that_started_them(
    tmp_path: Path, run_id: str, marked: Callable[[str], list[Path]]
) -> None:
    runner = [sys.executable, "-c", RUNNER, run_id, str(tmp_path)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(runner, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
            assert len(marked(run_id)) == 1
        finally:
            process.send_signal(signal.SIGKILL)
    eventually(lambda: marked(run_id) == [], "the guard to end the broker", timeout_s=5)
