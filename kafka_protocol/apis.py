"""Kafka's APIs about consumer groups, by the names that the request log gives them.

Source: `org.apache.kafka.common.protocol.ApiKeys`.
"""

from enum import IntEnum
from typing import Literal, get_args


class ApiKey(IntEnum):
    """The number of an API on the wire."""

    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DESCRIBE_CONFIGS = 32
    SASL_AUTHENTICATE = 36
    DELETE_GROUPS = 42
    INCREMENTAL_ALTER_CONFIGS = 44
    CONSUMER_GROUP_HEARTBEAT = 68


GroupApi = Literal["JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP", "OFFSET_COMMIT"]

GROUP_APIS: tuple[str, ...] = get_args(GroupApi)
"""The requests of a group's members, which the reference coordinator answers."""

ADMIN_APIS = ("DESCRIBE_GROUPS", "DELETE_GROUPS")
"""The requests of operators about a classic group."""

COORDINATOR_APIS = (*GROUP_APIS, *ADMIN_APIS)
"""What the classic group coordinator serves, as far as it is modelled."""

KIP_848_APIS = ("CONSUMER_GROUP_HEARTBEAT",)
"""Requests of the other group protocol (KIP-848), which the reference coordinator does not know."""

CONFIGURE = "INCREMENTAL_ALTER_CONFIGS"
"""Changes configs of a group (KIP-848); the reference coordinator has some that Kafka has not."""

OFFSET_FETCH = "OFFSET_FETCH"
"""Asks for committed offsets, for a member or anyone else; it changes no group."""

READ_APIS = (*GROUP_APIS, OFFSET_FETCH)
"""The requests whose bodies are read."""

LOGGED_APIS = (*READ_APIS, *KIP_848_APIS)
"""The requests that `group.log` holds, and no others."""

HELD_APIS = ("JOIN_GROUP", "SYNC_GROUP")
"""Requests that a coordinator may hold back until other members act."""
