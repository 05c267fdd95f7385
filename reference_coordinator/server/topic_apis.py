"""What a served broker answers about brokers, topics and records."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from kafka_protocol.offsets_topic import OFFSETS_TOPIC

if TYPE_CHECKING:
    from reference_coordinator.server.broker import Broker
    from reference_coordinator.server.connection import Request
    from reference_coordinator.server.topics import Partition

Json = dict[str, Any]
_EARLIEST, _LATEST = -2, -1
"""The timestamps of ListOffsets that ask for the first offset, and for the next."""
_NOBODY: Json = {"nodeId": -1, "host": "", "port": -1}
_UNKNOWN = ErrorCode.unknown_topic_or_partition


def _outcome(error: ErrorCode = ErrorCode.none) -> Json:
    """Return the fields of an error, whose name is its message."""
    return {"errorCode": int(error), "errorMessage": error.name if error else None}


def _each(
    topics: Sequence[Json], name: str, parts: str, answer: Callable[[str, Any], Json], out: str = ""
) -> list[Json]:
    """Return what is answered of each partition of each topic, in lists of the same form."""
    return [
        {name: topic[name], out or parts: [answer(topic[name], part) for part in topic[parts]]}
        for topic in topics
    ]


# Brokers


def metadata(broker: "Broker", request: "Request") -> Json:
    """Answer Metadata, of all topics or of those named."""
    cluster, asked = broker.cluster, request.request["topics"]
    every = asked is None or (not asked and request.api_version == 0)
    names = list(cluster.topics) if every else [one["name"] for one in asked]
    return {
        "brokers": [{**peer.address, "rack": None} for peer in cluster.registered],
        "clusterId": cluster.id, "controllerId": cluster.controller,
        "topics": [_described(name, cluster.topics.get(name)) for name in names],
    }  # fmt: skip


def _described(name: str, partitions: "list[Partition] | None") -> Json:
    described = [
        {
            "errorCode": int(ErrorCode.leader_not_available if part.leader is None else 0),
            "partitionIndex": number, "leaderId": -1 if part.leader is None else part.leader,
            "leaderEpoch": part.epoch, "replicaNodes": part.replicas, "isrNodes": part.isr,
        }
        for number, part in enumerate(partitions or ())
    ]  # fmt: skip
    error = int(_UNKNOWN if partitions is None else 0)
    return {"errorCode": error, "name": name, "isInternal": name == OFFSETS_TOPIC,
            "partitions": described}  # fmt: skip


def find_coordinator(broker: "Broker", request: "Request") -> Json:
    """Answer FindCoordinator: the leader of a group's partition of the offsets topic."""
    of_group = request.request.get("keyType", 0) == 0
    leader = broker.cluster.coordinator(request.request["key"]) if of_group else None
    if leader is None:
        return {**_outcome(ErrorCode.coordinator_not_available), **_NOBODY}
    return {**_outcome(), **leader.address}


def describe_cluster(broker: "Broker", _: "Request") -> Json:
    """Answer DescribeCluster."""
    cluster = broker.cluster
    brokers = [{**peer.address, "brokerId": peer.id, "isFenced": False}
               for peer in cluster.registered]  # fmt: skip
    return {**_outcome(), "clusterId": cluster.id, "controllerId": cluster.controller,
            "brokers": brokers}  # fmt: skip


def describe_quorum(broker: "Broker", request: "Request") -> Json:
    """Answer DescribeQuorum."""
    leads = {**_outcome(), "leaderId": broker.cluster.controller, "leaderEpoch": 1,
             "highWatermark": 0, "currentVoters": [], "observers": []}  # fmt: skip
    topics = _each(request.request["topics"], "topicName", "partitions",
                   lambda _, part: {**leads, "partitionIndex": part["partitionIndex"]})  # fmt: skip
    return {**_outcome(), "topics": topics, "nodes": []}


# Topics


def create_topics(broker: "Broker", request: "Request") -> Json:
    """Answer CreateTopics."""
    cluster = broker.cluster

    def created(asked: Json) -> ErrorCode:
        count, copies = max(asked["numPartitions"], 1), max(asked["replicationFactor"], 1)
        if asked["name"] in cluster.topics:
            return ErrorCode.topic_already_exists
        if copies > len(cluster.registered):
            return ErrorCode.invalid_replication_factor
        if not request.request["validateOnly"]:
            cluster.grow(asked["name"], count, copies)
        return ErrorCode.none

    topics = request.request["topics"]
    return {"topics": [{**one, "configs": [], **_outcome(created(one))} for one in topics]}


def create_partitions(broker: "Broker", request: "Request") -> Json:
    """Answer CreatePartitions."""
    known = broker.cluster.topics

    def grown(name: str, count: int) -> ErrorCode:
        if name not in known:
            return _UNKNOWN
        if count <= len(known[name]):
            return ErrorCode.invalid_partitions
        broker.cluster.grow(name, count, len(known[name][0].replicas))
        return ErrorCode.none

    topics = request.request["topics"]
    return {"results": [{**one, **_outcome(grown(one["name"], one["count"]))} for one in topics]}


def delete_topics(broker: "Broker", request: "Request") -> Json:
    """Answer DeleteTopics."""
    gone = {name: broker.cluster.topics.pop(name, None) for name in request.request["topicNames"]}
    outcomes = {name: ErrorCode.none if found else _UNKNOWN for name, found in gone.items()}
    return {"responses": [{"name": name, **_outcome(error)} for name, error in outcomes.items()]}


def reassign(broker: "Broker", request: "Request") -> Json:
    """Answer AlterPartitionReassignments: replicas in another order, or others."""
    cluster = broker.cluster
    alive = {peer.id for peer in cluster.registered}

    def done(topic: str, asked: Json) -> Json:
        partition, error = cluster.partition(topic, asked["partitionIndex"]), ErrorCode.none
        if partition is None:
            error = _UNKNOWN
        elif not asked["replicas"] or not alive.issuperset(asked["replicas"]):
            error = ErrorCode.invalid_replica_assignment
        else:
            partition.replicas = partition.isr = tuple(asked["replicas"])
        return {**asked, **_outcome(error)}

    responses = _each(request.request["topics"], "name", "partitions", done)
    return {**_outcome(), "allowReplicationFactorChange": True, "responses": responses}


def elect_leaders(broker: "Broker", request: "Request") -> Json:
    """Answer ElectLeaders: the preferred replica leads (KIP-460)."""
    named: list[tuple[str, int]] = []

    def elected(topic: str, number: int) -> Json:
        named.append((topic, number))
        known = broker.cluster.partition(topic, number) is not None
        return {"partitionId": number, **_outcome(ErrorCode.none if known else _UNKNOWN)}

    asked = request.request["topicPartitions"] or ()
    results = _each(asked, "topic", "partitions", elected, "partitionResult")
    broker.cluster.elect(named)
    return {"errorCode": 0, "replicaElectionResults": results}


# Records


def produce(broker: "Broker", request: "Request") -> Json | None:
    """Answer Produce; without acknowledgement nothing is answered."""

    def stored(topic: str, part: Json) -> Json:
        led, error = broker.led(topic, part["index"])
        offset = led.append(part["records"]) if led and part["records"] else -1
        return {"index": part["index"], "errorCode": error, "baseOffset": offset,
                "recordErrors": []}  # fmt: skip

    topics = request.request["topicData"]
    responses = _each(topics, "name", "partitionData", stored, "partitionResponses")
    if request.request["acks"] == 0:
        request.connection.done()
        return None
    return {"responses": responses}


def list_offsets(broker: "Broker", request: "Request") -> Json:
    """Answer ListOffsets; a time finds no record."""

    def found(topic: str, part: Json) -> Json:
        led, error = broker.led(topic, part["partitionIndex"])
        known = {_EARLIEST: led.start, _LATEST: led.end} if led else {}
        return {"partitionIndex": part["partitionIndex"], "errorCode": error, "timestamp": -1,
                "offset": known.get(part["timestamp"], -1),
                "leaderEpoch": led.epoch if led else -1}  # fmt: skip

    return {"topics": _each(request.request["topics"], "name", "partitions", found)}


def fetch(broker: "Broker", request: "Request") -> Json | None:
    """Answer Fetch: at once if there are records, or an error; else when `max_wait_ms` are over."""

    def read(topic: str, part: Json) -> Json:
        led, error = broker.led(topic, part["partition"])
        start, end = (led.start, led.end) if led else (-1, -1)
        if led and not start <= part["fetchOffset"] <= end:
            led, error = None, int(ErrorCode.offset_out_of_range)
        records = led.read(part["fetchOffset"], part["partitionMaxBytes"]) if led else b""
        return {"partitionIndex": part["partition"], "errorCode": error, "highWatermark": end,
                "lastStableOffset": end, "logStartOffset": start, "abortedTransactions": [],
                "records": records}  # fmt: skip

    def answer() -> Json:
        topics = _each(request.request["topics"], "topic", "partitions", read)
        return {"errorCode": 0, "responses": topics}

    now, wait_ms = answer(), request.request["maxWaitMs"]
    parts = [part for topic in now["responses"] for part in topic["partitions"]]
    if not wait_ms or any(part["errorCode"] or part["records"] for part in parts):
        return now
    broker.agenda.at(broker.agenda.now_ms + wait_ms, lambda: request.answer(answer()))
    return None
