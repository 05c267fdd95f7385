from pathlib import Path, PurePosixPath

import pytest

from chaos.clusters import ClusterError, image
from chaos.clusters.factory import Place, make
from chaos.clusters.process import ProcessCluster
from chaos.clusters.releases import jvm_log_option, release_of
from scenarios.releases import LINES


def test_every_release_that_can_be_run_is_listed() -> None:
    """Every row of the table of releases has its row here, with the same coordinators."""
    for line in LINES:
        release = release_of(".".join(map(str, (*line.first, 0))))
        assert release.logging.is_file()
        assert set(release.coordinators) == set(line.coordinators)


def test_a_cluster_refuses_before_it_does_anything() -> None:
    with pytest.raises(
        ClusterError, match=r"Kafka 2\.3\.1 is not supported; use 2\.4-2\.7, .* or 4\.x"
    ):
        ProcessCluster("none", Path(), version="2.3.1")
    with pytest.raises(
        ClusterError, match=r"Kafka 4\.3\.0 cannot be run with the scala .*; write java"
    ):
        ProcessCluster("none", Path(), version="4.3.0", coordinator="scala")


@pytest.mark.parametrize(
    "ports", [(9092, 9093), (9092, 9092, 9093), (9092, 9092, 9093, 9094), (9092, 9093, 9094, 9095)]
)
def test_a_cluster_takes_one_port_for_each_broker(ports: tuple[int, ...]) -> None:
    with pytest.raises(ClusterError, match="3 brokers need 3 different ports"):
        ProcessCluster("none", Path(), ports=ports)


def test_the_coordinator_is_switched_where_there_are_two() -> None:
    switch = "group.coordinator.new.enable"
    there = release_of("3.9.1").coordinators
    assert there["scala"].properties == {switch: False}
    assert there["java"].properties == {switch: True}
    assert release_of("4.3.0").coordinators["java"].properties == {}
    assert release_of("3.6.2").coordinators["scala"].properties == {}, "it knows no such property"
    assert release_of("3.8.1").coordinators["java"].properties == {switch: True}


@pytest.mark.parametrize(
    ("version", "zookeeper"),
    [("2.4.1", True), ("2.8.1", True), ("3.2.3", True), ("3.3.1", False), ("4.3.0", False)],
)
def test_metadata_lives_in_a_zookeeper_before_3_3(version: str, zookeeper: bool) -> None:
    assert release_of(version).zookeeper is zookeeper


@pytest.mark.parametrize("version", ["2.4.1", "3.2.3", "3.8.1"])
def test_containers_are_refused_for_releases_that_were_never_tried_in_them(version: str) -> None:
    message = rf"Kafka {version} cannot be run in containers; .* process, or 3\.9 or 4\.x"
    with pytest.raises(ClusterError, match=message):
        make(Place("docker"), "none", Path(), version=version, coordinator="scala")
    with pytest.raises(ClusterError, match=message):
        image.build(version, print)


def test_the_logging_file_may_lie_elsewhere_than_here() -> None:
    """A container sees it under a path of its own."""
    logging, folder = PurePosixPath("/observation/log4j.properties"), PurePosixPath("/observation")
    assert release_of("3.9.1").logging_options(logging, folder) == (
        "-Duser.timezone=UTC",
        "-Dgroupquake.folder=/observation",
        "-Dlog4j.configuration=file:///observation/log4j.properties",
        "-Xlog:safepoint*,gc*:file=/observation/jvm-%p-%t.log:timemillis,tags:filecount=0",
    )


def test_the_log_of_the_jvm_may_lie_in_a_folder_with_a_colon() -> None:
    option = jvm_log_option(PurePosixPath("/a:b"))
    assert option == '-Xlog:safepoint*,gc*:file="/a:b/jvm-%p-%t.log":timemillis,tags:filecount=0'
