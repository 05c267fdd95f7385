"""One broker's life with older releases and each of their coordinators, and what it leaves.

Before 3.3 there is a ZooKeeper; up to 3.9 there is log4j 1.
"""

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from confluent_kafka import TopicPartition

from chaos.clusters.factory import Place, make
from chaos.clusters.releases import SHUTDOWN_LINES, release_of
from kafka_protocol.apis import LOGGED_APIS
from kafka_protocol.request_log import COMPLETED
from tests.chaos.clusters.clients import await_leaders, create_topic, eventually, member
from tests.conftest import SOON_BACK
from tests.process_family import below

pytestmark = pytest.mark.cluster

LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) \S+ (?P<level>INFO|DEBUG|WARN|ERROR)"
    r" (?P<message>.+) \((?P<logger>[\w.$]+)\)"
)
SCALA = "kafka.coordinator.group.GroupCoordinator"
JAVA = "org.apache.kafka.coordinator.group.GroupCoordinatorService"
FIRST = {
    "scala": f"[GroupCoordinator 1]: Starting up. ({SCALA})",
    "java": f"[GroupCoordinator id=1] Starting up. ({JAVA})",
}
LAST = {
    "scala": f"[GroupCoordinator 1]: Shutdown complete. ({SCALA})",
    "java": f"[GroupCoordinator id=1] Shutdown complete. ({JAVA})",
}
LINES = {
    "scala": (
        "INFO [GroupCoordinator 1]: Static member with groupInstanceId=fixed-0 and unknown",
        "INFO [GroupCoordinator 1]: Stabilized group fixed generation 1 (__consumer_offsets-",
        "INFO Loaded member MemberMetadata(memberId=fixed-0-",
        "DEBUG [GroupCoordinator 1]: Pending dynamic member with id rdkafka-",
        "INFO [GroupCoordinator 1]: Group loose with generation 2 is now empty",
    ),
    "java": (
        "] Static member with groupInstanceId=fixed-0 and unknown member id joins group fixed",
        "] Stabilized group fixed generation 1 with 1 members. (",
        "] Loaded classic group fixed with 1 members. (",
        "] Pending dynamic member with id rdkafka-",
        "] Group loose with generation 2 is now empty. (",
    ),
}
FLOODS = ("Committing offsets", "Registering timer", "Scheduled execution", "]: Starting (")


@dataclass(frozen=True)
class Life:
    """A broker that was started, killed, started again and stopped: what was seen of it."""

    began: datetime
    zookeepers: list[psutil.Process]
    """The ZooKeeper processes before and after the kill."""
    committed: int
    folder: Path

    @property
    def group_log(self) -> list[str]:
        return (self.folder / "1" / "group.log").read_text().splitlines()


def lived(version: str, coordinator: str, folder: Path) -> Life:
    old = release_of(version).zookeeper
    more = {"zookeeper.session.timeout.ms": 6_000} if old else SOON_BACK
    cluster = make(
        Place(),
        f"test-{folder.parent.name}-{folder.name}",
        folder / "brokers",
        version=version,
        coordinator=coordinator,
        brokers=1,
        config={"group.initial.rebalance.delay.ms": 100, **more},
    )

    def zookeepers() -> list[psutil.Process]:
        return below(os.getpid(), str(folder / "brokers" / "zookeeper" / "zookeeper.properties"))

    began = datetime.now(UTC)
    cluster.start()
    try:
        create_topic(cluster, "orders")
        (broker,) = cluster.brokers
        # its end is no leave: the group is there to be loaded
        with member(cluster, "orders", "fixed", group_instance_id="fixed-0") as consumer:
            consumer.commit(offsets=[TopicPartition("orders", 0, 7)], asynchronous=False)
        eventually(
            lambda: "OFFSET_COMMIT" in broker.group_log.read_text(),
            "the commit's line, which is written after its answer went out",
        )
        before = zookeepers()
        cluster.act("kill", 1)
        cluster.act("start", 1)
        assert zookeepers() == before, "it stays"
        await_leaders(cluster, "orders")
        with member(cluster, "orders", "loose", client_id='rdkafka-}"requestApiKey":11,'):
            pass
        with member(cluster, "orders", "fixed", group_instance_id="fixed-0") as consumer:
            (kept,) = consumer.committed([TopicPartition("orders", 0)], timeout=10)
    finally:
        cluster.stop()
    return Life(began, before, kept.offset, folder / "brokers")


@pytest.mark.parametrize(
    ("version", "coordinator"),
    [
        ("2.4.1", "scala"),
        ("3.9.1", "scala"),
        pytest.param("3.2.3", "scala", marks=pytest.mark.long),
        pytest.param("3.9.1", "java", marks=pytest.mark.long),
    ],
)
def test_a_life_and_what_it_leaves(
    version: str, coordinator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The long ones have together what `make test` sees apart.

    3.2.3 has ZooKeeper, as 2.4.1, and request lines in JSON, as 3.9.1. 3.9.1 Java has log4j 1, as
    3.9.1 Scala, and the lines of the Java coordinator, as 4.3.0 in `test_process`.
    """
    monkeypatch.setenv("TZ", "Asia/Tokyo")  # the place of the machine must not matter
    life = lived(version, coordinator, tmp_path)
    assert life.committed == 7, "it comes back, and finds its group"
    assert len(life.zookeepers) == release_of(version).zookeeper
    assert not any(process.is_running() for process in life.zookeepers)
    lines, first, last = life.group_log, FIRST[coordinator], LAST[coordinator]
    starts = [i for i, line in enumerate(lines) if line.endswith(first)]
    assert (len(starts), starts[0]) == (2, 0), "a killed broker goes on in the same log"
    assert lines[-1].endswith(last)
    assert sum(last in line for line in lines) == 1, "SIGKILL leaves no time for it"
    assert last.endswith(SHUTDOWN_LINES[coordinator]), "what the end of a run waits for"

    requests = [line for line in lines if COMPLETED in line]
    named = r":RequestHeader\(apiKey=(\w+)" if version == "2.4.1" else r'ApiKeyName":"(\w+)"'
    apis = {re.search(named, line)[1] for line in requests}
    expected = {"JOIN_GROUP", "SYNC_GROUP", "LEAVE_GROUP", "OFFSET_COMMIT"}
    if version != "2.4.1":  # logs without JSON leave it out
        expected.add("OFFSET_FETCH")
    assert expected <= apis <= set(LOGGED_APIS)
    others = [line for line in lines if line not in requests]
    assert all(f"({first.rpartition('(')[2].rpartition('.')[0]}." in line for line in others)
    assert not any(flood in line for line in others for flood in FLOODS)
    if version == "3.9.1":
        for text in LINES[coordinator]:
            assert any(text in line for line in lines), text
    for line in lines:
        fields = LINE.fullmatch(line)
        assert fields, line
        time = datetime.strptime(f"{fields['time']}000+0000", "%Y-%m-%d %H:%M:%S,%f%z")
        assert timedelta(seconds=-1) < time - life.began < timedelta(minutes=5), line

    server_log = (life.folder / "1" / "server.log").read_text()
    assert last in server_log
    assert COMPLETED not in server_log
    assert "DEBUG" not in server_log
    assert (life.folder / "1" / "stdout.log").read_text() == ""
    if release_of(version).zookeeper:
        assert "ZooKeeper" in (life.folder / "zookeeper" / "stdout.log").read_text()
