"""Responses with an error instead of what the broker answered."""

from collections.abc import Mapping
from typing import Any

from kafka_protocol.bodies import Json
from kafka_protocol.errors import Error

_NAMES = ("groupId", "key", "name", "topicId", "partitionIndex", "throttleTimeMs")
"""What an answer has a value of beside its error, as in Kafka's `getErrorResponse`."""
_NOTHING: Mapping[type, Any] = {str: "", list: [], bool: False, int: -1}


def with_error(response: Mapping[str, Any], code: int) -> Json:
    """Return a response as it is with an error: its outermost, of each entry where there are more.

    Beside an error Kafka's responses say nothing but what it is about.
    """
    if "errorCode" not in response:
        return {
            name: [with_error(one, code) for one in value] if isinstance(value, list) else value
            for name, value in response.items()
        }
    # JoinGroup gives a member id with one error alone, to join with (KIP-394)
    names = (*_NAMES, "memberId") if code == Error.MEMBER_ID_REQUIRED else _NAMES
    kept = {
        name: value if name in names else _NOTHING.get(type(value))
        for name, value in response.items()
    }
    return kept | {"errorCode": code}
