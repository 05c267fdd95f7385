"""What releases need to be started, and the properties that their brokers get."""

import re
from pathlib import Path, PurePosixPath

import pytest

from chaos.clusters import ClusterError, image
from chaos.clusters.docker import DockerCluster
from chaos.clusters.factory import Place, end_left_over, make
from chaos.clusters.process import ProcessCluster
from chaos.clusters.releases import (
    choosing,
    jvm_log_option,
    kraft,
    release_of,
    server_properties,
    with_zookeeper,
)
from scenarios.releases import SUPPORTED_LINES

IDENTITY = kraft(2, {1: "a:9101", 2: "b:9102"})
NETWORK = {"listeners": "PLAINTEXT://b:9002,CONTROLLER://b:9102"}
DATA = Path("/data")


def test_every_line_of_releases_can_be_started() -> None:
    for line in SUPPORTED_LINES:
        release = release_of(".".join(map(str, (*line.first, 0))))
        assert release.logging.is_file()
        assert release.zookeeper is (line.first < (3, 3))


def test_the_coordinator_is_switched_where_there_are_two() -> None:
    switch = "group.coordinator.new.enable"
    assert choosing("3.9.1", "scala") == {switch: False}
    assert choosing("3.8.1", "java") == {switch: True}
    assert choosing("4.3.0", "java") == {}
    assert choosing("3.6.2", "scala") == {}, "it knows no such property"


def test_a_cluster_refuses_before_it_does_anything() -> None:
    for settings, message in (
        ({"version": "2.3.1"}, r"Kafka 2\.3\.1 is not supported; use 2\.4-2\.7, .* or 4\.x"),
        ({"coordinator": "scala"}, r"Kafka 4\.3\.0 cannot be run with the scala .*; write java"),
        ({"brokers": 6}, "6 brokers requested; a process cluster has 1 to 5"),
        ({"ports": (9092, 9093)}, "3 brokers need 3 different ports"),
        ({"ports": (9092, 9092, 9093)}, "3 brokers need 3 different ports"),
        ({"ports": (9092, 9093, 9094, 9095)}, "3 brokers need 3 different ports"),
    ):
        with pytest.raises(ClusterError, match=message):
            ProcessCluster("none", Path(), **settings)


@pytest.mark.parametrize("version", ["2.4.1", "3.2.3", "3.8.1"])
def test_containers_are_refused_for_releases_that_were_never_tried_in_them(version: str) -> None:
    message = rf"Kafka {version} cannot be run in containers; .* process, or 3\.9 or 4\.x"
    with pytest.raises(ClusterError, match=message):
        make(Place("docker"), "none", Path(), version=version, coordinator="scala")
    with pytest.raises(ClusterError, match=message):
        image.build(version, print)


def test_a_missing_engine_is_reported_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = f"unix://{tmp_path}/docker.sock"
    monkeypatch.setenv("DOCKER_HOST", where)
    message = rf"no Docker engine answers at {re.escape(where)} .*start it, or use --cluster"
    with pytest.raises(ClusterError, match=message):
        DockerCluster("none", tmp_path).start()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ClusterError, match=message):
        end_left_over(tmp_path, "docker", "none")


def test_where_a_jvm_logs() -> None:
    """A container sees the logging file under a path of its own; a path may have a colon."""
    logging, folder = PurePosixPath("/observation/log4j.properties"), PurePosixPath("/observation")
    assert release_of("3.9.1").logging_options(logging, folder) == (
        "-Duser.timezone=UTC",
        "-Dgroupquake.folder=/observation",
        "-Dlog4j.configuration=file:///observation/log4j.properties",
        "-Xlog:safepoint*,gc*:file=/observation/jvm-%p-%t.log:timemillis,tags:filecount=0",
    )
    option = jvm_log_option(PurePosixPath("/a:b"))
    assert option == '-Xlog:safepoint*,gc*:file="/a:b/jvm-%p-%t.log":timemillis,tags:filecount=0'


def read(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_a_broker_with_a_zookeeper_has_no_controller_properties() -> None:
    """Kafka 2.4 to 2.7 do not know such properties."""
    network = {"listeners": "PLAINTEXT://b:9002"}
    text = server_properties(with_zookeeper(2, "z:2181"), 1, network, DATA, {})
    assert {"broker.id": "2", "zookeeper.connect": "z:2181"}.items() <= read(text).items()
    assert not re.search(r"node\.id|process\.roles|controller|CONTROLLER", text)
    for brokers, replicas in ((1, "1"), (2, "2"), (3, "3"), (5, "3")):
        properties = read(server_properties(IDENTITY, brokers, NETWORK, DATA, {}))
        assert properties["offsets.topic.replication.factor"] == replicas


def test_properties_of_the_experiment_win_and_survive_the_format() -> None:
    overrides = {
        "offsets.topic.num.partitions": 1,
        "auto.create.topics.enable": True,
        "listeners": "PLAINTEXT://c:1",
        "zookeeper.session.timeout.ms": 18_000,
        "a": "C:\\x",
        "b": "1\n2",
    }
    text = server_properties(with_zookeeper(2, "z:2181"), 2, NETWORK, DATA, overrides)
    written = {
        "offsets.topic.num.partitions": "1",
        "auto.create.topics.enable": "true",
        "listeners": "PLAINTEXT://c:1",
        "zookeeper.session.timeout.ms": "18000",
        "a": "C:\\\\x",
        "b": "1\\n2",
    }
    assert written.items() <= read(text).items()
