"""What a served broker answers about brokers and topics."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from kafka_protocol.kio_bodies import NO_TOPIC_ID
from kafka_protocol.offsets_topic import OFFSETS_TOPIC

if TYPE_CHECKING:
    from reference_coordinator.server.broker import Broker
    from reference_coordinator.server.connection import Request
    from reference_coordinator.server.topics import Topic

Json = dict[str, Any]
_GROUPS = 0
"""The type of key of FindCoordinator that names a group."""
_NOBODY: Json = {"nodeId": -1, "host": "", "port": -1}


def _outcome(error: ErrorCode) -> Json:
    """Return the fields of an error, whose name is its message."""
    return {"errorCode": int(error), "errorMessage": error.name if error else None}


def metadata(broker: "Broker", request: "Request") -> Json:
    """Answer Metadata, of all topics or of those named."""
    cluster, asked = broker.cluster, request.request["topics"]
    if asked is None or (not asked and request.api_version == 0):
        topics = [_described(topic) for topic in cluster.topics.values()]
    else:
        topics = []
        for one in asked:
            topic = cluster.topic(one.get("name"), one.get("topicId"))
            topics.append(_unknown(one) if topic is None else _described(topic))
    brokers = [{**peer.address, "rack": None} for peer in cluster.registered]
    return {
        "brokers": brokers, "clusterId": cluster.id, "controllerId": cluster.controller,
        "topics": topics, "errorCode": 0,
    }  # fmt: skip


def _unknown(asked: Json) -> Json:
    by_id = asked.get("name") is None
    error = ErrorCode.unknown_topic_id if by_id else ErrorCode.unknown_topic_or_partition
    topic_id = asked.get("topicId", NO_TOPIC_ID)
    return {"errorCode": int(error), "name": asked.get("name"), "topicId": topic_id,
            "partitions": []}  # fmt: skip


def _described(topic: "Topic") -> Json:
    partitions = [
        {
            "errorCode": int(ErrorCode.leader_not_available) if part.leader is None else 0,
            "partitionIndex": number,
            "leaderId": -1 if part.leader is None else part.leader,
            "leaderEpoch": part.epoch,
            "replicaNodes": list(part.replicas),
            "isrNodes": list(part.isr),
            "offlineReplicas": [],
        }
        for number, part in enumerate(topic.partitions)
    ]
    return {"errorCode": 0, "name": topic.name, "topicId": topic.printed_id,
            "isInternal": topic.name == OFFSETS_TOPIC, "partitions": partitions}  # fmt: skip


def find_coordinator(broker: "Broker", request: "Request") -> Json:
    """Answer FindCoordinator: the leader of a group's partition of the offsets topic."""
    body, cluster = request.request, broker.cluster

    def found(group: str) -> Json:
        leader = cluster.coordinator(group) if body.get("keyType", _GROUPS) == _GROUPS else None
        if leader is None:
            return {**_outcome(ErrorCode.coordinator_not_available), **_NOBODY}
        return {**_outcome(ErrorCode.none), **leader.address}

    if "coordinatorKeys" not in body:
        return found(body["key"])
    return {"coordinators": [{"key": key, **found(key)} for key in body["coordinatorKeys"]]}


def describe_cluster(broker: "Broker", _: "Request") -> Json:
    """Answer DescribeCluster."""
    cluster = broker.cluster
    brokers = [
        {**peer.address, "brokerId": peer.id, "rack": None, "isFenced": False}
        for peer in cluster.registered
    ]
    return {**_outcome(ErrorCode.none), "endpointType": 1, "clusterId": cluster.id,
            "controllerId": cluster.controller, "brokers": brokers}  # fmt: skip


def describe_quorum(broker: "Broker", request: "Request") -> Json:
    """Answer DescribeQuorum: the controller is the first broker."""
    leader = {"leaderId": broker.cluster.controller, "leaderEpoch": 1, "highWatermark": 0}

    def described(asked: Json) -> Json:
        number = {"partitionIndex": asked["partitionIndex"], "currentVoters": [], "observers": []}
        return {**_outcome(ErrorCode.none), **leader, **number}

    topics = [
        {"topicName": topic["topicName"], "partitions": list(map(described, topic["partitions"]))}
        for topic in request.request["topics"]
    ]
    return {**_outcome(ErrorCode.none), "topics": topics, "nodes": []}


def create_topics(broker: "Broker", request: "Request") -> Json:
    """Answer CreateTopics."""
    cluster, created = broker.cluster, []
    for asked in request.request["topics"]:
        name, count, copies = asked["name"], asked["numPartitions"], asked["replicationFactor"]
        error = ErrorCode.none
        if name in cluster.topics:
            error = ErrorCode.topic_already_exists
        elif max(copies, 1) > len(cluster.registered):
            error = ErrorCode.invalid_replication_factor
        elif not request.request["validateOnly"]:
            cluster.create(name, max(count, 1), max(copies, 1))
        topic = cluster.topics.get(name)
        created.append({
            "name": name, "topicId": topic.printed_id if topic else NO_TOPIC_ID,
            **_outcome(error), "numPartitions": count, "replicationFactor": copies, "configs": [],
        })  # fmt: skip
    return {"topics": created}


def delete_topics(broker: "Broker", request: "Request") -> Json:
    """Answer DeleteTopics."""
    body, cluster = request.request, broker.cluster
    asked = body["topics"] if "topics" in body else [{"name": n} for n in body["topicNames"]]
    deleted = []
    for one in asked:
        topic = cluster.topic(one.get("name"), one.get("topicId"))
        if topic is None:
            deleted.append({**one, **_outcome(ErrorCode.unknown_topic_or_partition)})
        else:
            del cluster.topics[topic.name]
            known = {"name": topic.name, "topicId": topic.printed_id}
            deleted.append({**known, **_outcome(ErrorCode.none)})
    return {"responses": deleted}


def create_partitions(broker: "Broker", request: "Request") -> Json:
    """Answer CreatePartitions."""
    results = []
    for asked in request.request["topics"]:
        topic, error = broker.cluster.topics.get(asked["name"]), ErrorCode.none
        if topic is None:
            error = ErrorCode.unknown_topic_or_partition
        elif asked["count"] <= len(topic.partitions):
            error = ErrorCode.invalid_partitions
        else:
            broker.cluster.grow(topic, asked["count"])
        results.append({"name": asked["name"], **_outcome(error)})
    return {"results": results}


def reassign(broker: "Broker", request: "Request") -> Json:
    """Answer AlterPartitionReassignments: replicas in another order, or others."""
    cluster = broker.cluster

    def done(topic: str, asked: Json) -> ErrorCode:
        partition = cluster.partition(topic, asked["partitionIndex"])
        alive = {peer.id for peer in cluster.registered}
        if partition is None:
            return ErrorCode.unknown_topic_or_partition
        if not alive.issuperset(asked["replicas"] or ()):
            return ErrorCode.invalid_replica_assignment
        if asked["replicas"]:
            partition.replicas = partition.isr = tuple(asked["replicas"])
        return ErrorCode.none

    return {
        **_outcome(ErrorCode.none), "allowReplicationFactorChange": True,
        "responses": _each(request.request["topics"], "name", "partitions", done),
    }  # fmt: skip


def elect_leaders(broker: "Broker", request: "Request") -> Json:
    """Answer ElectLeaders: the preferred replica leads (KIP-460)."""
    cluster, results, elected = broker.cluster, [], []
    for asked in request.request["topicPartitions"] or ():
        outcomes = []
        for number in asked["partitions"]:
            elected.append((asked["topic"], number))
            known = cluster.partition(asked["topic"], number) is not None
            error = ErrorCode.none if known else ErrorCode.unknown_topic_or_partition
            outcomes.append({"partitionId": number, **_outcome(error)})
        results.append({"topic": asked["topic"], "partitionResult": outcomes})
    cluster.elect(elected)
    return {"errorCode": 0, "replicaElectionResults": results}


def _each(
    topics: list[Json], name: str, parts: str, done: Callable[[str, Json], ErrorCode]
) -> list[Json]:
    return [
        {
            name: topic[name],
            parts: [
                {"partitionIndex": one["partitionIndex"], **_outcome(done(topic[name], one))}
                for one in topic[parts]
            ],
        }
        for topic in topics
    ]


HANDLERS: Mapping[str, Callable[["Broker", "Request"], Json | None]] = {
    "METADATA": metadata,
    "FIND_COORDINATOR": find_coordinator,
    "DESCRIBE_CLUSTER": describe_cluster,
    "DESCRIBE_QUORUM": describe_quorum,
    "CREATE_TOPICS": create_topics,
    "DELETE_TOPICS": delete_topics,
    "CREATE_PARTITIONS": create_partitions,
    "ALTER_PARTITION_REASSIGNMENTS": reassign,
    "ELECT_LEADERS": elect_leaders,
}
