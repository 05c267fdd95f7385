"""Faults of the network between brokers, on containers."""

import io
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.cluster_view import ClusterView
from chaos.clusters import ClusterError
from chaos.clusters.docker import DockerCluster
from chaos.clusters.docker_engine import engine, remove_marked
from chaos.errors import ChaosError
from tests.chaos.clusters.clients import create_topic, eventually, member
from tests.chaos.faults.on_brokers import fault_of
from tests.conftest import SOON_BACK

CONFIG = {"group.initial.rebalance.delay.ms": 100, **SOON_BACK}


@pytest.fixture(scope="module")
def cluster(docker_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerCluster]:
    """Three brokers whose network may be broken; each test leaves them in sync."""
    folder = tmp_path_factory.mktemp("between")
    networks = ("part", "slow")
    with DockerCluster(
        f"test-{os.getpid()}-between", folder, config=CONFIG, networks=networks
    ) as started:
        create_topic(started, "orders")
        yield started


PARTITION = "fault: broker.partition, for: 1s"


@pytest.mark.docker
def test_a_coordinator_is_parted_and_another_takes_over(
    cluster: DockerCluster, stop: threading.Event
) -> None:
    view = ClusterView(cluster.bootstrap)
    with member(cluster, "orders", "parted"):
        coordinator = view.coordinator("parted")
        others = [info for info in cluster.brokers if info.id != coordinator]
        fault = fault_of(PARTITION, coordinator, cluster, view, stop)
        assert not fault.verify().holds, "nothing is known of before"
        fault.inject()
        found = fault.verify()
        assert found.holds, found.evidence
        assert f"does not reach broker {others[0].id} or {others[1].id}" in found.evidence
        # the others have it fenced, and it goes on by itself
        address = others[0].address
        eventually(lambda: coordinator not in view.in_sync(address), "its being fenced")
        new = view.coordinator("parted", address)
        assert new != coordinator
        assert fault.heal() == "packets pass"
        assert fault.heal() == "packets pass"
        back = fault.verify_healed()
        assert back.holds, back.evidence
        assert not fault.verify().holds, "it reaches them again"


@pytest.mark.docker
def test_what_a_broker_sends_to_the_others_is_slow(
    cluster: DockerCluster, stop: threading.Event
) -> None:
    keys = "fault: broker.slow-network, for: 3s, rate: 1kbit"
    slow = fault_of(keys, 2, cluster, ClusterView(cluster.bootstrap), stop)
    slow.inject()
    eventually(lambda: slow.verify().holds, "a packet that waits")
    assert "bytes at 1kbit, and had to wait" in slow.verify().evidence
    assert slow.heal() == "no limit"
    assert slow.heal() == "no limit"
    with pytest.raises(ClusterError, match="tc class show"):  # nothing is limited any more
        slow.verify()
    back = slow.verify_healed()
    assert back.holds, back.evidence


@pytest.mark.docker
def test_containers_get_the_capability_only_where_a_fault_needs_it(
    docker_image: str, tmp_path: Path
) -> None:
    with DockerCluster(f"test-{os.getpid()}-plain", tmp_path, brokers=1, config=CONFIG) as plain:
        with pytest.raises(ClusterError, match="without NET_ADMIN"):
            plain.network()
        with pytest.raises(ChaosError, match="without NET_ADMIN"):
            fault_of(PARTITION, 1, plain, None, threading.Event()).inject()


@pytest.fixture
def without_tc(docker_image: str) -> Iterator[str]:
    """An image that lacks tc."""
    name = f"groupquake-test/without-tc:{os.getpid()}"
    text = f"FROM {docker_image}\nRUN rm $(command -v tc)\n".encode()
    with engine() as client:
        client.images.build(fileobj=io.BytesIO(text), tag=name, rm=True)
        yield name
        client.images.remove(name)


@pytest.mark.docker
def test_an_image_that_cannot_do_it_ends_before_the_load(without_tc: str, tmp_path: Path) -> None:
    cluster = DockerCluster(
        f"test-{os.getpid()}-unable",
        tmp_path,
        image=without_tc,
        brokers=1,
        config=CONFIG,
        networks=("part", "slow"),
    )
    with pytest.raises(ClusterError, match=r"broker\.slow-network needs tc in the image"):
        cluster.start()
    assert remove_marked(f"test-{os.getpid()}-unable") == (), "it left containers behind"
