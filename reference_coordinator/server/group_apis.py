"""What a served broker answers about groups: `step` decides, but for offsets that are asked for."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kafka_protocol.apis import GROUP_APIS
from kafka_protocol.errors import Error
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.events import Choices, DeleteReceived, DescribeReceived
from reference_coordinator.driving.bodies import described_group, response_body

if TYPE_CHECKING:
    from reference_coordinator.server.broker import Broker
    from reference_coordinator.server.connection import Request

Json = dict[str, Any]


def of_member(broker: "Broker", request: "Request") -> None:
    """Let the coordinator of a group act on a member's request, and answer when it does."""
    group = broker.group(request.request["groupId"])
    owner = request.request.get("groupInstanceId") or request.client_id
    event = CLASSIC.event_of(request, broker.agenda.now_ms, Choices(group.new_id(owner)))

    def answered(response: Any) -> None:
        if request.api == "OFFSET_COMMIT" and response.error == Error.NONE:
            broker.cluster.commit(request.request)
        request.answer(response_body(response, request))

    group.receive(request, event, answered)


def describe(broker: "Broker", request: "Request") -> Json:
    """Answer DescribeGroups."""
    described = []
    for name in request.request["groups"]:
        event = DescribeReceived(broker.agenda.now_ms, request.id, request.api_version)
        take = lambda response, name=name: described.append(described_group(name, response))
        broker.group(name).receive(request, event, take)
    return {"groups": described}


def delete(broker: "Broker", request: "Request") -> Json:
    """Answer DeleteGroups."""
    results: list[Json] = []
    for name in request.request["groupsNames"]:
        event = DeleteReceived(broker.agenda.now_ms, request.id)
        take = lambda response, name=name: results.append(
            {"groupId": name, "errorCode": int(response.error)}
        )
        broker.group(name).receive(request, event, take)
        if not results[-1]["errorCode"]:
            broker.cluster.offsets.pop(name, None)
    return {"results": results}


def list_groups(broker: "Broker", request: "Request") -> Json:
    """Answer ListGroups: the groups that the broker coordinates."""
    states = request.request.get("statesFilter") or ()
    groups = [
        {
            "groupId": name, "protocolType": one.group.protocol_type or "",
            "groupState": str(one.group.state), "groupType": "classic",
        }
        for name, one in broker.groups.items()
        if not states or one.group.state in states
    ]  # fmt: skip
    return {"errorCode": 0, "groups": groups}


def fetch_offsets(broker: "Broker", request: "Request") -> Json:
    """Answer OffsetFetch, of one group or of several (KIP-709)."""
    body = request.request
    if "groups" not in body:
        return _fetched(broker, body["groupId"], body["topics"])
    groups = [{"groupId": one["groupId"], **_fetched(broker, one["groupId"], one["topics"])}
              for one in body["groups"]]  # fmt: skip
    return {"groups": groups}


def _fetched(broker: "Broker", group: str, asked: list[Json] | None) -> Json:
    if not broker.coordinates(group):
        return {"topics": [], "errorCode": int(Error.NOT_COORDINATOR)}
    stored = broker.cluster.offsets.get(group, {})
    if asked is None:
        numbers: dict[str, list[int]] = {}
        for name, number in stored:
            numbers.setdefault(name, []).append(number)
        asked = [{"name": name, "partitionIndexes": of} for name, of in numbers.items()]
    topics = []
    for topic in asked:
        name = broker.cluster.name_of(topic)
        partitions = [
            {
                "partitionIndex": number,
                **stored.get((name, number), NO_OFFSET),
                "errorCode": 0,
            }
            for number in topic["partitionIndexes"]
        ]
        known = broker.cluster.topics.get(name)
        topic_id = topic.get("topicId") or (known.printed_id if known else None)
        topics.append({"name": name, "topicId": topic_id, "partitions": partitions})
    return {"topics": topics, "errorCode": 0}


NO_OFFSET: Json = {"committedOffset": -1, "committedLeaderEpoch": -1, "metadata": ""}
"""What is answered where nothing was committed."""
HANDLERS: Mapping[str, Callable[["Broker", "Request"], Json | None]] = {
    **dict.fromkeys(GROUP_APIS, of_member),
    "OFFSET_FETCH": fetch_offsets,
    "DESCRIBE_GROUPS": describe,
    "DELETE_GROUPS": delete,
    "LIST_GROUPS": list_groups,
}
