"""The classes of messages: kio's, and those of versions that only a proposal has.

JoinGroup has a version beyond Kafka's newest: v10, for the reason of KIP-423.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.static.primitive import i8, i16

from kafka_protocol.versions import FIRST_JOIN_WITH_JOIN_REASON


@dataclass(frozen=True, slots=True, kw_only=True)
class _JoinGroupRequest(JoinGroupRequest):
    __version__: ClassVar[i16] = i16(FIRST_JOIN_WITH_JOIN_REASON)
    join_reason: i8 = field(metadata={"kafka_type": "int8"}, default=i8(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _JoinGroupResponse(JoinGroupResponse):
    __version__: ClassVar[i16] = i16(FIRST_JOIN_WITH_JOIN_REASON)


_PROPOSED: Mapping[tuple[int, int, bool], type[Any]] = {
    (one.__api_key__, one.__version__, response): one
    for one, response in ((_JoinGroupRequest, False), (_JoinGroupResponse, True))
}
"""By API key and version, and whether it is a response."""


def known_versions(api_key: int) -> range:
    """Return the versions of an API that have classes; none if kio does not know the API."""
    versions = {*schema_name_map.get(api_key_map.get(api_key, ""), ())}
    versions |= {version for key, version, _ in _PROPOSED if key == api_key}
    return range(min(versions), max(versions) + 1) if versions else range(0)


@cache
def schema_of(api_key: int, version: int, *, response: bool = False) -> Any:
    """Return the class of a request or response. Raises `UnknownEntity` (kio) if there is none."""
    load = load_response_schema if response else load_request_schema
    return _PROPOSED.get((api_key, version, response)) or load(api_key, version)
