"""What brokers on this machine go through, as processes and as containers, by faults."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from chaos.cluster_view import ClusterView
from chaos.clusters import BrokerInfo, Cluster, ClusterError, CutShort
from chaos.clusters.local import LocalCluster
from chaos.clusters.process import ProcessCluster
from kafka_protocol.apis import LOGGED_APIS
from kafka_protocol.request_log import COMPLETED
from scenarios.faults import Fault
from tests.chaos.clusters.clients import create_topic, eventually, member
from tests.chaos.faults.on_brokers import fault_of

LINE = re.compile(r"(\d+) \d{13} \d+ \S+ (?:INFO|DEBUG|WARN|ERROR) (.+) \([\w.$]+\)")
SHUTDOWN_LINE = "Shutdown complete. (org.apache.kafka.coordinator.group.GroupCoordinatorService)\n"


@pytest.fixture(
    params=[
        pytest.param("brokers", marks=pytest.mark.cluster),
        pytest.param("containers", marks=pytest.mark.docker),
    ]
)
def cluster(request: pytest.FixtureRequest) -> LocalCluster:
    found: LocalCluster = request.getfixturevalue(request.param)
    return found


def brokers_that_say(cluster: Cluster, text: str) -> list[int]:
    return [broker.id for broker in cluster.brokers if text in broker.group_log.read_text()]


def test_a_group_is_seen_in_the_log_of_its_coordinator_alone(cluster: LocalCluster) -> None:
    assert cluster.bootstrap == ",".join(f"127.0.0.1:{info.port}" for info in cluster.brokers)
    with member(cluster, "orders", "seen", client_id='odd}{"name'):
        pass
    for text in (
        "Preparing to rebalance group seen in state PreparingRebalance with old generation 0",
        "Stabilized group seen generation 1 with 1 members.",
        '"requestApiKeyName":"JOIN_GROUP"},"request":{"groupId":"seen"',
        "Group seen with generation 2 is now empty.",
    ):
        assert len(brokers_that_say(cluster, text)) == 1, text


@pytest.fixture
def view(cluster: LocalCluster) -> ClusterView:
    return ClusterView(cluster.bootstrap)


Break = Callable[[str, int], Fault]


@pytest.fixture
def broken(cluster: LocalCluster, view: ClusterView) -> Break:
    """Breaks a broker by a fault, which a witness has to see."""

    def break_it(keys: str, broker: int) -> Fault:
        fault = fault_of(keys, broker, cluster, view, threading.Event())
        try:
            fault.inject()
            found = fault.verify()
            assert found.holds, found.evidence
        except BaseException:
            fault.heal()  # others use these brokers, too
            raise
        return fault

    return break_it


def heal(fault: Fault) -> None:
    fault.heal()
    back = fault.verify_healed()
    assert back.holds, back.evidence
    assert back.evidence.endswith("according to broker 1, 2, 3")


def starts(info: BrokerInfo) -> list[str]:
    """The first line of each start of a broker: the JVM counts its lines from 1."""
    return [line for line in info.group_log.read_text().splitlines() if line.startswith("1 ")]


def test_a_killed_broker_restarts_where_it_was(
    cluster: LocalCluster, view: ClusterView, broken: Break
) -> None:
    with member(cluster, "orders", "survivor", group_instance_id="survivor-0"):
        (coordinator,) = brokers_that_say(cluster, "Stabilized group survivor")
    before = dict(cluster.process_ids)
    info = cluster.brokers[coordinator - 1]
    started = len(starts(info))
    cluster.act("pause", coordinator)  # SIGKILL does not care
    fault = broken("fault: broker.kill, down_for: 1s", coordinator)
    assert before.keys() - cluster.process_ids.keys() == {coordinator}
    assert not info.group_log.read_text().endswith(SHUTDOWN_LINE)
    for verb in ("kill", "stop", "pause", "resume"):
        with pytest.raises(ClusterError, match=f"broker {coordinator} does not run; start it"):
            cluster.act(verb, coordinator)

    with info.group_log.open("a") as log:
        log.write("7 cut off")  # as SIGKILL does to a long line
    eventually(
        lambda: bool(brokers_that_say(cluster, "Loaded classic group survivor with 1 members.")),
        "another broker to load the group",
    )
    heal(fault)
    assert all(view.in_sync(broker.address) == {1, 2, 3} for broker in cluster.brokers)
    assert cluster.process_ids.keys() == before.keys()
    assert cluster.process_ids[coordinator] != before[coordinator]
    assert "7 cut off" in info.group_log.read_text().splitlines()
    assert len(starts(info)) == started + 1, "one log"


def test_a_stopped_broker_logs_its_shutdown_last(
    cluster: LocalCluster, view: ClusterView, broken: Break
) -> None:
    leader = view.leader("orders", 1)
    cluster.act("pause", leader)  # stopping lets it go on
    fault = broken("fault: broker.restart", leader)
    assert cluster.brokers[leader - 1].group_log.read_text().endswith(SHUTDOWN_LINE)
    eventually(lambda: view.leader("orders", 1) != leader, "another leader")
    heal(fault)
    assert leader in cluster.process_ids


def test_a_paused_broker_takes_connections_and_does_nothing(
    cluster: LocalCluster, view: ClusterView, broken: Break
) -> None:
    controller = view.controller()
    state = Path(f"/proc/{cluster.process_ids[controller]}/status")
    asleep = "State:\tT" if isinstance(cluster, ProcessCluster) else None
    fault = broken("fault: broker.pause, down_for: 1s", controller)
    try:
        assert asleep is None or asleep in state.read_text()
        threading.Event().wait(0.3)  # an answer would have come by now
        assert fault.verify().holds
    finally:
        heal(fault)
    assert asleep is None or asleep not in state.read_text()
    cluster.act("resume", controller)  # a heal may come twice


def test_impossible_operations_are_reported(cluster: LocalCluster) -> None:
    with pytest.raises(ClusterError, match="there is no broker 9; brokers are 1, 2, 3"):
        cluster.act("kill", 9)
    with pytest.raises(ClusterError, match="broker 1 already runs"):
        cluster.act("start", 1)


@pytest.mark.cluster
def test_a_bad_property_fails_the_start(
    tmp_path: Path, run_id: str, marked: Callable[[str], list[Path]]
) -> None:
    for name, config, message in (
        ("a", {"process.roles": "nonsense"}, "cannot be formatted: .*nonsense.*process.roles"),
        ("b", {"metric.reporters": "no.Such"}, "with status 1 .*Class no.Such cannot be found"),
    ):
        with pytest.raises(ClusterError, match=message):
            ProcessCluster(run_id, tmp_path / name, brokers=1, config=config).start()
        assert marked(run_id) == []
    with pytest.raises(ClusterError, match="give every cluster a folder of its own"):
        ProcessCluster(run_id, tmp_path / "a", brokers=1).start()


@pytest.mark.cluster
def test_files_left_by_a_cluster_even_if_a_broker_was_paused(
    tmp_path: Path, run_id: str, marked: Callable[[str], list[Path]]
) -> None:
    lines: list[str] = []
    with ProcessCluster(run_id, tmp_path, brokers=1, progress=lines.append) as cluster:
        assert len(marked(run_id)) == 1
        create_topic(cluster, "orders")
        with member(cluster, "orders", "whole") as consumer:
            consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        cluster.act("pause", 1)
    assert marked(run_id) == []
    assert any("starting 127.0.0.1:" in line for line in lines)
    assert any(line.startswith("ready after") for line in lines)
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


@pytest.mark.cluster
def test_a_broker_that_waits_for_a_lost_quorum_is_cut_short(
    tmp_path: Path, run_id: str, marked: Callable[[str], list[Path]]
) -> None:
    with ProcessCluster(run_id, tmp_path, brokers=2) as cluster:
        cluster.act("kill", 1)
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
run_id, folder = sys.argv[1:]
cluster = ProcessCluster(run_id, Path(folder), version="2.4.1", coordinator="scala", brokers=1)
starting = Thread(target=cluster.start)
starting.start()
starting.join()
print("started", flush=True)
time.sleep(600)
"""


@pytest.mark.cluster
def test_brokers_end_with_a_killed_runner_but_not_with_the_thread_that_started_them(
    tmp_path: Path, run_id: str, marked: Callable[[str], list[Path]]
) -> None:
    """So does their ZooKeeper."""
    runner = [sys.executable, "-c", RUNNER, run_id, str(tmp_path)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(runner, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
            assert len(marked(run_id)) == 2
        finally:
            process.send_signal(signal.SIGKILL)
    eventually(lambda: marked(run_id) == [], "the guard to end them")
