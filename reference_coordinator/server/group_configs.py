"""What a served broker answers about configs of groups: the coordinator of each acts on them.

A broker that is not the coordinator hands the request on, as brokers do with the controller's
(KIP-590); the line is in the log of the coordinator.
"""

import time
from copy import copy
from typing import TYPE_CHECKING, Any

from kio.schema.errors import ErrorCode

from kafka_protocol.group_configs import EXPECTED, GROUP, SOURCES, TARGET_SIZE, TIMEOUT, TYPES
from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.events import NO_CHOICES
from reference_coordinator.classic.group_config import configs_by
from reference_coordinator.classic.state import NO_CONFIG, GroupConfig
from reference_coordinator.driving.bodies import response_body

if TYPE_CHECKING:
    from reference_coordinator.server.broker import Broker
    from reference_coordinator.server.connection import Request

Json = dict[str, Any]


def _coordinator(broker: "Broker", resource: Json) -> "Broker | ErrorCode":
    """Return the coordinator of the group that a resource names, or why nobody acts on it."""
    if resource["resourceType"] != GROUP:
        return ErrorCode.invalid_request
    found = broker.cluster.coordinator(resource["resourceName"])
    if found is None or not found.runs or not found.agenda.going.is_set():
        return ErrorCode.coordinator_not_available
    return found


def _of(resource: Json, error: ErrorCode, **more: Any) -> Json:
    kept = {name: resource[name] for name in ("resourceType", "resourceName")}
    return {"errorCode": int(error), "errorMessage": error.name if error else None, **kept, **more}


async def alter(broker: "Broker", request: "Request") -> Json:
    """Answer IncrementalAlterConfigs."""
    responses: list[Json] = []
    for resource in request.request["resources"]:
        found = _coordinator(broker, resource)
        if request.request["validateOnly"]:
            found = ErrorCode.invalid_request  # nobody asks what a group would answer
        if isinstance(found, ErrorCode):
            responses.append(_of(resource, found))
            continue
        one = copy(request)
        one.request = {**request.request, "resources": [resource]}
        event = CLASSIC.event_of(one, found.agenda.now_ms, NO_CHOICES)
        response = await found.group(resource["resourceName"]).receive(one, event)
        body = response_body(response, one)
        responses.extend(body["responses"])
        request.connection.log(one, body, found, time.monotonic_ns())
    return {"responses": responses}


async def describe(broker: "Broker", request: "Request") -> Json:
    """Answer DescribeConfigs."""
    results = []
    for resource in request.request["resources"]:
        found = _coordinator(broker, resource)
        if isinstance(found, ErrorCode):
            results.append(_of(resource, found, configs=[]))
            continue
        values = _values(found.group(resource["resourceName"]).group.config)
        asked, default = resource["configurationKeys"], _values(NO_CONFIG)
        configs: list[Json] = [
            {"name": name, "value": values[name], "readOnly": False, "isSensitive": False,
             "configSource": SOURCES[values[name] == default[name]], "synonyms": [],
             "isDefault": values[name] == default[name], "configType": TYPES[name],
             "documentation": None}
            for name in configs_by(broker.cluster.profile)
            if asked is None or name in asked
        ]  # fmt: skip
        results.append(_of(resource, ErrorCode.none, configs=configs))
    return {"results": results}


def _values(config: GroupConfig) -> dict[str, str]:
    """Return the configs by name."""
    return {
        EXPECTED: ",".join(sorted(config.expected or ())), TIMEOUT: str(config.wait_ms),
        TARGET_SIZE: str(config.target_size or ""),
    }  # fmt: skip
