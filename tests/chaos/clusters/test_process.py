import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from confluent_kafka import TopicPartition

from chaos.clusters import BrokerInfo, Cluster, ClusterError
from chaos.clusters.interface import CutShort
from chaos.clusters.process import ProcessCluster
from kafka_protocol.apis import LOGGED_APIS
from kafka_protocol.request_log import COMPLETED
from tests.chaos.clusters.clients import create_topic, eventually, member

pytestmark = pytest.mark.cluster

LINE = re.compile(r"(\d+) \d{13} \d+ \S+ (?:INFO|DEBUG|WARN|ERROR) (.+) \([\w.$]+\)")
SHUTDOWN_LINE = "Shutdown complete. (org.apache.kafka.coordinator.group.GroupCoordinatorService)\n"


@pytest.fixture
def topic() -> str:
    return "orders"


def brokers_that_say(cluster: Cluster, text: str) -> list[int]:
    return [broker.id for broker in cluster.brokers if text in broker.group_log.read_text()]


def running(cluster: Cluster) -> dict[int, psutil.Process]:
    return {node: psutil.Process(pid) for node, pid in cluster.process_ids.items()}


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


def test_a_killed_broker_restarts_where_it_was(cluster: ProcessCluster, topic: str) -> None:
    with member(cluster, topic, "survivor", group_instance_id="survivor-0"):
        (coordinator,) = brokers_that_say(cluster, "Stabilized group survivor")
    before = running(cluster)
    info = cluster.brokers[coordinator - 1]
    cluster.kill(coordinator)
    assert not before[coordinator].is_running()
    assert coordinator not in running(cluster)
    assert not info.group_log.read_text().endswith(SHUTDOWN_LINE)
    with pytest.raises(ClusterError, match=f"broker {coordinator} does not run; start it"):
        cluster.pause(coordinator)

    with info.group_log.open("a") as log:
        log.write("7 cut off")  # as SIGKILL does to a long line
    eventually(
        lambda: bool(brokers_that_say(cluster, "Loaded classic group survivor with 1 members.")),
        "another broker to load the group",
    )
    cluster.start_broker(coordinator)
    assert running(cluster).keys() == before.keys()
    assert running(cluster)[coordinator] != before[coordinator]
    with socket.create_connection(("127.0.0.1", info.port), timeout=1):
        pass
    lines = info.group_log.read_text().splitlines()
    first_words = [line for line in lines if line.startswith("1 ")]
    assert "7 cut off" in lines
    assert len(first_words) == 2, "one log, in which every start of the JVM counts from 1"


def test_a_stopped_broker_logs_its_shutdown_last(cluster: ProcessCluster) -> None:
    info = cluster.brokers[0]
    cluster.stop_broker(info.id)
    assert info.group_log.read_text().endswith(SHUTDOWN_LINE)
    cluster.start_broker(info.id)
    assert info.id in running(cluster)


def test_a_paused_broker_holds_its_breath(cluster: ProcessCluster) -> None:
    info = cluster.brokers[2]
    process = running(cluster)[info.id]
    cluster.pause(info.id)
    try:
        eventually(lambda: process.status() == psutil.STATUS_STOPPED, "the process to stop")
        with socket.create_connection(("127.0.0.1", info.port), timeout=1):
            pass  # the kernel still takes connections
    finally:
        cluster.resume(info.id)
    eventually(lambda: process.status() != psutil.STATUS_STOPPED, "the process to go on")


def test_impossible_operations_are_reported(cluster: ProcessCluster) -> None:
    with pytest.raises(ClusterError, match="there is no broker 9; brokers are 1, 2, 3"):
        cluster.kill(9)
    with pytest.raises(ClusterError, match="broker 1 already runs"):
        cluster.start_broker(1)
    with pytest.raises(ClusterError, match="6 brokers requested; a process cluster has 1 to 5"):
        ProcessCluster("none", Path(), brokers=6)
    with pytest.raises(ClusterError, match="2 brokers need 2 different ports"):
        ProcessCluster("none", Path(), brokers=2, ports=[9092, 9092])


def test_the_cluster_is_what_the_others_expect(cluster: ProcessCluster) -> None:
    known: Cluster = cluster
    assert known.bootstrap == ",".join(f"127.0.0.1:{broker.port}" for broker in known.brokers)
    assert [type(broker) for broker in known.brokers] == [BrokerInfo] * 3


@pytest.mark.parametrize(
    ("config", "message"),
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
    message: str,
) -> None:
    with pytest.raises(ClusterError, match=message):
        ProcessCluster(run_id, tmp_path, brokers=1, config=config).start()
    assert marked(run_id) == []
    with pytest.raises(ClusterError, match="give every cluster a folder of its own"):
        ProcessCluster(run_id, tmp_path, brokers=1).start()


def test_files_left_by_a_cluster_even_if_a_broker_was_paused(
    tmp_path: Path, run_id: str, marked: Callable[[str], list[Path]]
) -> None:
    lines: list[str] = []
    with ProcessCluster(run_id, tmp_path, brokers=1, progress=lines.append) as cluster:
        assert len(marked(run_id)) == 1
        create_topic(cluster, "orders")
        with member(cluster, "orders", "whole") as consumer:
            consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        cluster.pause(1)
    assert marked(run_id) == []
    assert any("starting 127.0.0.1:" in line for line in lines)
    assert (tmp_path / "1" / "stdout.log").read_text() == ""
    assert "Completed request" not in (tmp_path / "1" / "server.log").read_text()

    log = (tmp_path / "1" / "group.log").read_text()
    assert log.endswith(SHUTDOWN_LINE)
    lines = [LINE.fullmatch(line) for line in log.splitlines()]
    fields = [line.groups() for line in lines if line]
    assert len(fields) == len(lines)
    # Threads overtake each other between numbering and writing: no gaps, but not in order.
    assert sorted(int(serial) for serial, *_ in fields) == list(range(1, len(lines) + 1))
    apis = {
        api[1]
        for _, message in fields
        if (api := re.match(rf'{COMPLETED}.*?"requestApiKeyName":"(\w+)"', message))
    }
    expected = {"JOIN_GROUP", "SYNC_GROUP", "LEAVE_GROUP", "OFFSET_COMMIT", "OFFSET_FETCH"}
    assert expected <= apis <= set(LOGGED_APIS)
    others = [message for _, message in fields if not message.startswith(COMPLETED)]
    assert all(message.startswith("[GroupCoordinator id=1") for message in others)
    assert not any("metadata image" in message for message in others)
    assert cluster.stop() == ()  # once more does no harm


def test_a_broker_that_waits_for_a_lost_quorum_is_cut_short(
    tmp_path: Path, run_id: str, marked: Callable[[str], list[Path]]
) -> None:
    with ProcessCluster(run_id, tmp_path) as cluster:
        cluster.kill(1)
        cluster.kill(3)
        cut_short = cluster.stop()
    assert marked(run_id) == []
    log = cluster.brokers[1].group_log
    assert cut_short == (CutShort(2, log.stat().st_size),)
    assert SHUTDOWN_LINE not in log.read_text()


RUNNER = """
import sys, time
from pathlib import Path
from threading import Thread
from chaos.clusters.process import ProcessCluster
run_id, folder, version, coordinator = sys.argv[1:]
cluster = ProcessCluster(run_id, Path(folder), version=version, coordinator=coordinator, brokers=1)
starting = Thread(target=cluster.start)
starting.start()
starting.join()
print("started", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("version", "coordinator", "processes"),
    [("4.3.0", "java", 1), pytest.param("2.4.1", "scala", 2, id="and a ZooKeeper")],
)
def test_brokers_end_with_a_killed_runner_but_not_with_the_thread_that_started_them(
    tmp_path: Path,
    run_id: str,
    marked: Callable[[str], list[Path]],
    version: str,
    coordinator: str,
    processes: int,
) -> None:
    runner = [sys.executable, "-c", RUNNER, run_id, str(tmp_path), version, coordinator]
    root = Path(__file__).parents[3]
    with subprocess.Popen(runner, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
            assert len(marked(run_id)) == processes
        finally:
            process.send_signal(signal.SIGKILL)
    eventually(lambda: marked(run_id) == [], "the guard to end them")
