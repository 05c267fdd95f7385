import re
from pathlib import Path

import pytest

from chaos.clusters import ClusterError
from chaos.clusters.docker import DockerCluster
from chaos.clusters.factory import end_left_over


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    where = f"unix://{tmp_path}/docker.sock"
    monkeypatch.setenv("DOCKER_HOST", where)
    return where


def test_a_missing_engine_is_reported_with_what_to_do(no_engine: str, tmp_path: Path) -> None:
    message = rf"no Docker engine answers at {re.escape(no_engine)} .*start it, or use --cluster"
    with pytest.raises(ClusterError, match=message):
        DockerCluster("none", tmp_path).start()
    assert list(tmp_path.iterdir()) == []


def test_what_is_left_of_containers_cannot_be_ended_without_the_engine(
    no_engine: str, tmp_path: Path
) -> None:
    with pytest.raises(ClusterError, match="no Docker engine answers"):
        end_left_over(tmp_path, "docker", "none")
