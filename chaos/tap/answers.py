"""Answers that name brokers, rewritten so that no client passes the tap by.

Metadata, FindCoordinator and DescribeCluster name brokers in their answers; Produce, Fetch,
ShareFetch and ShareAcknowledge name new leaders in `NodeEndpoints` (KIP-951). Each broker becomes
the tap's own listener for it. ApiVersions answers offer a client no version that kio does not know,
of these APIs and of those whose requests are evidence. All other answers stay as they are, byte for
byte, and so do these where nothing had to be changed; unless a rule gives a client an error.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from kafka_protocol.apis import LOGGED_APIS, ApiKey
from kafka_protocol.error_bodies import with_error
from kafka_protocol.frames import (
    KEYS,
    BodyError,
    Head,
    response_of,
    written,
)
from kafka_protocol.kio_bodies import to_body, to_entity
from kafka_protocol.schemas import known_versions, schema_of


class Address(NamedTuple):
    """Where a broker, or the tap's listener for it, is reached."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


Listener = Callable[[int, Address], Address]
"""Returns the tap's address for a broker, given its id and its own address."""

_NODE_ENDPOINTS = {KEYS["PRODUCE"]: 10, KEYS["FETCH"]: 16, KEYS["SHARE_FETCH"]: 0,
                   KEYS["SHARE_ACKNOWLEDGE"]: 0}  # fmt: skip
"""The first version with `NodeEndpoints` (KIP-951), by API."""
_DESCRIBE_CLUSTER = KEYS["DESCRIBE_CLUSTER"]
_NAMING = {int(ApiKey.METADATA), int(ApiKey.FIND_COORDINATOR), _DESCRIBE_CLUSTER, *_NODE_ENDPOINTS}
DECODED = frozenset(_NAMING | {KEYS[name] for name in LOGGED_APIS})
"""The APIs of which clients must use versions that kio knows."""
_NAMED = ("brokers", "coordinators", "node_endpoints")
"""Where an answer names brokers; FindCoordinator names one by itself up to v3 (KIP-699)."""
_BROKERS = 1
"""`EndpointType` of DescribeCluster; 2 asks for controllers (KIP-919), which have no listener."""


def is_rewritten(api_key: int, version: int) -> bool:
    """Tell whether answers of a version may name brokers, or versions."""
    first = _NODE_ENDPOINTS.get(api_key)
    if first is not None:
        return version >= first
    return api_key in _NAMING or api_key == ApiKey.API_VERSIONS


def rewritten(frame: bytes, api_key: int, version: int, listener: Listener) -> bytes:
    """Return the answer for the client. Raises BodyError if it cannot be read."""
    if api_key == ApiKey.API_VERSIONS:
        return _with_known_versions(frame, version)
    header, body = response_of(frame, api_key, version)
    if getattr(body, "endpoint_type", _BROKERS) != _BROKERS:
        raise BodyError("DescribeCluster asks for controllers: the tap has listeners for brokers")
    changed = {
        name: tuple(_listening(entry, listener) for entry in entries)
        for name in _NAMED
        if (entries := getattr(body, name, ()))
    }
    if changed:
        return written(header, replace(body, **changed))
    moved = _listening(body, listener) if hasattr(body, "host") else body
    return frame if moved is body else written(header, moved)


def _listening(entry: Any, listener: Listener) -> Any:
    """Change an entry with the id, host and port of a broker; an error names none."""
    node = entry.broker_id if hasattr(entry, "broker_id") else entry.node_id
    if node < 0 or getattr(entry, "error_code", ErrorCode.none) != ErrorCode.none:
        return entry  # with an error, a node that was never set is broker 0 without a host
    host, port = listener(node, Address(entry.host, entry.port))
    return replace(entry, host=host, port=port)


def erring(frame: bytes, api_key: int, version: int, code: int) -> bytes:
    """Return an answer with an error instead. Raises BodyError if it cannot be read."""
    header, body = response_of(frame, api_key, version)
    return written(header, to_entity(type(body), with_error(to_body(body), code)))


def _with_known_versions(frame: bytes, version: int) -> bytes:
    """Lower the maximum of an API where the broker offers more than kio knows.

    A broker that does not know the version of the request answers in version 0 (KIP-511).
    """
    key = int(ApiKey.API_VERSIONS)
    try:
        header, body = response_of(frame, key, version)
    except BodyError:
        if version == 0:
            raise
        header, body = response_of(frame, key, 0)
    offered = tuple(_lowered(entry) for entry in body.api_keys)
    if all(new is old for new, old in zip(offered, body.api_keys, strict=True)):
        return frame
    return written(header, replace(body, api_keys=offered))


def _lowered(entry: Any) -> Any:
    if entry.api_key not in DECODED:
        return entry
    known = known_versions(entry.api_key)
    if entry.max_version < known.stop:
        return entry
    return replace(entry, max_version=known.stop - 1)


def unsupported_handshake(head: Head) -> bytes:
    """Answer a SaslHandshake v0, after which tokens come without headers: unsupported version."""
    schema = schema_of(head.api_key, head.version, response=True)
    header = schema.__header_schema__(correlation_id=head.correlation_id)
    return written(header, schema(error_code=ErrorCode.unsupported_version, mechanisms=()))
