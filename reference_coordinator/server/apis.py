"""What a served broker answers, by API: the handler of each, and its versions."""

import gc
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from kafka_protocol.apis import CONFIGURE, GROUP_APIS
from kafka_protocol.frames import KEYS, load_readers
from kafka_protocol.schemas import known_versions
from kafka_protocol.versions import FIRST_JOIN_WITH_JOIN_REASON
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.server import group_apis, topic_apis

if TYPE_CHECKING:
    from reference_coordinator.server.broker import Broker
    from reference_coordinator.server.connection import Request

Json = dict[str, Any]
Handler = Callable[["Broker", "Request"], Awaitable[Json | None]]
"""Returns the body of the response, None for no response."""


async def api_versions(broker: "Broker", _request: object = None) -> Json:
    """Answer ApiVersions."""
    offered = [
        {"apiKey": KEYS[api], "minVersion": versions.start, "maxVersion": versions.stop - 1}
        for api, versions in broker.cluster.versions.items()
    ]
    return {"errorCode": 0, "apiKeys": offered}


HANDLERS: Mapping[str, Handler] = {
    "API_VERSIONS": api_versions,
    "METADATA": topic_apis.metadata,
    "FIND_COORDINATOR": topic_apis.find_coordinator,
    "DESCRIBE_QUORUM": topic_apis.describe_quorum,
    "CREATE_TOPICS": topic_apis.create_topics,
    "CREATE_PARTITIONS": topic_apis.create_partitions,
    "DELETE_TOPICS": topic_apis.delete_topics,
    "ALTER_PARTITION_REASSIGNMENTS": topic_apis.reassign,
    "ELECT_LEADERS": topic_apis.elect_leaders,
    "INIT_PRODUCER_ID": topic_apis.init_producer_id,
    "PRODUCE": topic_apis.produce,
    "LIST_OFFSETS": topic_apis.list_offsets,
    "FETCH": topic_apis.fetch,
    **dict.fromkeys(GROUP_APIS, group_apis.of_member),
    "DESCRIBE_GROUPS": group_apis.describe,
    "OFFSET_FETCH": group_apis.fetch_offsets,
    CONFIGURE: group_apis.configure,
}
_NEWEST = {
    "METADATA": 8, "CREATE_TOPICS": 6, "DELETE_TOPICS": 5, "PRODUCE": 12, "FETCH": 12,
    "OFFSET_COMMIT": 9, "OFFSET_FETCH": 7, "FIND_COORDINATOR": 3,
}  # fmt: skip
"""The last version before topics have ids (KIP-516, KIP-848), and requests name several groups
(KIP-699, KIP-709). librdkafka 2.16 garbles a flexible Metadata request for all topics, which kio
does not read; its last version before is 8."""


def versions_by(rules: Profile) -> Mapping[str, range]:
    """Return the versions of each API: most are all of kio's, which has every one of Kafka 4."""
    beyond = not rules.join_reason_counts
    most = {**_NEWEST, "JOIN_GROUP": FIRST_JOIN_WITH_JOIN_REASON - beyond}
    return {
        api: range(known.start, min(known.stop, most.get(api, known.stop) + 1))
        for api in HANDLERS
        for known in [known_versions(KEYS[api])]
    }


def load() -> None:
    """Load what reads requests, so that no client waits for it, nor while garbage is sought in it.

    A collection of it takes 54 ms.
    """
    load_readers(KEYS[api] for api in HANDLERS)
    gc.freeze()
