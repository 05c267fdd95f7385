"""What containers have that processes have not."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import docker
import pytest
from docker.errors import NotFound
from docker.models.containers import Container

from chaos.clusters import ClusterError
from chaos.clusters.docker import DockerCluster
from chaos.clusters.docker_engine import LABEL, remove_marked
from chaos.clusters.factory import end_left_over
from chaos.clusters.java import find_java
from tests.chaos.clusters.clients import eventually
from tests.chaos.clusters.engine_marks import marked

pytestmark = pytest.mark.docker

RUN_ID = f"test-{os.getpid()}-containers"
"""That of the cluster which the tests share."""
SHUTDOWN_LINE = "Shutdown complete. (org.apache.kafka.coordinator.group.GroupCoordinatorService)\n"


def container_of(engine: docker.DockerClient, broker: int) -> Container:
    return engine.containers.get(f"groupquake-{RUN_ID}-{broker}")


def test_everything_carries_the_mark_and_clients_come_by_the_loopback_alone(
    containers: DockerCluster, engine: docker.DockerClient
) -> None:
    here = [container_of(engine, broker.id) for broker in containers.brokers]
    networks = {name for each in here for name in each.attrs["NetworkSettings"]["Networks"]}
    assert marked(engine, RUN_ID) == {str(each.name) for each in here} | networks
    assert len(networks) == 1, "a network of their own"
    assert [container.ports for container in here] == [
        {"9092/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(broker.port)}]}
        for broker in containers.brokers
    ]


def test_the_broker_runs_with_the_properties_of_its_folder(
    containers: DockerCluster, engine: docker.DockerClient
) -> None:
    """The broker has the properties of its folder and no others, whatever their spelling."""
    container = container_of(engine, 1)
    properties = container.exec_run(["cat", "/tmp/kafka/server.properties"]).output
    assert isinstance(properties, bytes)
    written = (containers.brokers[0].group_log.parent / "server.properties").read_text()
    assert sorted(properties.decode().split()) == sorted(written.split())
    assert "group.initial.rebalance.delay.ms=100" in written.splitlines()


def test_the_engine_pauses_kills_and_terminates(
    containers: DockerCluster, engine: docker.DockerClient
) -> None:
    container = container_of(engine, 3)
    containers.act("pause", 3)
    try:
        container.reload()
        assert container.status == "paused"
        with pytest.raises(ClusterError, match=r"the Docker engine refuses: .* is already paused"):
            containers.act("pause", 3)
    finally:
        containers.act("resume", 3)
    for end, code in (("kill", 137), ("stop", 143)):
        containers.act(end, 3)
        container.reload()
        assert (container.status, container.attrs["State"]["ExitCode"]) == ("exited", code)
        containers.act("start", 3)


def test_a_bad_property_fails_the_start(
    engine: docker.DockerClient, tmp_path: Path, run_id: str
) -> None:
    for name, config, message in (
        ("a", {"process.roles": "nonsense"}, "ended with status 1 .*nonsense.*process.roles"),
        ("b", {"some.Thing": "x"}, "some.Thing has capital letters, .* --cluster process"),
    ):
        with pytest.raises(ClusterError, match=message):
            DockerCluster(run_id, tmp_path / name, brokers=1, config=config).start()
        assert marked(engine, run_id) == set()


def test_an_image_that_nobody_has_is_told_of(
    engine: docker.DockerClient, tmp_path: Path, run_id: str
) -> None:
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
    containers: DockerCluster,
    engine: docker.DockerClient,
    docker_image: str,
    foreign: list[Container],
    foreign_java: subprocess.Popen[bytes],
    tmp_path: Path,
    run_id: str,
) -> None:
    def all_untouched() -> bool:
        others = [container_of(engine, broker.id) for broker in containers.brokers]
        for container in foreign:
            container.reload()
        return foreign_java.poll() is None and all(
            container.status == "running" for container in (*others, *foreign)
        )

    lines: list[str] = []
    first = DockerCluster(run_id, tmp_path / "first", brokers=1, progress=lines.append)
    with first as beside:
        assert f"containers of {docker_image}" in lines
        assert len(marked(engine, run_id)) == 2, "a container and a network, beside the others"
        with socket.create_connection(("127.0.0.1", beside.brokers[0].port), timeout=1):
            pass
        beside.act("pause", 1)
    assert marked(engine, run_id) == set()
    assert (tmp_path / "first" / "1" / "group.log").read_text().endswith(SHUTDOWN_LINE)
    assert all_untouched()
    beside.stop()  # once more does no harm

    abandoned = DockerCluster(run_id, tmp_path / "second", brokers=1)
    abandoned.start()
    names = marked(engine, run_id)
    abandoned.act("pause", 1)
    assert set(end_left_over(tmp_path / "second", "docker", run_id)) == names
    assert marked(engine, run_id) == set()
    assert all_untouched()
    assert end_left_over(tmp_path / "second", "docker", run_id) == ()
    abandoned.stop()  # nor does this, after somebody else has healed
