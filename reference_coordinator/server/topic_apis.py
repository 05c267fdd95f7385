"""What a served broker answers about brokers, topics and records."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from kafka_protocol.frames import BodyError
from kafka_protocol.offsets_topic import OFFSETS_TOPIC

if TYPE_CHECKING:
    from reference_coordinator.server.broker import Broker
    from reference_coordinator.server.connection import Request

Json = dict[str, Any]
_EARLIEST, _LATEST = -2, -1
"""The timestamps of ListOffsets that ask for the first offset, and for the next."""
_NOBODY: Json = {"nodeId": -1, "host": "", "port": -1}
_DONE: Json = {"errorCode": 0, "errorMessage": None}
_UNKNOWN = ErrorCode.unknown_topic_or_partition


def _failed(error: ErrorCode) -> Json:
    """Return the fields of an error, whose name is its message."""
    return {"errorCode": error.value, "errorMessage": error.name}


def _each(
    topics: Sequence[Json], name: str, parts: str, answer: Callable[[str, Any], Json], out: str = ""
) -> list[Json]:
    """Return what is answered of each partition of each topic, in lists of the same form."""
    return [
        {name: topic[name], out or parts: [answer(topic[name], part) for part in topic[parts]]}
        for topic in topics
    ]


# Brokers


async def metadata(broker: "Broker", request: "Request") -> Json:
    """Answer Metadata, of all topics or of those named."""
    cluster, asked = broker.cluster, request.request["topics"]
    every = asked is None or (not asked and request.api_version == 0)
    alive = cluster.registered

    def described(name: str) -> Json:
        partitions = [
            {"errorCode": 0 if part.leader in alive else ErrorCode.leader_not_available.value,
             "partitionIndex": number, "leaderId": part.leader, "leaderEpoch": part.epoch,
             "replicaNodes": part.replicas, "isrNodes": [n for n in part.replicas if n in alive]}
            for number, part in enumerate(cluster.topics.get(name, ()))
        ]  # fmt: skip
        return {"errorCode": 0 if name in cluster.topics else _UNKNOWN.value, "name": name,
                "isInternal": name == OFFSETS_TOPIC, "partitions": partitions}  # fmt: skip

    names = list(cluster.topics) if every else [one["name"] for one in asked]
    brokers = [{**peer.address, "rack": None} for peer in alive.values()]
    return {"brokers": brokers, "clusterId": cluster.id, "controllerId": cluster.controller,
            "topics": [described(name) for name in names]}  # fmt: skip


async def find_coordinator(broker: "Broker", request: "Request") -> Json:
    """Answer FindCoordinator: the leader of a group's partition of the offsets topic."""
    of_group = request.request.get("keyType", 0) == 0
    leader = broker.cluster.coordinator(request.request["key"]) if of_group else None
    if leader is None:
        return _NOBODY | _failed(ErrorCode.coordinator_not_available)
    return _DONE | leader.address


async def describe_quorum(broker: "Broker", request: "Request") -> Json:
    """Answer DescribeQuorum."""
    leads = {**_DONE, "leaderId": broker.cluster.controller, "leaderEpoch": 1,
             "highWatermark": 0, "currentVoters": [], "observers": []}  # fmt: skip
    topics = _each(
        request.request["topics"], "topicName", "partitions", lambda _, part: part | leads
    )
    return {**_DONE, "topics": topics, "nodes": []}


# Topics


async def create_topics(broker: "Broker", request: "Request") -> Json:
    """Answer CreateTopics; a topic has no more replicas than there are brokers."""

    def created(asked: Json) -> Json:
        if asked["name"] in broker.cluster.topics:
            return _failed(ErrorCode.topic_already_exists)
        count, copies = max(asked["numPartitions"], 1), max(asked["replicationFactor"], 1)
        broker.cluster.grow(asked["name"], count, copies)
        return _DONE

    return {"topics": [one | {"configs": []} | created(one) for one in request.request["topics"]]}


async def create_partitions(broker: "Broker", request: "Request") -> Json:
    """Answer CreatePartitions; no partition is taken away."""

    def grown(name: str, count: int) -> Json:
        if (known := broker.cluster.topics.get(name)) is None:
            return _failed(_UNKNOWN)
        broker.cluster.grow(name, count, len(known[0].replicas))
        return _DONE

    asked = request.request["topics"]
    return {"results": [one | grown(one["name"], one["count"]) for one in asked]}


async def delete_topics(broker: "Broker", request: "Request") -> Json:
    """Answer DeleteTopics."""
    gone = {name: broker.cluster.topics.pop(name, None) for name in request.request["topicNames"]}
    outcomes = [{"name": name, **(_DONE if of else _failed(_UNKNOWN))} for name, of in gone.items()]
    return {"responses": outcomes}


async def reassign(broker: "Broker", request: "Request") -> Json:
    """Answer AlterPartitionReassignments: replicas in another order, or others."""

    def done(topic: str, asked: Json) -> Json:
        if (partition := broker.cluster.partition(topic, asked["partitionIndex"])) is None:
            return asked | _failed(_UNKNOWN)
        partition.replicas = tuple(asked["replicas"] or partition.replicas)
        return asked | _DONE

    responses = _each(request.request["topics"], "name", "partitions", done)
    return {**_DONE, "allowReplicationFactorChange": True, "responses": responses}


async def elect_leaders(broker: "Broker", request: "Request") -> Json:
    """Answer ElectLeaders: the preferred replica leads (KIP-460)."""
    asked = request.request["topicPartitions"] or ()
    broker.cluster.elect({(one["topic"], n) for one in asked for n in one["partitions"]})
    done: Callable[[str, int], Json] = lambda _, number: {"partitionId": number, **_DONE}
    results = _each(asked, "topic", "partitions", done, "partitionResult")
    return {"errorCode": 0, "replicaElectionResults": results}


# Records


async def produce(broker: "Broker", request: "Request") -> Json | None:
    """Answer Produce; without acknowledgement nothing is answered.

    Raises BodyError then if a batch was not stored: the producer learns it by its connection's end,
    as from `KafkaApis`.
    """
    failed: set[ErrorCode] = set()

    def stored(topic: str, part: Json) -> Json:
        led, error = broker.led(topic, part["index"])
        offset = -1
        try:
            offset = led.append(part["records"] or b"") if led else -1
        except ValueError:
            error = ErrorCode.corrupt_message.value
        failed.update({ErrorCode(error)} - {ErrorCode.none})
        return {"index": part["index"], "errorCode": error, "baseOffset": offset,
                "recordErrors": []}  # fmt: skip

    topics = request.request["topicData"]
    responses = _each(topics, "name", "partitionData", stored, "partitionResponses")
    if request.request["acks"] != 0:
        return {"responses": responses}
    if failed:
        names = ", ".join(sorted(error.name for error in failed))
        raise BodyError(f"Produce with acks=0 of {request.client_id} failed ({names})")
    return None


async def init_producer_id(broker: "Broker", _request: "Request") -> Json:
    """Answer InitProducerId: an id for an idempotent producer, new each time (KIP-98)."""
    return {"errorCode": 0, "producerId": next(broker.cluster.producer_ids), "producerEpoch": 0}


async def list_offsets(broker: "Broker", request: "Request") -> Json:
    """Answer ListOffsets; a time finds no record."""

    def found(topic: str, part: Json) -> Json:
        led, error = broker.led(topic, part["partitionIndex"])
        known = {_EARLIEST: led.offsets.start, _LATEST: led.offsets.stop} if led else {}
        return {"partitionIndex": part["partitionIndex"], "errorCode": error, "timestamp": -1,
                "offset": known.get(part["timestamp"], -1),
                "leaderEpoch": led.epoch if led else -1}  # fmt: skip

    return {"topics": _each(request.request["topics"], "name", "partitions", found)}


async def fetch(broker: "Broker", request: "Request") -> Json:
    """Answer Fetch: at once if there are records, or an error; else when `maxWaitMs` are over."""
    waits = request.request["maxWaitMs"] > 0

    def read(topic: str, part: Json) -> Json:
        nonlocal waits
        led, error = broker.led(topic, part["partition"])
        offset, known, records = part["fetchOffset"], led.offsets if led else range(0), b""
        if led and known.start <= offset <= known.stop:
            records = led.read(offset, part["partitionMaxBytes"])
        elif led:
            error = ErrorCode.offset_out_of_range.value
        waits &= not (records or error)
        return {"partitionIndex": part["partition"], "errorCode": error, "records": records,
                "highWatermark": known.stop, "lastStableOffset": known.stop,
                "logStartOffset": known.start, "abortedTransactions": []}  # fmt: skip

    responses = _each(request.request["topics"], "topic", "partitions", read)
    if waits:
        await asyncio.sleep(request.request["maxWaitMs"] / 1000)
        responses = _each(request.request["topics"], "topic", "partitions", read)
    return {"errorCode": 0, "responses": responses}
