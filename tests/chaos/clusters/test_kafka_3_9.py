"""Kafka 3.9 holds two coordinators and logs with log4j 1: one broker's life with each of them."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import TopicPartition

from chaos.clusters.process import ProcessCluster
from chaos.clusters.releases import release_of
from kafka_protocol.apis import LOGGED_APIS
from kafka_protocol.request_log import COMPLETED
from tests.chaos.clusters.clients import create_topic, eventually, member
from tests.conftest import SOON_BACK

pytestmark = pytest.mark.cluster

LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) \S+ (?P<level>INFO|DEBUG|WARN|ERROR)"
    r" (?P<message>.+) \((?P<logger>[\w.$]+)\)"
)


@dataclass(frozen=True)
class Expected:
    """What one coordinator writes."""

    first: str
    last: str
    package: str
    lines: tuple[str, ...]


EXPECTED = {
    "scala": Expected(
        "[GroupCoordinator 1]: Starting up. (kafka.coordinator.group.GroupCoordinator)",
        "[GroupCoordinator 1]: Shutdown complete. (kafka.coordinator.group.GroupCoordinator)",
        "kafka.coordinator.group.",
        (
            "INFO [GroupCoordinator 1]: Static member with groupInstanceId=fixed-0 and unknown",
            "INFO [GroupCoordinator 1]: Stabilized group fixed generation 1 (__consumer_offsets-",
            "INFO Loaded member MemberMetadata(memberId=fixed-0-",
            "DEBUG [GroupCoordinator 1]: Pending dynamic member with id rdkafka-",
            "INFO [GroupCoordinator 1]: Group loose with generation 2 is now empty",
        ),
    ),
    "java": Expected(
        "[GroupCoordinator id=1] Starting up."
        " (org.apache.kafka.coordinator.group.GroupCoordinatorService)",
        "[GroupCoordinator id=1] Shutdown complete."
        " (org.apache.kafka.coordinator.group.GroupCoordinatorService)",
        "org.apache.kafka.coordinator.group.",
        (
            "] Static member with groupInstanceId=fixed-0 and unknown member id joins group fixed",
            "] Stabilized group fixed generation 1 with 1 members. (",
            "] Loaded classic group fixed with 1 members. (",
            "] Pending dynamic member with id rdkafka-",
            "] Group loose with generation 2 is now empty. (",
        ),
    ),
}


@dataclass(frozen=True)
class Life:
    """What a broker left behind that was started, killed, started again and stopped."""

    coordinator: str
    began: datetime
    group_log: str
    server_log: str
    stdout: str

    @property
    def expected(self) -> Expected:
        return EXPECTED[self.coordinator]

    @property
    def lines(self) -> list[str]:
        return self.group_log.splitlines()


@pytest.fixture(scope="module", params=["scala", "java"])
def life(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Life:
    coordinator: str = request.param
    folder = tmp_path_factory.mktemp(coordinator)
    config = {"group.initial.rebalance.delay.ms": 100, **SOON_BACK}
    began = datetime.now(UTC)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TZ", "Asia/Tokyo")  # the place of the machine must not matter
        mark = f"test-{folder.parent.name}-{folder.name}"
        with ProcessCluster(
            mark, folder, version="3.9.1", coordinator=coordinator, brokers=1, config=config
        ) as cluster:
            create_topic(cluster, "orders")
            static = member(cluster, "orders", "fixed", group_instance_id="fixed-0")
            (broker,) = cluster.brokers
            with static as consumer:  # its end is no leave: the group is there to be loaded
                consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
            eventually(
                lambda: '"OFFSET_COMMIT"' in broker.group_log.read_text(),
                "the commit's line, which is written after its answer went out",
            )
            cluster.kill(1)
            cluster.start_broker(1)
            with member(cluster, "orders", "loose", client_id='rdkafka-}"requestApiKey":11,'):
                pass
    (info,) = cluster.brokers
    stdout = info.group_log.parent / "stdout.log"
    return Life(
        coordinator,
        began,
        info.group_log.read_text(),
        info.server_log.read_text(),
        stdout.read_text(),
    )


def test_every_start_begins_with_the_coordinators_first_words(life: Life) -> None:
    starts = [i for i, line in enumerate(life.lines) if line.endswith(life.expected.first)]
    assert len(starts) == 2, "a killed broker goes on in the same log"
    assert starts[0] == 0


def test_a_stopped_broker_ends_with_the_coordinators_last_words(life: Life) -> None:
    assert life.group_log.endswith(f"{life.expected.last}\n")
    assert life.group_log.count(life.expected.last) == 1, "SIGKILL leaves no time for them"
    awaited = release_of("3.9.1").coordinators[life.coordinator].shutdown
    assert life.expected.last.endswith(awaited), "what the end of a run waits for"


def test_a_group_leaves_its_coordinators_lines(life: Life) -> None:
    for text in life.expected.lines:
        assert any(text in line for line in life.lines), text


def test_a_group_leaves_its_requests_and_no_others(life: Life) -> None:
    requests = [line for line in life.lines if COMPLETED in line]
    names = {re.search(r'"requestApiKeyName":"(\w+)"', line)[1] for line in requests}
    expected = {"JOIN_GROUP", "SYNC_GROUP", "LEAVE_GROUP", "OFFSET_COMMIT", "OFFSET_FETCH"}
    assert expected <= names <= set(LOGGED_APIS)
    assert COMPLETED not in life.server_log


def test_lines_tell_utc_time_thread_level_message_and_logger(life: Life) -> None:
    for line in life.lines:
        fields = LINE.fullmatch(line)
        assert fields, line
        time = datetime.strptime(f"{fields['time']}000+0000", "%Y-%m-%d %H:%M:%S,%f%z")
        assert timedelta(seconds=-1) < time - life.began < timedelta(minutes=5), line


def test_nothing_but_the_coordinator_and_requests_is_in_the_log(life: Life) -> None:
    others = [line for line in life.lines if not line.endswith("(kafka.request.logger)")]
    assert all(f"({life.expected.package}" in line for line in others)
    for flood in (
        "Committing offsets",
        "Registering timer",
        "Scheduled execution",
        "]: Starting (",
    ):
        assert not any(flood in line for line in others), flood


def test_other_lines_are_in_the_same_files_as_with_every_release(life: Life) -> None:
    assert life.expected.last in life.server_log
    assert "DEBUG" not in life.server_log
    assert life.stdout == ""
