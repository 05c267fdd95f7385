"""What the brokers of a run say of themselves, and the admin requests of runner and faults.

librdkafka serves metadata only. It ends the whole process if the connection to a coordinator breaks
while it waits for a response (2.16, confluentinc/librdkafka#4605), and faults break coordinators.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from chaos.errors import ChaosError, TopicsError
from chaos.kafka_client import kafka_python
from chaos.timing import CHANGE_AGAIN_S, CHANGE_S, METADATA_S, REQUEST_S, SECURE_METADATA_S
from kafka_protocol.offsets_topic import OFFSETS_TOPIC, partition_of
from scenarios.setup import Setup


class ClusterView:
    """Queries the brokers of one run, each time with a new client.

    A client that is kept caches old coordinators and leaders for minutes. Every method raises
    ChaosError if the brokers cannot answer now, or refuse.
    """

    def __init__(self, bootstrap: str, properties: Mapping[str, str] = {}) -> None:
        """Remember bootstrap servers and client properties; no request is sent."""
        self._bootstrap = bootstrap
        self._properties = properties

    def create_topics(self, experiment: Setup) -> None:
        """Create the experiment's topics; all partitions have leaders when this returns.

        Raises TopicsError.
        """
        topics = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": topic.replication_factor,
            }
            for topic in experiment.workload.topics
        }
        matter = f"topics {', '.join(topics)} could not be created"
        deadline = time.monotonic() + CHANGE_S
        while True:
            try:
                there = self._metadata().topics
                missing = {name: of for name, of in topics.items() if name not in there}
                if missing:
                    with self._client(matter, CHANGE_S) as client:
                        client.create_topics(missing, wait_for_metadata=True)
            except ChaosError as error:
                # brokers that have just started may not know each other yet
                if time.monotonic() > deadline:
                    raise TopicsError(str(error)) from error
                time.sleep(CHANGE_AGAIN_S)
            else:
                return

    def probes(self) -> Mapping[str, Callable[[str], int | str]]:
        """Return the probe functions of steady states, by name."""
        return {
            "group.members": lambda group: len(self._describe(group)["members"]),
            "group.state": lambda group: self._describe(group)["group_state"],
        }

    def client_ids(self, group: str) -> frozenset[str]:
        """Return the client.id of each member of a group."""
        return frozenset(member["client_id"] for member in self._describe(group)["members"])

    def coordinator(self, group: str, address: str | None = None) -> int:
        """Return the id of a group's coordinator, by any broker, or by the one at `host:port`.

        It is the leader of the group's partition of the offsets topic.
        """
        metadata = self._metadata(address)
        return _leader(metadata, OFFSETS_TOPIC, _offsets_partition(metadata, group))

    def move_coordinator(self, group: str, to: int | None, *, keeps_replica: bool = True) -> int:
        """Elect another coordinator for a group, `to` or the next replica in sync; return its id.

        The partition keeps its replicas, the new leader as the first (KIP-455), and the preferred
        leader is elected (KIP-460). Unless the former leader `keeps_replica`, it has none any more.
        """
        metadata = self._metadata()
        number = _offsets_partition(metadata, group)
        known = metadata.topics[OFFSETS_TOPIC].partitions[number]
        others = [broker for broker in known.replicas if broker in set(known.isrs) - {known.leader}]
        if not others or to not in (None, *others):
            raise ChaosError(
                f"the coordinator of {group} cannot move to {to or 'another broker'}: in sync are "
                f"{', '.join(map(str, sorted(known.isrs)))}, and {known.leader} leads"
            )
        new = to or others[0]
        place = TopicPartition(OFFSETS_TOPIC, number)
        gone = {new} if keeps_replica else {new, known.leader}
        replicas = [new, *(broker for broker in known.replicas if broker not in gone)]
        matter = f"{OFFSETS_TOPIC}/{number} could not be moved to broker {new}"
        with self._client(matter, CHANGE_S) as client:
            if error := client.alter_partition_reassignments({place: replicas}).get(place):
                raise ChaosError(f"{matter} ({error.__name__})")
            client.elect_leaders(0, {OFFSETS_TOPIC: [number]})
        return int(new)

    def leader(self, topic: str, partition: int) -> int:
        """Return the id of a partition's leader."""
        return _leader(self._metadata(), topic, partition)

    def offsets_leaders(self) -> tuple[int, ...]:
        """Return the leaders of the partitions of `__consumer_offsets`; none without that topic."""
        topic = self._metadata().topics.get(OFFSETS_TOPIC)
        if topic is None:
            return ()
        leaders = [topic.partitions[number].leader for number in sorted(topic.partitions)]
        if -1 in leaders:
            raise ChaosError(f"a partition of {OFFSETS_TOPIC} has no leader; wait until it has one")
        return tuple(leaders)

    def controller(self) -> int:
        """Return the id of the active controller.

        Source: DescribeQuorum (KIP-595, KIP-836), which any broker forwards. In a Metadata response
        a broker names any live broker, so that no client contacts the controller (KIP-590).
        """
        with self._client("the active controller is not known") as client:
            quorum = client.describe_metadata_quorum()["topics"][0]["partitions"][0]
        if quorum["error"] or quorum["leader_id"] < 0:
            raise ChaosError("there is no active controller")
        return int(quorum["leader_id"])

    def add_partitions(self, topic: str, to: int) -> None:
        """Raise a topic's partition count to `to`."""
        matter = f"topic {topic} could not be given {to} partitions"
        with self._client(matter, CHANGE_S) as client:
            client.create_partitions({topic: to})

    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""
        with self._client(f"topic {topic} could not be deleted", CHANGE_S) as client:
            client.delete_topics([topic])

    def partitions(self, address: str, topic: str) -> int:
        """Return how many of a topic's partitions have a leader that the broker there knows."""
        metadata = self._metadata(address)
        known = metadata.topics.get(topic)
        return sum(p.leader in metadata.brokers for p in known.partitions.values()) if known else 0

    def in_sync(self, address: str) -> frozenset[int]:
        """Return the running brokers in the ISR of each of their replicas, by the broker there."""
        metadata = self._metadata(address)
        partitions = [p for topic in metadata.topics.values() for p in topic.partitions.values()]
        lagging = {broker for p in partitions for broker in set(p.replicas) - set(p.isrs)}
        return frozenset(metadata.brokers) - lagging

    def _metadata(self, address: str | None = None) -> ClusterMetadata:
        """Return the metadata from the first broker that answers."""
        bootstrap = address or self._bootstrap
        timeout_s = SECURE_METADATA_S if self._properties else METADATA_S
        own = {"bootstrap.servers": bootstrap, "log_level": "0"}
        client = AdminClient({**self._properties, **own})
        try:
            if self._properties.get("sasl.mechanism") == "OAUTHBEARER":
                client.poll(0)  # gets the token
            return client.list_topics(timeout=timeout_s)
        except KafkaException as error:
            raise ChaosError(f"no broker answers at {bootstrap} ({error.args[0].str()})") from error

    def _client(
        self, matter: str, timeout_s: float = REQUEST_S
    ) -> AbstractContextManager[KafkaAdminClient]:
        return kafka_python(self._bootstrap, self._properties, matter, timeout_s)

    def _describe(self, group: str) -> dict[str, Any]:
        with self._client("cannot be described") as client:
            description: dict[str, Any] = client.describe_groups([group])[group]
        if description["error"]:
            raise ChaosError(f"cannot be described ({description['error']})")
        return description


def _leader(metadata: ClusterMetadata, topic: str, partition: int) -> int:
    """Return the id of a partition's leader. Raises ChaosError if there is none."""
    known = metadata.topics.get(topic)  # a broker that has just started may not know it yet
    if known is None or known.partitions[partition].leader not in metadata.brokers:
        raise ChaosError(f"partition {topic}/{partition} has no leader")
    return int(known.partitions[partition].leader)


def _offsets_partition(metadata: ClusterMetadata, group: str) -> int:
    """Return a group's partition of the offsets topic. Raises ChaosError without that topic."""
    topic = metadata.topics.get(OFFSETS_TOPIC)
    if topic is None:
        raise ChaosError(f"there is no {OFFSETS_TOPIC} yet, so no group has a coordinator")
    return partition_of(group, len(topic.partitions))
