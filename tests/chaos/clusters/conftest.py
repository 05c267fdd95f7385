import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from chaos.clusters.docker import DockerCluster
from chaos.clusters.guard import mark
from tests.chaos.clusters.clients import create_topic

_numbers = itertools.count(1)


@pytest.fixture
def run_id() -> str:
    """A mark that no other test and no other test run uses."""
    return f"test-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def marked() -> Callable[[str], list[Path]]:
    """The processes (folders under /proc) that carry the mark of a run."""

    def find(run_id: str) -> list[Path]:
        def carries(folder: Path) -> bool:
            try:
                return mark(run_id).encode() in (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                return False

        return [folder for folder in Path("/proc").glob("[0-9]*") if carries(folder)]

    return find


@pytest.fixture(scope="session")
def engine(docker_image: str) -> Iterator[docker.DockerClient]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture(scope="session")
def containers(
    engine: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DockerCluster]:
    """Three brokers in containers with a topic `orders`; every test leaves them running."""
    config = {"group.initial.rebalance.delay.ms": 100}
    folder = tmp_path_factory.mktemp("cluster: containers")
    with DockerCluster(f"test-{os.getpid()}-containers", folder, config=config) as started:
        create_topic(started, "orders")
        yield started
