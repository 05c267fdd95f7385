"""Admin requests of the runner: topics, groups, coordinators, leaders, the active controller.

librdkafka serves metadata only. It ends the whole process if the connection to a coordinator breaks
while it waits for a response (2.16, confluentinc/librdkafka#4605), and faults break coordinators.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from chaos.errors import ChaosError
from groupquake.exits import NotSteadyError
from kafka_protocol.offsets_topic import OFFSETS_TOPIC, partition_of
from scenarios import Experiment

CREATE_S = 20.0
RETRY_S = 0.5
PROBE_S = 5.0
METADATA_S = 2.0

logging.getLogger("kafka").addHandler(logging.NullHandler())  # faults stop brokers


class KafkaAdmin:
    """Queries the brokers of one run, each time with a new client; a chaos `ClusterView`.

    A client that is kept caches old coordinators and leaders for minutes.
    """

    def __init__(self, bootstrap: str) -> None:
        """Remember the bootstrap servers; no request is sent."""
        self._bootstrap = bootstrap

    def create_topics(self, experiment: Experiment) -> None:
        """Create the experiment's topics; all partitions have leaders when this returns."""
        topics = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": topic.replication_factor,
            }
            for topic in experiment.workload.topics
        }
        matter = f"topics {', '.join(topics)} could not be created"
        deadline = time.monotonic() + CREATE_S
        while True:
            try:
                there = _metadata(self._bootstrap).topics
                missing = {name: of for name, of in topics.items() if name not in there}
                if missing:
                    with _kafka_python(self._bootstrap, matter, CREATE_S) as client:
                        client.create_topics(missing, wait_for_metadata=True)
            except ChaosError as error:
                # brokers that have just started may not know each other yet
                if time.monotonic() > deadline:
                    raise NotSteadyError(f"{error}; see brokers/*/server.log") from error
                time.sleep(RETRY_S)
            else:
                return

    def probes(self) -> Mapping[str, Callable[[str], int | str]]:
        """Return the probe functions of steady states, by name."""
        return {
            "group.members": lambda group: len(self._describe(group)["members"]),
            "group.state": lambda group: self._describe(group)["group_state"],
        }

    def coordinator(self, group: str) -> int:
        """Return the id of a group's coordinator. Raises ChaosError if there is none now.

        It is the leader of the group's partition of the offsets topic.
        """
        topic = _metadata(self._bootstrap).topics.get(OFFSETS_TOPIC)
        if topic is None:
            raise ChaosError(f"there is no {OFFSETS_TOPIC} yet, so no group has a coordinator")
        return self.leader(OFFSETS_TOPIC, partition_of(group, len(topic.partitions)))

    def leader(self, topic: str, partition: int) -> int:
        """Return the id of a partition's leader. Raises ChaosError if there is none now."""
        metadata = _metadata(self._bootstrap)
        known = metadata.topics.get(topic)  # a broker that has just started may not know it yet
        if known is None or known.partitions[partition].leader not in metadata.brokers:
            raise ChaosError(f"partition {topic}/{partition} has no leader")
        return int(known.partitions[partition].leader)

    def controller(self) -> int:
        """Return the id of the active controller. Raises ChaosError if there is none now.

        Source: DescribeQuorum (KIP-595, KIP-836), which any broker forwards.
        """
        with _kafka_python(self._bootstrap, "the active controller is not known") as client:
            quorum = client.describe_metadata_quorum()["topics"][0]["partitions"][0]
        if quorum["error"] or quorum["leader_id"] < 0:
            raise ChaosError("there is no active controller")
        return int(quorum["leader_id"])

    def add_partitions(self, topic: str, to: int) -> None:
        """Raise a topic's partition count to `to`. Raises ChaosError if refused."""
        matter = f"topic {topic} could not be given {to} partitions"
        with _kafka_python(self._bootstrap, matter, CREATE_S) as client:
            client.create_partitions({topic: to})

    def partitions(self, port: int, topic: str) -> int:
        """Return the number of a topic's partitions whose leader one broker knows.

        Raises ChaosError if no broker answers at the port.
        """
        metadata = _metadata(f"127.0.0.1:{port}")
        known = metadata.topics.get(topic)
        return sum(p.leader in metadata.brokers for p in known.partitions.values()) if known else 0

    def in_sync(self, port: int) -> frozenset[int]:
        """Return the running brokers that are in the ISR of each of their replicas, by one broker.

        Raises ChaosError if no broker answers at the port.
        """
        metadata = _metadata(f"127.0.0.1:{port}")
        partitions = [p for topic in metadata.topics.values() for p in topic.partitions.values()]
        lagging = {broker for p in partitions for broker in set(p.replicas) - set(p.isrs)}
        return frozenset(metadata.brokers) - lagging

    def _describe(self, group: str) -> dict[str, Any]:
        with _kafka_python(self._bootstrap, "cannot be described") as client:
            description: dict[str, Any] = client.describe_groups([group])[group]
        if description["error"]:
            raise ChaosError(f"cannot be described ({description['error']})")
        return description


@contextmanager
def _kafka_python(
    bootstrap: str, matter: str, timeout_s: float = PROBE_S
) -> Iterator[KafkaAdminClient]:
    """Yield a client; its errors become ChaosErrors that begin with `matter`."""
    timeout_ms = int(timeout_s * 1000)
    try:
        client = KafkaAdminClient(
            bootstrap_servers=bootstrap.split(","),
            bootstrap_timeout_ms=timeout_ms,
            request_timeout_ms=timeout_ms,
        )
        try:
            yield client
        finally:
            client.close()
    except (KafkaError, OSError) as error:
        raise ChaosError(f"{matter} ({error})") from error


def _metadata(bootstrap: str) -> ClusterMetadata:
    """Return the metadata from the first broker that answers; `log_level` silences librdkafka."""
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        return client.list_topics(timeout=METADATA_S)
    except KafkaException as error:
        raise ChaosError(f"no broker answers at {bootstrap} ({error.args[0].str()})") from error
