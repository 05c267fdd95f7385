"""What a served broker answers, by API: the handler of each, and its versions."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kafka_protocol.frames import KEYS, known_versions
from reference_coordinator.server import cluster_apis, group_apis, record_apis

if TYPE_CHECKING:
    from reference_coordinator.server.broker import Broker
    from reference_coordinator.server.connection import Request

Json = dict[str, Any]
Handler = Callable[["Broker", "Request"], Json | None]
"""Returns the body of the response, or None if that comes later."""


def api_versions(_broker: object = None, _request: object = None) -> Json:
    """Answer ApiVersions."""
    offered = [
        {"apiKey": KEYS[api], "minVersion": versions.start, "maxVersion": versions.stop - 1}
        for api, versions in VERSIONS.items()
    ]
    return {"errorCode": 0, "apiKeys": offered}


HANDLERS: Mapping[str, Handler] = {
    "API_VERSIONS": api_versions,
    **cluster_apis.HANDLERS,
    **group_apis.HANDLERS,
    **record_apis.HANDLERS,
}
_NEWEST = {"FETCH": 12, "PRODUCE": 12}
"""The last version that names topics, and has no ids for them (KIP-516)."""
VERSIONS: Mapping[str, range] = {
    api: range(known.start, min(known.stop, _NEWEST.get(api, known.stop) + 1))
    for api in HANDLERS
    for known in [known_versions(KEYS[api])]
}
"""The versions of each API: those of kio, which has every one of Kafka 4."""
