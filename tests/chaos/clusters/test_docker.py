import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import docker
import pytest
from docker.errors import NotFound
from docker.models.containers import Container

from chaos.clusters import Cluster, ClusterError
from chaos.clusters.docker import DockerCluster
from chaos.clusters.docker_engine import LABEL, remove_marked
from chaos.clusters.factory import end_left_over
from chaos.clusters.java import find_java
from tests.chaos.clusters.clients import create_topic, eventually, member
from tests.chaos.clusters.engine_marks import marked

pytestmark = pytest.mark.docker

CONFIG = {"group.initial.rebalance.delay.ms": 100}
RUN_ID = f"test-{os.getpid()}-containers"
"""That of the cluster which the tests share."""
SHUTDOWN_LINE = "Shutdown complete. (org.apache.kafka.coordinator.group.GroupCoordinatorService)\n"


@pytest.fixture(scope="module")
def engine(docker_image: str) -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture(scope="module")
def cluster(
    engine: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DockerCluster]:
    """Three brokers for all tests; each test leaves them running."""
    folder = tmp_path_factory.mktemp("cluster: containers")
    with DockerCluster(RUN_ID, folder, config=CONFIG) as started:
        create_topic(started, "orders")
        yield started


def container_of(engine: docker.DockerClient, broker: int) -> Container:
    return engine.containers.get(f"groupquake-{RUN_ID}-{broker}")


def brokers_that_say(cluster: Cluster, text: str) -> list[int]:
    return [broker.id for broker in cluster.brokers if text in broker.group_log.read_text()]


def test_a_group_is_seen_in_the_log_of_its_coordinator_alone(cluster: DockerCluster) -> None:
    with member(cluster, "orders", "seen", client_id='odd}{"name'):
        pass
    for text in (
        "Preparing to rebalance group seen in state PreparingRebalance with old generation 0",
        "Stabilized group seen generation 1 with 1 members.",
        '"requestApiKeyName":"JOIN_GROUP"},"request":{"groupId":"seen"',
        "Group seen with generation 2 is now empty.",
    ):
        assert len(brokers_that_say(cluster, text)) == 1, text


def test_everything_carries_the_mark_and_clients_come_by_the_loopback_alone(
    cluster: DockerCluster, engine: docker.DockerClient
) -> None:
    containers = [container_of(engine, broker.id) for broker in cluster.brokers]
    networks = {name for each in containers for name in each.attrs["NetworkSettings"]["Networks"]}
    assert marked(engine, RUN_ID) == {str(each.name) for each in containers} | networks
    assert len(networks) == 1, "a network of their own"
    published = [container.ports for container in containers]
    assert published == [
        {"9092/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(broker.port)}]}
        for broker in cluster.brokers
    ]


def test_the_broker_runs_with_the_properties_of_its_folder(
    cluster: DockerCluster, engine: docker.DockerClient
) -> None:
    """The broker has the properties of its folder and no others, whatever their spelling."""
    container = container_of(engine, 1)
    properties = container.exec_run(["cat", "/tmp/kafka/server.properties"]).output
    assert isinstance(properties, bytes)
    written = (cluster.brokers[0].group_log.parent / "server.properties").read_text()
    assert sorted(properties.decode().split()) == sorted(written.split())
    assert "group.initial.rebalance.delay.ms=100" in written.splitlines()


def test_a_killed_broker_restarts_where_it_was(
    cluster: DockerCluster, engine: docker.DockerClient
) -> None:
    with member(cluster, "orders", "survivor", group_instance_id="survivor-0"):
        (coordinator,) = brokers_that_say(cluster, "Stabilized group survivor")
    container = container_of(engine, coordinator)
    info = cluster.brokers[coordinator - 1]
    cluster.pause(coordinator)  # SIGKILL does not care
    cluster.kill(coordinator)
    container.reload()
    assert (container.status, container.attrs["State"]["ExitCode"]) == ("exited", 137)
    assert coordinator not in cluster.process_ids
    assert not info.group_log.read_text().endswith(SHUTDOWN_LINE)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", info.port), timeout=1)
    for verb in (cluster.kill, cluster.stop_broker, cluster.pause, cluster.resume):
        with pytest.raises(ClusterError, match=f"broker {coordinator} does not run; start it"):
            verb(coordinator)

    with info.group_log.open("a") as log:
        log.write("7 cut off")  # as SIGKILL does to a long line
    eventually(
        lambda: bool(brokers_that_say(cluster, "Loaded classic group survivor with 1 members.")),
        "another broker to load the group",
    )
    cluster.start_broker(coordinator)
    container.reload()
    assert container.status == "running"
    with socket.create_connection(("127.0.0.1", info.port), timeout=1):
        pass
    lines = info.group_log.read_text().splitlines()
    assert "7 cut off" in lines
    starts = [line for line in lines if line.startswith("1 ")]
    assert len(starts) == 2, "one log, in which every start of the JVM counts from 1"


def test_a_stopped_broker_logs_its_shutdown_last(
    cluster: DockerCluster, engine: docker.DockerClient
) -> None:
    info = cluster.brokers[0]
    container = container_of(engine, info.id)
    cluster.pause(info.id)  # stopping lets it go on
    cluster.stop_broker(info.id)
    container.reload()
    assert container.attrs["State"]["ExitCode"] == 143, "the JVM's own end after SIGTERM"
    assert info.group_log.read_text().endswith(SHUTDOWN_LINE)
    cluster.start_broker(info.id)
    assert info.id in cluster.process_ids


def test_a_paused_broker_holds_its_breath(
    cluster: DockerCluster, engine: docker.DockerClient
) -> None:
    info = cluster.brokers[2]
    container = container_of(engine, info.id)
    cluster.pause(info.id)
    try:
        container.reload()
        assert container.status == "paused"
        with socket.create_connection(("127.0.0.1", info.port), timeout=1):
            pass  # somebody still takes connections
    finally:
        cluster.resume(info.id)
    container.reload()
    assert container.status == "running"


def test_impossible_operations_are_reported(cluster: DockerCluster) -> None:
    with pytest.raises(ClusterError, match="there is no broker 9; brokers are 1, 2, 3"):
        cluster.kill(9)
    with pytest.raises(ClusterError, match="broker 1 already runs"):
        cluster.start_broker(1)
    cluster.resume(1)  # a heal may come twice
    cluster.pause(1)
    try:
        with pytest.raises(ClusterError, match=r"the Docker engine refuses: .* is already paused"):
            cluster.pause(1)
    finally:
        cluster.resume(1)
    with pytest.raises(ClusterError, match="6 brokers requested; a docker cluster has 1 to 5"):
        DockerCluster("none", Path(), brokers=6)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"process.roles": "nonsense"}, "ended with status 1 .*nonsense.*process.roles"),
        ({"metric.reporters": "no.Such"}, "ended with status 1 .*Class no.Such cannot be found"),
        ({"some.Thing": "x"}, "property some.Thing has capital letters, .* --cluster process"),
    ],
)
def test_a_bad_property_fails_the_start(
    engine: docker.DockerClient, tmp_path: Path, run_id: str, config: dict[str, str], message: str
) -> None:
    with pytest.raises(ClusterError, match=message):
        DockerCluster(run_id, tmp_path, brokers=1, config=config).start()
    assert marked(engine, run_id) == set()


def test_an_image_of_another_release_is_refused(
    engine: docker.DockerClient, docker_image: str, tmp_path: Path, run_id: str
) -> None:
    began = int(time.time())
    with pytest.raises(ClusterError, match=r"kafka:4\.3\.0 does not hold Kafka 4\.2\.0 .*--kafka"):
        DockerCluster(run_id, tmp_path, version="4.2.0", image=docker_image).start()
    assert marked(engine, run_id) == set()
    own = {"type": "container", "label": f"{LABEL}={run_id}"}
    past = engine.events(since=began, until=int(time.time()) + 1, filters=own, decode=True)
    assert {"create", "destroy"} <= {event["Action"] for event in past}, "it carried the mark"
    with pytest.raises(ClusterError, match="no image groupquake/none, and it cannot be pulled"):
        DockerCluster(run_id, tmp_path, image="groupquake/none").start()
    assert list(tmp_path.iterdir()) == []


RUNNER = """
import sys, time
from pathlib import Path
from chaos.clusters.docker import DockerCluster
DockerCluster(sys.argv[1], Path(sys.argv[2]), brokers=1).start()
print("started", flush=True)
time.sleep(600)
"""


def test_containers_end_with_a_killed_runner(
    engine: docker.DockerClient, tmp_path: Path, run_id: str
) -> None:
    runner = [sys.executable, "-c", RUNNER, run_id, str(tmp_path)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(runner, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
            assert len(marked(engine, run_id)) == 2, "a container and a network"
        finally:
            process.send_signal(signal.SIGKILL)
    eventually(lambda: marked(engine, run_id) == set(), "the guard to remove them")


def test_several_may_remove_the_same_at_the_same_time(
    engine: docker.DockerClient, docker_image: str, run_id: str
) -> None:
    labels = {LABEL: run_id}
    network = engine.networks.create(f"groupquake-{run_id}-network", labels=labels)
    engine.containers.run(
        docker_image, ["sleep", "600"], detach=True, labels=labels, network=network.name
    )
    with ThreadPoolExecutor() as pool:
        list(pool.map(remove_marked, [run_id] * 4))
    assert marked(engine, run_id) == set()


@pytest.fixture
def foreign(engine: docker.DockerClient, docker_image: str) -> Iterator[list[Container]]:
    """Containers that no run of ours made, one of them of another run."""
    made = [
        engine.containers.run(docker_image, ["sleep", "600"], detach=True, labels=labels)
        for labels in ({}, {LABEL: "another run"}, {LABEL + ".x": "1"})
    ]
    yield made
    for container in made:
        with suppress(NotFound):
            container.remove(force=True)


@pytest.fixture
def foreign_java() -> Iterator[subprocess.Popen[bytes]]:
    """A JVM that no run of ours started."""
    registry = ["-m", "java.rmi/sun.rmi.registry.RegistryImpl", "0"]
    with subprocess.Popen([find_java(), *registry]) as process:
        yield process
        process.kill()


def test_only_what_the_run_made_is_removed_by_its_end_and_by_healing(
    cluster: DockerCluster,
    engine: docker.DockerClient,
    foreign: list[Container],
    foreign_java: subprocess.Popen[bytes],
    tmp_path: Path,
    run_id: str,
) -> None:
    def all_untouched() -> bool:
        others = [container_of(engine, broker.id) for broker in cluster.brokers]
        for container in foreign:
            container.reload()
        return foreign_java.poll() is None and all(
            container.status == "running" for container in (*others, *foreign)
        )

    with DockerCluster(run_id, tmp_path / "first", brokers=1) as beside:
        names = marked(engine, run_id)
        assert len(names) == 2, "a container and a network, beside those of the other cluster"
        assert beside.bootstrap not in cluster.bootstrap
        beside.pause(1)
    assert marked(engine, run_id) == set()
    assert (tmp_path / "first" / "1" / "group.log").read_text().endswith(SHUTDOWN_LINE)
    assert all_untouched()
    beside.stop()  # once more does no harm

    abandoned = DockerCluster(run_id, tmp_path / "second", brokers=1)
    abandoned.start()
    names = marked(engine, run_id)
    abandoned.pause(1)
    assert set(end_left_over(tmp_path / "second", "docker", run_id)) == names
    assert marked(engine, run_id) == set()
    assert all_untouched()
    assert end_left_over(tmp_path / "second", "docker", run_id) == ()
    abandoned.stop()  # nor does this, after somebody else has healed


def test_progress_lines_name_the_image(
    engine: docker.DockerClient, docker_image: str, tmp_path: Path, run_id: str
) -> None:
    lines: list[str] = []
    cluster = DockerCluster(run_id, tmp_path, brokers=1, progress=lines.append)
    with cluster:
        assert re.fullmatch(r"127\.0\.0\.1:\d+", cluster.bootstrap)
    assert f"containers of {docker_image}" in lines
    assert any(line.startswith("ready after") for line in lines)
    with pytest.raises(NotFound):
        engine.containers.get(f"groupquake-{run_id}-1")
