"""What a served broker answers about groups: `step` decides, but for offsets that are asked for."""

import time
import uuid
from copy import copy
from typing import TYPE_CHECKING, Any

from kafka_protocol.errors import Error
from kafka_protocol.group_configs import GROUP
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.effects import ConfigureResponse
from reference_coordinator.classic.events import NO_CHOICES, Choices, DescribeReceived
from reference_coordinator.driving.bodies import described_group, response_body

if TYPE_CHECKING:
    from reference_coordinator.server.broker import Broker
    from reference_coordinator.server.connection import Request

Json = dict[str, Any]
NO_OFFSET: Json = {"committedOffset": -1, "committedLeaderEpoch": -1, "metadata": ""}
"""What is answered where nothing was committed."""


async def of_member(broker: "Broker", request: "Request") -> Json:
    """Let the coordinator of a group act on a member's request, and answer when it does."""
    name = request.request["groupId"]
    owner = request.request.get("groupInstanceId") or request.client_id
    event = CLASSIC.event_of(request, broker.agenda.now_ms, Choices(f"{owner}-{uuid.uuid4()}"))
    response = await broker.group(name).receive(request, event)
    if request.api == "OFFSET_COMMIT" and response.error == Error.NONE:
        stored = broker.cluster.offsets.setdefault(name, {})
        for topic in request.request["topics"]:
            for part in topic["partitions"]:
                offset = {**NO_OFFSET, **part, "metadata": part["committedMetadata"]}
                stored[topic["name"], part["partitionIndex"]] = offset
    return response_body(response, request)


async def configure(broker: "Broker", request: "Request") -> Json:
    """Answer IncrementalAlterConfigs: the coordinator of each group acts on it.

    A broker that is not the coordinator hands the request on, as brokers do with the controller's
    (KIP-590); the line is in the log of the coordinator.
    """
    responses: list[Json] = []
    for resource in request.request["resources"]:
        one, name = copy(request), resource["resourceName"]
        one.request = {**request.request, "resources": [resource]}
        if resource["resourceType"] != GROUP or request.request["validateOnly"]:
            body = response_body(ConfigureResponse(Error.INVALID_REQUEST), one)
        else:
            found = broker.cluster.coordinator(name)
            if found is None or not (found.runs and found.agenda.going.is_set()):
                found = broker  # which does not coordinate it
            event = CLASSIC.event_of(one, found.agenda.now_ms, NO_CHOICES)
            body = response_body(await found.group(name).receive(one, event), one)
            request.connection.log(one, body, found, time.monotonic_ns())
        responses += body["responses"]
    return {"responses": responses}


async def describe(broker: "Broker", request: "Request") -> Json:
    """Answer DescribeGroups."""
    described = []
    for name in request.request["groups"]:
        event = DescribeReceived(broker.agenda.now_ms, request.id, request.api_version)
        described.append(described_group(name, await broker.group(name).receive(request, event)))
    return {"groups": described}


async def fetch_offsets(broker: "Broker", request: "Request") -> Json:
    """Answer OffsetFetch: all that was committed, or of the partitions that are named."""
    group, asked = request.request["groupId"], request.request["topics"]
    if not broker.coordinates(group):
        return {"topics": [], "errorCode": int(Error.NOT_COORDINATOR)}
    stored = broker.cluster.offsets.get(group, {})
    places = [*stored] if asked is None else [
        (topic["name"], number) for topic in asked for number in topic["partitionIndexes"]
    ]  # fmt: skip
    found: dict[str, list[Json]] = {}
    for place in places:
        known = NO_OFFSET | stored.get(place, {})
        found.setdefault(place[0], []).append(known | {"partitionIndex": place[1], "errorCode": 0})
    topics = [{"name": name, "partitions": parts} for name, parts in found.items()]
    return {"topics": topics, "errorCode": 0}
