"""The fields of the bodies of an API's requests and responses, by version: one table for all.

Names, order and versions are those of Kafka's message schemas, as its JSON request log prints them
(`clients/src/main/resources/common/message/*.json`); tagged fields and lists of operations that a
client may do are left out. Bytes are base64, or `(39 bytes)` where only their length is known:
two of one length then count as the same.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache, partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from kafka_protocol.versions import (
    FIRST_BATCH_LEAVE,
    FIRST_COMMIT_WITH_GENERATION,
    FIRST_COMMIT_WITH_INSTANCE_ID,
    FIRST_COMMIT_WITH_TOPIC_ID,
    FIRST_DELETE_WITH_MESSAGE,
    FIRST_DESCRIBE_WITH_GROUP_ERRORS,
    FIRST_DESCRIBE_WITH_INSTANCE_ID,
    FIRST_FETCH_WITH_ERROR,
    FIRST_FETCH_WITH_GROUPS,
    FIRST_FETCH_WITH_LEADER_EPOCH,
    FIRST_FETCH_WITH_MEMBER,
    FIRST_FETCH_WITH_STABLE,
    FIRST_FETCH_WITH_TOPIC_ID,
    FIRST_HEARTBEAT_WITH_INSTANCE_ID,
    FIRST_JOIN_WITH_INSTANCE_ID,
    FIRST_JOIN_WITH_JOIN_REASON,
    FIRST_JOIN_WITH_PROTOCOL_TYPE,
    FIRST_JOIN_WITH_REASON,
    FIRST_JOIN_WITH_REBALANCE_TIMEOUT,
    FIRST_JOIN_WITH_SKIP_ASSIGNMENT,
    FIRST_LEAVE_WITH_REASON,
    FIRST_SYNC_WITH_INSTANCE_ID,
    FIRST_SYNC_WITH_PROTOCOL,
)

LENGTH = re.compile(r"\([1-9][0-9]* bytes\)")
"""Bytes of which only the length is known, as the request log prints them before 2.8."""

EVER = 1_000
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""The widest of Kafka's numbers."""

Kind = Literal["text", "number", "boolean", "bytes"]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A field, in versions `since` to `until`; `kind` is a scalar's, or the fields of an entry.

    It may be null from version `null_since` on. `read` is false where the reference coordinator
    does without it, so that a body may lack it. `also` is another name that it has had.
    """

    name: str
    since: int = 0
    until: int = EVER
    _: KW_ONLY
    kind: "Kind | tuple[Field, ...]" = "text"
    null_since: int | None = None
    listed: bool = False
    read: bool = True
    also: str | None = None

    def in_version(self, version: int) -> bool:
        """Tell whether a version has the field."""
        return self.since <= version <= self.until


@dataclass(frozen=True, slots=True)
class Bodies:
    """The bodies of an API; `groups` is the field that names the group, or a list of groups."""

    request: tuple[Field, ...]
    response: tuple[Field, ...]
    groups: str = "groupId"


_text = Field
_number, _flag = partial(Field, kind="number"), partial(Field, kind="boolean")
_bytes = partial(Field, kind="bytes")


def _list(
    name: str, *entry: Field, since: int = 0, until: int = EVER, null_since: int | None = None
) -> Field:
    return Field(name, since, until, kind=entry, null_since=null_since, listed=True)


def _instance(since: int = 0) -> Field:
    return _text("groupInstanceId", since, null_since=0)


def _throttle(since: int) -> Field:
    return _number("throttleTimeMs", since, read=False)


_GROUP, _MEMBER, _ERROR = _text("groupId"), _text("memberId"), _number("errorCode")
_GENERATION = _number("generationId")
_SYNC_PROTOCOL = (
    _text("protocolType", FIRST_SYNC_WITH_PROTOCOL, null_since=0),
    _text("protocolName", FIRST_SYNC_WITH_PROTOCOL, null_since=0),
)


def _topics(
    first_with_id: int, inside: Field, until: int = EVER, null_since: int | None = None
) -> Field:
    named = _text("name", until=first_with_id - 1), _text("topicId", first_with_id)
    return _list("topics", *named, inside, until=until, null_since=null_since)


def _committed(*partition: Field) -> Field:
    partitions = _list("partitions", _number("partitionIndex"), *partition)
    return _topics(FIRST_COMMIT_WITH_TOPIC_ID, partitions)


def _asked(until: int = EVER) -> Field:
    """Return the topics whose offsets are asked for; null for all."""
    indexes = _number("partitionIndexes", listed=True)
    return _topics(FIRST_FETCH_WITH_TOPIC_ID, indexes, until, FIRST_FETCH_WITH_ERROR)


def _fetched(until: int = EVER) -> Field:
    partitions = _list(
        "partitions", _number("partitionIndex"), _number("committedOffset"),
        _number("committedLeaderEpoch", FIRST_FETCH_WITH_LEADER_EPOCH, read=False),
        _text("metadata", null_since=0, read=False), _ERROR,
    )  # fmt: skip
    return _topics(FIRST_FETCH_WITH_TOPIC_ID, partitions, until)


BODIES: Mapping[str, Bodies] = {
    "JOIN_GROUP": Bodies(
        (
            _GROUP, _number("sessionTimeoutMs"),
            _number("rebalanceTimeoutMs", FIRST_JOIN_WITH_REBALANCE_TIMEOUT), _MEMBER,
            _instance(FIRST_JOIN_WITH_INSTANCE_ID), _text("protocolType"),
            _list("protocols", _text("name"), _bytes("metadata")),
            _text("reason", FIRST_JOIN_WITH_REASON, null_since=0, read=False),
            _number("joinReason", FIRST_JOIN_WITH_JOIN_REASON),
        ),
        (
            _throttle(2), _ERROR, _GENERATION,
            _text("protocolType", FIRST_JOIN_WITH_PROTOCOL_TYPE, null_since=0),
            _text("protocolName", null_since=FIRST_JOIN_WITH_PROTOCOL_TYPE), _text("leader"),
            _flag("skipAssignment", FIRST_JOIN_WITH_SKIP_ASSIGNMENT), _MEMBER,
            _list(
                "members", _MEMBER, _instance(FIRST_JOIN_WITH_INSTANCE_ID), _bytes("metadata")
            ),
        ),
    ),
    "SYNC_GROUP": Bodies(
        (
            _GROUP, _GENERATION, _MEMBER, _instance(FIRST_SYNC_WITH_INSTANCE_ID), *_SYNC_PROTOCOL,
            _list("assignments", _MEMBER, _bytes("assignment")),
        ),
        (_throttle(1), _ERROR, *_SYNC_PROTOCOL, _bytes("assignment")),
    ),
    "HEARTBEAT": Bodies(
        (_GROUP, _GENERATION, _MEMBER, _instance(FIRST_HEARTBEAT_WITH_INSTANCE_ID)),
        (_throttle(1), _ERROR),
    ),
    "LEAVE_GROUP": Bodies(
        (
            _GROUP, _text("memberId", until=FIRST_BATCH_LEAVE - 1),
            _list(
                "members", _MEMBER, _instance(),
                _text("reason", FIRST_LEAVE_WITH_REASON, null_since=0, read=False),
                since=FIRST_BATCH_LEAVE,
            ),
        ),
        (
            _throttle(1), _ERROR,
            _list("members", _MEMBER, _instance(), _ERROR, since=FIRST_BATCH_LEAVE),
        ),
    ),
    "OFFSET_COMMIT": Bodies(
        (
            _GROUP,
            # renamed in 3.6, with KIP-848
            _number(
                "generationIdOrMemberEpoch", FIRST_COMMIT_WITH_GENERATION, also="generationId"
            ),
            _text("memberId", FIRST_COMMIT_WITH_GENERATION),
            _instance(FIRST_COMMIT_WITH_INSTANCE_ID),
            _number("retentionTimeMs", 2, 4, read=False),
            _committed(
                _number("committedOffset", read=False),
                _number("committedLeaderEpoch", 6, read=False),
                _number("commitTimestamp", 1, 1, read=False),
                _text("committedMetadata", null_since=0, read=False),
            ),
        ),
        (_throttle(3), _committed(_ERROR)),
    ),
    "OFFSET_FETCH": Bodies(
        (
            _text("groupId", until=FIRST_FETCH_WITH_GROUPS - 1),
            _asked(until=FIRST_FETCH_WITH_GROUPS - 1),
            _list(
                "groups", _GROUP,
                _text("memberId", FIRST_FETCH_WITH_MEMBER, null_since=0, read=False),
                _number("memberEpoch", FIRST_FETCH_WITH_MEMBER, read=False), _asked(),
                since=FIRST_FETCH_WITH_GROUPS,
            ),
            _flag("requireStable", FIRST_FETCH_WITH_STABLE, read=False),
        ),
        (
            _throttle(3), _fetched(until=FIRST_FETCH_WITH_GROUPS - 1),
            _number("errorCode", FIRST_FETCH_WITH_ERROR, FIRST_FETCH_WITH_GROUPS - 1),
            _list("groups", _GROUP, _fetched(), _ERROR, since=FIRST_FETCH_WITH_GROUPS),
        ),
        groups="groups",
    ),
    "DESCRIBE_GROUPS": Bodies(
        (_text("groups", listed=True),),
        (
            _throttle(1),
            _list(
                "groups", _ERROR,
                _text(
                    "errorMessage", FIRST_DESCRIBE_WITH_GROUP_ERRORS, null_since=0, read=False
                ),
                _text("groupId", read=False), _text("groupState"), _text("protocolType"),
                _text("protocolData"),
                _list(
                    "members", _MEMBER, _instance(FIRST_DESCRIBE_WITH_INSTANCE_ID),
                    _text("clientId"), _text("clientHost"), _bytes("memberMetadata"),
                    _bytes("memberAssignment"),
                ),
            ),
        ),
        groups="groups",
    ),
    "DELETE_GROUPS": Bodies(
        (_text("groupsNames", listed=True),),
        (
            _throttle(0),
            _list(
                "results", _GROUP, _ERROR,
                _text("errorMessage", FIRST_DELETE_WITH_MESSAGE, null_since=0, read=False),
            ),
        ),
        groups="groupsNames",
    ),
    "INCREMENTAL_ALTER_CONFIGS": Bodies(
        (
            _list(
                "resources", _number("resourceType"), _text("resourceName"),
                _list(
                    "configs", _text("name"), _number("configOperation"),
                    _text("value", null_since=0),
                ),
            ),
            _flag("validateOnly", read=False),
        ),
        (
            _throttle(0),
            _list(
                "responses", _ERROR, _text("errorMessage", null_since=0, read=False),
                _number("resourceType", read=False), _text("resourceName", read=False),
            ),
        ),
        groups="resources",
    ),
}  # fmt: skip


FORMER_NAMES: Mapping[str, str] = {
    field.name: field.also for bodies in BODIES.values() for field in bodies.request if field.also
}
"""Fields of requests that releases before named otherwise, with that name."""


def of_version(fields: tuple[Field, ...], values: Mapping[str, Any], version: int) -> Json:
    """Return the body with these values that a version has, in its order of fields.

    Raises KeyError where a field that is read is not given.
    """
    body: Json = {}
    for field in fields:
        if not field.in_version(version) or not (field.read or field.name in values):
            continue
        value = values[field.name]
        if isinstance(field.kind, tuple):
            value = [of_version(field.kind, entry, version) for entry in value]
        body[field.name] = value
    return body


_TYPES: Mapping[str, Any] = {"text": str, "number": Int64, "boolean": bool, "bytes": bytes}
_BASE64 = re.compile("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


class _Blob:
    """The type of bytes in a body as it is read."""


def _check_blob(_: type, value: Any) -> _Blob:
    if isinstance(value, str) and (_BASE64.fullmatch(value) or LENGTH.fullmatch(value)):
        return _Blob()
    raise ValueError("Expected base64")


@lru_cache(maxsize=256)
def body_types(api: str, version: int, former_names: bool, as_read: bool) -> tuple[Any, Any]:
    """Define the types of an API's request and response, with all fields of their version.

    The bytes in them are decoded. `as_read` they have the fields that are read alone, and bytes as
    text. With `former_names` fields have the names that releases before gave them.
    """
    bodies = BODIES[api]
    return (
        _struct(bodies.request, version, former_names, as_read),
        _struct(bodies.response, version, former_names, as_read),
    )


def _struct(fields: tuple[Field, ...], version: int, former_names: bool, as_read: bool) -> Any:
    types = []
    for field in fields:
        if field.in_version(version) and (field.read or not as_read):
            name = field.also if field.also and former_names else field.name
            types.append((name, _type(field, version, former_names, as_read)))
    return msgspec.defstruct("Body", types, forbid_unknown_fields=not as_read, gc=False)


def _type(field: Field, version: int, former_names: bool, as_read: bool) -> Any:
    kind = field.kind
    if isinstance(kind, tuple):
        of: Any = _struct(kind, version, former_names, as_read)
    else:
        of = _Blob if as_read and kind == "bytes" else _TYPES[kind]
    listed: Any = list[of] if field.listed else of
    return listed if field.null_since is None else listed | None


def problem(api: str, version: int, request: Json, response: Json | None = None) -> str:
    """Say what a body lacks of what is read, or has of another type; nothing if both are whole."""
    former_names = not FORMER_NAMES.keys() & request.keys()
    types = body_types(api, version, former_names, as_read=True)
    for name, body, of in zip(("request", "response"), (request, response), types, strict=True):
        try:
            if body is not None:
                msgspec.convert(body, of, dec_hook=_check_blob)
        except ValueError as error:  # also for keys that no text can have
            return f"{name} of {api}: {error}"
    return ""


def partitions_in(topics: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the partitions of a body's topics, each with its name, written `topic-number`.

    From OffsetCommit and OffsetFetch v10 on topics have ids instead of names (KIP-848).
    """
    for topic in topics:
        name = topic.get("name") or topic.get("topicId", "")
        for partition in topic["partitions"]:
            yield f"{name}-{partition['partitionIndex']}", partition


def generation_in(request: Mapping[str, Any]) -> int | None:
    """Return the generation of a request; OffsetCommit calls it otherwise from 3.6 on (KIP-848)."""
    found: int | None = request.get("generationIdOrMemberEpoch")
    return request.get("generationId") if found is None else found
