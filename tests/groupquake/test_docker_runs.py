"""What becomes of runs in containers without an engine or without a runner."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from chaos.clusters.docker_engine import LABEL, remove_marked
from groupquake.open_runs import OpenRun
from tests.groupquake.conftest import Command, arguments
from tests.groupquake.test_whole_run import await_event
from tests.process_family import below


@pytest.fixture
def engine(docker_image: str) -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.mark.long
@pytest.mark.docker
def test_healing_removes_the_containers_that_a_killed_runner_and_its_guard_left(
    groupquake: Command, small: Path, tmp_path: Path, engine: docker.DockerClient
) -> None:
    small.write_text(small.read_text().replace("down_for: 1s}", "down_for: 1m}"))
    with subprocess.Popen(
        arguments("run", small, "--cluster", "docker"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        await_event(tmp_path, "injected", process)
        guard = str(Path("chaos", "clusters", "guard.py"))
        for child in below(process.pid, guard):
            child.kill()
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    folder = tmp_path / "runs" / "latest"
    run_id = str(OpenRun.of(folder / "journal.jsonl").run_id)
    (container,) = engine.containers.list(filters={"label": f"{LABEL}={run_id}"})
    assert container.status == "running"

    unreachable = groupquake("heal", folder, env={"DOCKER_HOST": f"unix://{tmp_path}/none"})
    assert unreachable.code == 5
    assert "NOT HEALED: the rest of the cluster: no Docker engine answers" in unreachable.err
    done = groupquake("heal", folder)
    assert done.code == 0, done.err
    assert f"ended the rest of the run: {container.name}, " in done.out
    assert remove_marked(run_id) == ()


def test_a_run_in_containers_without_an_engine(
    groupquake: Command, small: Path, tmp_path: Path
) -> None:
    env = {"DOCKER_HOST": f"unix://{tmp_path}/none"}
    done = groupquake("run", small, "--cluster", "docker", env=env)
    assert done.code == 3
    assert f"no Docker engine answers at unix://{tmp_path}/none (No such file" in done.err
    assert "start it, or use --cluster process" in done.err
    assert "Traceback" not in done.err


def test_a_fault_between_brokers_implies_containers(groupquake: Command, tmp_path: Path) -> None:
    env = {"DOCKER_HOST": f"unix://{tmp_path}/none"}
    done = groupquake("run", "partitioned-coordinator", env=env)
    assert done.code == 3
    assert "no Docker engine answers" in done.err
    done = groupquake("run", "partitioned-coordinator", "--cluster", "process")
    assert done.code == 64
    assert "broker.partition needs brokers with a network and a clock of their own" in done.err
    assert "use --cluster docker, or leave the fault out" in done.err


OF_ANOTHER_KIND = (
    (("--image", "apache/kafka:4.3.0"), "--image is for --cluster docker"),
    (("--cluster", "docker", "--kafka-home", "."), "--kafka-home is for --cluster process"),
    (("--cluster", "podman"), "'podman' is not one of 'process', 'docker'"),
)


def test_options_of_another_kind_of_cluster(groupquake: Command, small: Path) -> None:
    for words, message in OF_ANOTHER_KIND:
        done = groupquake("run", small, *words)
        assert done.code == 64
        assert message in done.err
