"""The group's APIs, and the versions that kio and a broker share.

kio 0.6.5 has every version of Kafka 4. Of the group's APIs on older brokers it lacks only
OffsetCommit v0 and v1 (offsets in ZooKeeper, no group checks in v0).
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafka_protocol.apis import COORDINATOR_APIS, ApiKey
from kafka_protocol.schemas import known_versions

if TYPE_CHECKING:
    from loadtest.wire.connection import Connection

Versions = Mapping[str, tuple[int, int]]
"""The lowest and the highest version, by API."""


def known(api: str) -> tuple[int, int]:
    """Return the lowest and the highest version of an API that has classes."""
    versions = known_versions(ApiKey[api])
    return versions.start, versions.stop - 1


def negotiate(connection: "Connection", apis: Iterable[str] = COORDINATOR_APIS) -> Versions:
    """Return the versions that a broker and kio share (ApiVersions request).

    An API without a shared version is left out.
    """
    served = connection.ask("API_VERSIONS", 0, {})["apiKeys"]
    offered = {entry["apiKey"]: (entry["minVersion"], entry["maxVersion"]) for entry in served}
    shared = {}
    for api in apis:
        lowest, highest = known(api)
        first, last = offered.get(ApiKey[api], (highest + 1, highest))
        if max(lowest, first) <= min(highest, last):
            shared[api] = (max(lowest, first), min(highest, last))
    return shared
