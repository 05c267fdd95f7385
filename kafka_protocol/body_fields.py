"""Which fields the bodies of an API's requests and responses must have, by version.

Names and versions are those of Kafka's message schemas, as its JSON request log prints them; only
what the oracle reads is listed. Bytes are base64, or `(39 bytes)` where nobody wrote down which:
two of one length then count as the same.
"""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LENGTH = re.compile(r"\([1-9][0-9]* bytes\)")
"""Bytes of which only the length is known, as the request log prints them before 2.8."""

EVER = 1_000
LEAST, GREATEST = -(2**63), 2**63 - 1
"""The widest of Kafka's numbers, int64."""


class Base64(str):
    """The type of bytes."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Field:
    """A field, in versions `since` to `until`.

    `name` may list the names it has had; `kind` is a type, or the fields of a list's entries.
    """

    name: str
    kind: "type | tuple[Field, ...]"
    since: int = 0
    until: int = EVER
    nullable: bool = False
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """The bodies of an API; `groups` is the field that names the group, or a list of groups."""

    request: tuple[Field, ...]
    response: tuple[Field, ...]
    groups: str = "groupId"


def _text(name: str, since: int = 0, until: int = EVER, *, nullable: bool = False) -> Field:
    return Field(name, str, since, until, nullable)


def _number(name: str, since: int = 0) -> Field:
    return Field(name, int, since)


def _bytes(name: str) -> Field:
    return Field(name, Base64)


def _list(name: str, *entry: Field, since: int = 0) -> Field:
    return Field(name, entry, since, listed=True)


def _instance(since: int = 0) -> Field:
    return _text("groupInstanceId", since, nullable=True)


_GROUP, _MEMBER, _ERROR = _text("groupId"), _text("memberId"), _number("errorCode")
_GENERATION = _number("generationId")


def _topics(*partition: Field) -> Field:
    partitions = _list("partitions", _number("partitionIndex"), *partition)
    return _list("topics", _text("name", until=9), _text("topicId", 10), partitions)


FORMS: Mapping[str, Form] = {
    "JOIN_GROUP": Form(
        (
            _GROUP, _number("sessionTimeoutMs"), _number("rebalanceTimeoutMs", 1), _MEMBER,
            _instance(5), _text("protocolType"),
            _list("protocols", _text("name"), _bytes("metadata")),
        ),
        (
            _ERROR, _GENERATION, _text("protocolType", 7, nullable=True),
            _text("protocolName", nullable=True), _text("leader"),
            Field("skipAssignment", bool, 9), _MEMBER,
            _list("members", _MEMBER, _instance(5), _bytes("metadata")),
        ),
    ),
    "SYNC_GROUP": Form(
        (
            _GROUP, _GENERATION, _MEMBER, _instance(3), _text("protocolType", 5, nullable=True),
            _text("protocolName", 5, nullable=True),
            _list("assignments", _MEMBER, _bytes("assignment")),
        ),
        (
            _ERROR, _text("protocolType", 5, nullable=True),
            _text("protocolName", 5, nullable=True), _bytes("assignment"),
        ),
    ),
    "HEARTBEAT": Form((_GROUP, _GENERATION, _MEMBER, _instance(3)), (_ERROR,)),
    "LEAVE_GROUP": Form(
        (_GROUP, _text("memberId", until=2), _list("members", _MEMBER, _instance(), since=3)),
        (_ERROR, _list("members", _MEMBER, _instance(), _ERROR, since=3)),
    ),
    "OFFSET_COMMIT": Form(
        (
            _GROUP, _number("generationIdOrMemberEpoch|generationId", 1), _text("memberId", 1),
            _instance(7), _topics(),
        ),
        (_topics(_ERROR),),
    ),
    "DESCRIBE_GROUPS": Form(
        (Field("groups", str, listed=True),),
        (
            _list(
                "groups", _ERROR, _text("groupState"), _text("protocolType"), _text("protocolData"),
                _list(
                    "members", _MEMBER, _instance(4), _text("clientId"), _text("clientHost"),
                    _bytes("memberMetadata"), _bytes("memberAssignment"),
                ),
            ),
        ),
        groups="groups",
    ),
    "DELETE_GROUPS": Form(
        (Field("groupsNames", str, listed=True),),
        (_list("results", _GROUP, _ERROR),),
        groups="groupsNames",
    ),
}  # fmt: skip


_CALLED = {str: "a string", int: "a whole number", bool: "true or false", Base64: "base64"}


def problems(fields: tuple[Field, ...], body: Mapping[str, Any], version: int) -> Iterator[str]:
    """Say what a body lacks, or has of another type, in words that begin with the field."""
    for field in fields:
        if not field.since <= version <= field.until:
            continue
        name = next((name for name in field.name.split("|") if name in body), None)
        if name is None:
            yield f"{field.name.split('|')[0]} is missing, and version {version} has it"
        elif body[name] is not None or not field.nullable:
            yield from _wrong(name, field, body[name], version)


def _wrong(name: str, field: Field, value: Any, version: int) -> Iterator[str]:
    if not field.listed:
        if not _fits(field.kind, value):
            yield f"{name} is not {_CALLED[field.kind]}"  # type: ignore[index]
        return
    if not isinstance(value, list):
        yield f"{name} is not a list"
        return
    for place, entry in enumerate(value):
        if isinstance(field.kind, tuple):
            if isinstance(entry, dict):
                for problem in problems(field.kind, entry, version):
                    yield f"{name}[{place}].{problem}"
            else:
                yield f"{name}[{place}] is not an object"
        elif not _fits(field.kind, entry):
            yield f"{name}[{place}] is not {_CALLED[field.kind]}"


def _fits(kind: object, value: Any) -> bool:
    if kind is Base64:
        try:
            return isinstance(value, str) and (
                LENGTH.fullmatch(value) is not None or b64decode(value, validate=True) is not None
            )
        except ValueError:
            return False
    if type(value) is not kind:  # true is no number
        return False
    return kind is not int or LEAST <= value <= GREATEST
