"""Releases that need a ZooKeeper, one broker each: its life, and what it leaves behind."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from confluent_kafka import TopicPartition

from chaos.clusters.factory import Place, make
from chaos.clusters.releases import release_of
from kafka_protocol.apis import LOGGED_APIS
from kafka_protocol.request_log import COMPLETED
from tests.chaos.clusters.clients import await_leaders, create_topic, eventually, member
from tests.process_family import below

pytestmark = pytest.mark.cluster


@dataclass(frozen=True)
class Life:
    """A broker that was started, killed, started again and stopped: what was seen of it."""

    version: str
    zookeepers: list[psutil.Process]
    """The ZooKeeper processes before and after the kill."""
    ended: bool
    committed: int
    folder: Path

    @property
    def group_log(self) -> list[str]:
        return (self.folder / "1" / "group.log").read_text().splitlines()


@pytest.fixture(scope="module", params=["2.4.1", "3.2.3"])
def life(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Life:
    version: str = request.param
    folder = tmp_path_factory.mktemp("old")
    config = {"group.initial.rebalance.delay.ms": 100, "zookeeper.session.timeout.ms": 6_000}
    cluster = make(
        Place(),
        f"test-{folder.parent.name}-{folder.name}",
        folder,
        version=version,
        coordinator="scala",
        brokers=1,
        config=config,
    )

    def zookeeper() -> psutil.Process:
        (found,) = below(os.getpid(), str(folder / "zookeeper" / "zookeeper.properties"))
        return found

    with cluster:
        create_topic(cluster, "orders")
        (broker,) = cluster.brokers
        with member(cluster, "orders", "fixed", group_instance_id="fixed-0") as consumer:
            consumer.commit(offsets=[TopicPartition("orders", 0, 7)], asynchronous=False)
        eventually(
            lambda: "OFFSET_COMMIT" in broker.group_log.read_text(),
            "the commit's line, which is written after its answer went out",
        )
        before = zookeeper()
        cluster.kill(1)
        cluster.start_broker(1)
        zookeepers = [before, zookeeper()]
        await_leaders(cluster, "orders")
        with member(cluster, "orders", "fixed", group_instance_id="fixed-0") as consumer:
            (kept,) = consumer.committed([TopicPartition("orders", 0)], timeout=10)
    ended = not any(process.is_running() for process in zookeepers)
    return Life(version, zookeepers, ended, kept.offset, folder)


def test_a_killed_broker_finds_its_groups_again(life: Life) -> None:
    """It comes back although ZooKeeper held it for alive when it was killed."""
    assert life.committed == 7
    starts = [line for line in life.group_log if "[GroupCoordinator 1]: Starting up." in line]
    assert len(starts) == 2


def test_zookeeper_stays_through_it_and_ends_with_the_cluster(life: Life) -> None:
    first, second = life.zookeepers
    assert first == second
    assert life.ended


def test_the_observation_log_holds_the_coordinator_and_group_requests_alone(life: Life) -> None:
    requests = [line for line in life.group_log if COMPLETED in line]
    named = (
        r'"requestApiKeyName":"(\w+)"'
        if life.version == "3.2.3"
        else r":RequestHeader\(apiKey=(\w+)"
    )
    apis = {re.search(named, line)[1] for line in requests}
    assert {"JOIN_GROUP", "SYNC_GROUP", "OFFSET_COMMIT"} <= apis <= set(LOGGED_APIS)
    others = [line for line in life.group_log if line not in requests]
    assert all("(kafka.coordinator.group." in line for line in others)
    assert any("Stabilized group fixed generation 1 " in line for line in others)
    assert life.group_log[-1].endswith(release_of(life.version).coordinators["scala"].shutdown)


def test_other_lines_are_in_the_same_files_as_with_every_release(life: Life) -> None:
    server_log = (life.folder / "1" / "server.log").read_text()
    assert COMPLETED not in server_log
    assert "DEBUG" not in server_log
    assert (life.folder / "1" / "stdout.log").read_text() == ""
    assert "ZooKeeper" in (life.folder / "zookeeper" / "stdout.log").read_text()
