"""What a served broker answers about groups: `step` decides, but for offsets that are asked for."""

import uuid
from typing import TYPE_CHECKING, Any

from kafka_protocol.errors import Error
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.events import Choices, DescribeReceived
from reference_coordinator.driving.bodies import described_group, response_body

if TYPE_CHECKING:
    from reference_coordinator.server.broker import Broker
    from reference_coordinator.server.connection import Request

Json = dict[str, Any]
NO_OFFSET: Json = {"committedOffset": -1, "committedLeaderEpoch": -1, "metadata": ""}
"""What is answered where nothing was committed."""


def of_member(broker: "Broker", request: "Request") -> None:
    """Let the coordinator of a group act on a member's request, and answer when it does."""
    group = broker.group(request.request["groupId"])
    owner = request.request.get("groupInstanceId") or request.client_id
    event = CLASSIC.event_of(request, broker.agenda.now_ms, Choices(f"{owner}-{uuid.uuid4()}"))

    def answered(response: Any) -> None:
        if request.api == "OFFSET_COMMIT" and response.error == Error.NONE:
            broker.cluster.commit(request.request)
        request.answer(response_body(response, request))

    group.receive(request, event, answered)


def describe(broker: "Broker", request: "Request") -> Json:
    """Answer DescribeGroups."""
    described: list[Json] = []
    for name in request.request["groups"]:
        event = DescribeReceived(broker.agenda.now_ms, request.id, request.api_version)
        take = lambda response, name=name: described.append(described_group(name, response))
        broker.group(name).receive(request, event, take)
    return {"groups": described}


def list_groups(broker: "Broker", request: "Request") -> Json:
    """Answer ListGroups: the groups that the broker coordinates."""
    states = request.request.get("statesFilter") or ()
    groups = [
        {"groupId": name, "protocolType": one.group.protocol_type or "",
         "groupState": str(one.group.state), "groupType": "classic"}
        for name, one in broker.groups.items()
        if one.group.exists and (not states or one.group.state in states)
    ]  # fmt: skip
    return {"errorCode": 0, "groups": groups}


def fetch_offsets(broker: "Broker", request: "Request") -> Json:
    """Answer OffsetFetch."""
    group, asked = request.request["groupId"], request.request["topics"]
    if not broker.coordinates(group):
        return {"topics": [], "errorCode": int(Error.NOT_COORDINATOR)}
    stored = broker.cluster.offsets.get(group, {})
    if asked is None:
        names = dict.fromkeys(name for name, _ in stored)
        numbers = {name: [number for one, number in stored if one == name] for name in names}
        asked = [{"name": name, "partitionIndexes": of} for name, of in numbers.items()]

    def of(topic: str, number: int) -> Json:
        return {"partitionIndex": number, "errorCode": 0, **stored.get((topic, number), NO_OFFSET)}

    topics = [
        {"name": one["name"], "partitions": [of(one["name"], n) for n in one["partitionIndexes"]]}
        for one in asked
    ]
    return {"topics": topics, "errorCode": 0}
