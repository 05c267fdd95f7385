"""What a served broker answers to producers, and to members that read."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from reference_coordinator.server.topics import Partition

if TYPE_CHECKING:
    from reference_coordinator.server.broker import Broker
    from reference_coordinator.server.connection import Request

Json = dict[str, Any]
Led = Partition | ErrorCode
"""A partition that a broker leads, or why it does not."""
_EARLIEST, _LATEST = -2, -1
"""The timestamps of ListOffsets that ask for the first offset, and for the next."""


def _led(broker: "Broker", topic: str, number: int) -> Led:
    """Return a partition that the broker leads, or why it is none."""
    partition = broker.cluster.partition(topic, number)
    if partition is None:
        return ErrorCode.unknown_topic_or_partition
    return partition if partition.leader == broker.id else ErrorCode.not_leader_or_follower


def produce(broker: "Broker", request: "Request") -> Json | None:
    """Answer Produce; without acknowledgement nothing is answered."""

    def stored(topic: str, part: Json) -> Json:
        led, offset = _led(broker, topic, part["index"]), -1
        if isinstance(led, Partition) and part["records"]:
            offset = led.append(part["records"])
        error = ErrorCode.none if isinstance(led, Partition) else led
        return {"index": part["index"], "errorCode": int(error), "baseOffset": offset,
                "recordErrors": []}  # fmt: skip

    responses = [
        {
            "name": topic["name"],
            "partitionResponses": [stored(topic["name"], p) for p in topic["partitionData"]],
        }
        for topic in request.request["topicData"]
    ]
    if request.request["acks"] == 0:
        request.end()
        return None
    return {"responses": responses}


def list_offsets(broker: "Broker", request: "Request") -> Json:
    """Answer ListOffsets; a time finds no record."""

    def found(topic: str, part: Json) -> Json:
        led, offset = _led(broker, topic, part["partitionIndex"]), -1
        if isinstance(led, Partition):
            offset = {_EARLIEST: led.start, _LATEST: led.end}.get(part["timestamp"], -1)
        error = ErrorCode.none if isinstance(led, Partition) else led
        epoch = led.epoch if isinstance(led, Partition) and offset >= 0 else -1
        return {"partitionIndex": part["partitionIndex"], "errorCode": int(error),
                "timestamp": -1, "offset": offset, "leaderEpoch": epoch}  # fmt: skip

    topics = [
        {
            "name": topic["name"],
            "partitions": [found(topic["name"], part) for part in topic["partitions"]],
        }
        for topic in request.request["topics"]
    ]
    return {"topics": topics}


def fetch(broker: "Broker", request: "Request") -> None:
    """Answer Fetch when there are records, or an error, or when `max_wait_ms` are over."""
    waits = True

    def finish() -> None:
        nonlocal waits
        if waits:
            waits = False
            for _, part in led:
                if isinstance(part, Partition):
                    part.waiting.discard(wake)
            request.answer(_fetched(broker, request.request))

    def wake() -> None:  # by its own broker, which may be frozen
        broker.agenda.after(0, finish)

    led = list(_asked(broker, request.request))
    ready = any(
        isinstance(part, ErrorCode) or asked["fetchOffset"] != part.end for asked, part in led
    )
    if ready or not request.request["maxWaitMs"]:
        finish()
        return
    for _, part in led:
        if isinstance(part, Partition):
            part.waiting.add(wake)
    broker.agenda.after(request.request["maxWaitMs"], finish)


def _asked(broker: "Broker", body: Mapping[str, Any]) -> Iterator[tuple[Json, Led]]:
    for topic in body["topics"]:
        for part in topic["partitions"]:
            yield part, _led(broker, topic["topic"], part["partition"])


def _fetched(broker: "Broker", body: Mapping[str, Any]) -> Json:
    responses = [
        {
            "topic": topic["topic"],
            "partitions": [
                _read(part, _led(broker, topic["topic"], part["partition"]))
                for part in topic["partitions"]
            ],
        }
        for topic in body["topics"]
    ]
    return {"errorCode": 0, "sessionId": 0, "responses": responses}


def _read(asked: Json, led: Led) -> Json:
    error, start, end, records = led, -1, -1, b""
    if isinstance(led, Partition):
        start, end, error = led.start, led.end, ErrorCode.none
        if not start <= asked["fetchOffset"] <= end:
            error = ErrorCode.offset_out_of_range
        else:
            records = led.read(asked["fetchOffset"], asked["partitionMaxBytes"])
    assert isinstance(error, ErrorCode)
    return {
        "partitionIndex": asked["partition"], "errorCode": int(error), "highWatermark": end,
        "lastStableOffset": end, "logStartOffset": start, "abortedTransactions": [],
        "records": records,
    }  # fmt: skip


HANDLERS: Mapping[str, Callable[["Broker", "Request"], Json | None]] = {
    "PRODUCE": produce,
    "LIST_OFFSETS": list_offsets,
    "FETCH": fetch,
}
