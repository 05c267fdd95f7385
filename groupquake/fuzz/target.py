"""The broker under test: API versions, configuration, and readiness."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from chaos.clusters.process import ProcessCluster
from groupquake.fuzz.driver import MAX_SIZE, TOPIC
from groupquake.fuzz.timing import ASK_EVERY_S, READY_WITHIN_S
from kafka_protocol.errors import Error, codes_in
from kafka_protocol.offsets_topic import partition_of
from kafka_protocol.releases import OLD_JOIN_FAILS_BESIDE_STATICS, number
from loadtest.wire import NO_TOPIC_ID, Connection, Versions, WireError, negotiate

CONFIG: Mapping[str, str | int | bool] = {
    "group.initial.rebalance.delay.ms": 200,
    "group.min.session.timeout.ms": 300,
    "group.max.session.timeout.ms": 60_000,
    "group.max.size": MAX_SIZE,
    "message.max.bytes": 8_000,
    "offsets.topic.num.partitions": 12,
    "group.coordinator.append.linger.ms": 5,
}
"""Short timers, and limits of groups and records that sequences reach. With the append linger, the
Java coordinator batches records, as it does by default in some releases."""
NOT_RULES = ("offsets.topic.num.partitions", "group.coordinator.append.linger.ms")
"""Properties that the rules do not depend on; older releases do not have all of them."""
PARTITIONS = 3
"""The partitions of the topic whose offsets are committed."""
SMALL = 20_000
"""The largest message.max.bytes with which a sequence sends records that are too large."""
Body = dict[str, Any]
BROKER = 4
"""The resource type of a broker in DescribeConfigs."""


class OffsetsPartitions:
    """Partitions of the group topic: a group's follows from its name.

    The Java coordinator writes the new records of a partition as one batch. A record that is too
    large fails the whole batch, also for other groups. So groups share a third of the partitions,
    and a group with such records has one of the others alone.
    """

    def __init__(self, partitions: int) -> None:
        """Divide the partitions."""
        self._partitions = partitions
        self._shared = range(max(1, partitions // 3))
        self._free: SimpleQueue[int] = SimpleQueue()
        for partition in range(len(self._shared), partitions):
            self._free.put(partition)
        self.has_exclusive = partitions > 1

    @contextmanager
    def group(self, name: str, *, alone: bool) -> Iterator[str]:
        """Complete a group name so that its partition is shared, or exclusive during the block."""
        if not alone:
            yield self._name(name, self._shared)
            return
        partition = self._free.get()
        try:
            yield self._name(name, range(partition, partition + 1))
        finally:
            self._free.put(partition)

    def _name(self, name: str, partitions: range) -> str:
        names = (f"{name}.{number}" if number else name for number in count())
        return next(n for n in names if partition_of(n, self._partitions) in partitions)


@dataclass(frozen=True, slots=True)
class Target:
    """A broker that is ready; `topic_id` is the id of the topic whose offsets are committed.

    `config` are the group settings, `largest_record` is the log's limit in bytes.
    """

    host: str
    port: int
    kafka: str
    coordinator: str
    config: Mapping[str, int]
    versions: Versions
    topic_id: str
    largest_record: int
    offsets_partitions: OffsetsPartitions

    @property
    def old_joins_know_no_statics(self) -> bool:
        """Whether JoinGroup below v5 fails for the leader of static members (KAFKA-14422).

        It leaves the group half-way through its answers, and the oracle does not tell how.
        """
        first, mended = OLD_JOIN_FAILS_BESIDE_STATICS
        return first <= number(self.kafka) < mended

    @property
    def may_be_bulky(self) -> bool:
        """Whether sequences may send records that are too large."""
        return self.largest_record <= SMALL and self.offsets_partitions.has_exclusive


@contextmanager
def own_broker(
    kafka: str, coordinator: str, folder: Path, progress: Callable[[str], None]
) -> Iterator[Target]:
    """Start one real broker of a release; stop it after the block."""
    cluster = ProcessCluster(
        f"fuzz-{time.time():.0f}",
        folder,
        version=kafka,
        coordinator=coordinator,
        brokers=1,
        config=CONFIG,
        progress=progress,
    )
    with cluster:
        yield ready("127.0.0.1", cluster.brokers[0].port, kafka, coordinator)


def ready(host: str, port: int, kafka: str, coordinator: str) -> Target:
    """Prepare a running broker, and query its properties.

    Raises WireError if it does not answer, or does not coordinate groups within a minute.
    """
    with closing(Connection(host, port, "scout")) as connection:
        served = negotiate(connection, ("METADATA", "FIND_COORDINATOR", "DESCRIBE_CONFIGS"))
        newest = {api: highest for api, (_, highest) in served.items()}
        # these two in versions that every broker has, whose bodies are the smallest
        queries = _BrokerQueries(connection, {**newest, "CREATE_TOPICS": 2, "HEARTBEAT": 0})
        topic_id = queries.topic()
        queries.wait_for_coordinator()
        properties = queries.config(port)
        return Target(
            host,
            port,
            kafka,
            coordinator,
            config={key: value for key, value in properties.items() if key.startswith("group.")},
            versions=negotiate(connection),
            topic_id=topic_id,
            largest_record=properties["message.max.bytes"],
            offsets_partitions=OffsetsPartitions(queries.group_partitions()),
        )


@dataclass(frozen=True, slots=True)
class _BrokerQueries:
    """Queries of the broker before the first sequence, in `versions` by API."""

    connection: Connection
    versions: Mapping[str, int]

    def ask(self, api: str, body: Mapping[str, object]) -> Body:
        """Send a request, and return its response."""
        return self.connection.ask(api, self.versions[api], body)

    def until(self, holds: Callable[[Body], bool], api: str, body: Mapping[str, object]) -> Body:
        """Repeat a request until its response is right. Raises WireError after a minute."""
        until_s = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < until_s:
            if holds(response := self.ask(api, body)):
                return response
            time.sleep(ASK_EVERY_S)
        raise WireError(f"the broker is not ready for groups after {READY_WITHIN_S:.0f} s")

    def topic(self) -> str:
        """Create the topic; return its id when the broker has it (all-zero in old releases)."""
        topic = {"name": TOPIC, "numPartitions": PARTITIONS, "replicationFactor": 1,
                 "assignments": [], "configs": []}  # fmt: skip
        asked = {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False}
        self.ask("CREATE_TOPICS", asked)
        is_there = lambda response: response["topics"][0]["errorCode"] == Error.NONE
        response = self.until(is_there, "METADATA", about_topic(TOPIC))
        return str(response["topics"][0].get("topicId", NO_TOPIC_ID))

    def group_partitions(self) -> int:
        """Return the partition count of `__consumer_offsets`."""
        response = self.ask("METADATA", about_topic("__consumer_offsets"))
        return len(response["topics"][0]["partitions"])

    def wait_for_coordinator(self) -> None:
        """Wait until the broker has created `__consumer_offsets` and coordinates groups."""
        whose = {"key": "fuzz", "coordinatorKeys": ["fuzz"], "keyType": 0}
        self.until(lambda response: Error.NONE in codes_in(response), "FIND_COORDINATOR", whose)
        unknown = {"groupId": "fuzz", "generationId": -1, "memberId": ""}
        serves = lambda response: response["errorCode"] == Error.UNKNOWN_MEMBER_ID
        self.until(serves, "HEARTBEAT", unknown)

    def config(self, port: int) -> dict[str, int]:
        """Return the properties of the broker at a port that the protocol depends on."""
        names = [name for name in CONFIG if name not in NOT_RULES]
        brokers = self.ask("METADATA", about_topic(TOPIC))["brokers"]
        node = str(min(brokers, key=lambda broker: broker["port"] != port)["nodeId"])
        about = {"resourceType": BROKER, "resourceName": node, "configurationKeys": names}
        asked = {"resources": [about], "includeSynonyms": False, "includeDocumentation": False}
        found = self.ask("DESCRIBE_CONFIGS", asked)["results"][0]["configs"]
        values = {entry["name"]: entry["value"] for entry in found}
        missing = [name for name in names if not values.get(name)]
        if missing:
            raise WireError(f"DescribeConfigs returned no {', '.join(missing)}")
        return {name: int(values[name]) for name in names}


def about_topic(name: str) -> dict[str, object]:
    """Return what Metadata is asked about a topic."""
    return {
        "topics": [{"name": name, "topicId": NO_TOPIC_ID}],
        "allowAutoTopicCreation": False,
        "includeClusterAuthorizedOperations": False,
        "includeTopicAuthorizedOperations": False,
    }
