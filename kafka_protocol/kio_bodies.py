"""Convert messages between the form of Kafka's request log and kio's entities.

The form is that of the JSON request log (2.8+, KAFKA-10525): camelCase schema names, only the
fields of the version, bytes as base64, topic ids as Kafka prints them, error codes as numbers.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import timedelta
from functools import cache
from types import NoneType
from typing import Any, NamedTuple, get_args
from uuid import UUID

from kio.schema.errors import ErrorCode

Body = Mapping[str, Any]

_MS = timedelta(milliseconds=1)
_ZERO = UUID(int=0)
NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""How the all-zero id is printed; no topic has it."""


class Coding(NamedTuple):
    """How values of one Kafka type are written in a body."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def _uuid_text(value: UUID | None) -> str:
    """Print a topic id as Kafka does; kio uses None for the all-zero id."""
    return base64.urlsafe_b64encode((value or _ZERO).bytes).decode().rstrip("=")


def _uuid_of(text: str) -> UUID | None:
    value = UUID(bytes=base64.urlsafe_b64decode(f"{text}=="))
    return None if value == _ZERO else value


_PLAIN = Coding(lambda value: value, lambda value: value)
_TIME = Coding(lambda value: value // _MS, lambda ms: ms * _MS)
_CODINGS: Mapping[str | None, Coding] = {
    "bytes": Coding(lambda value: base64.b64encode(value).decode(), base64.b64decode),
    "error_code": Coding(int, ErrorCode),
    "timedelta_i32": _TIME,
    "timedelta_i64": _TIME,
    "uuid": Coding(_uuid_text, _uuid_of),
}


class Slot(NamedTuple):
    """One field: its names in the entity and in the body, and its type."""

    attribute: str
    key: str
    coding: Coding
    nested: Any
    array: bool
    required: bool


@cache
def slots(schema: Any) -> tuple[Slot, ...]:
    """List the fields of one of kio's entities."""
    return tuple(_slot(field) for field in fields(schema))


def _slot(field: Field[Any]) -> Slot:
    """Describe a field. kio drops `Ms` from the names of times, since their type is timedelta."""
    kafka_type = field.metadata.get("kafka_type")
    coding = _CODINGS.get(kafka_type, _PLAIN)
    first, *rest = field.name.split("_")
    key = first + "".join(word.capitalize() for word in rest) + ("Ms" if coding is _TIME else "")
    kinds = _kinds(field.type)
    return Slot(
        attribute=field.name,
        key=key,
        coding=coding,
        nested=next((kind for kind in kinds if is_dataclass(kind)), None),
        array=any(getattr(kind, "__origin__", None) is tuple for kind in kinds),
        required=field.default is MISSING and field.default_factory is MISSING,
    )


def _kinds(annotation: Any) -> list[Any]:
    """List a type and its parts: of `tuple[X, ...] | None` also the tuple and X."""
    parts = [part for part in get_args(annotation) if part not in (Ellipsis, NoneType)]
    return [annotation, *(kind for part in parts for kind in _kinds(part))]


def to_body(entity: Any) -> dict[str, Any]:
    """Print an entity as the request log does."""
    known = slots(entity.__class__)
    return {
        slot.key: _each(slot, getattr(entity, slot.attribute), _encoded, list) for slot in known
    }


def _each(
    slot: Slot, value: Any, convert: Callable[[Slot, Any], Any], array: Callable[[Any], Any]
) -> Any:
    """Convert the value of a field; of an array each value, and make an `array` of them."""
    if slot.array:
        return None if value is None else array(convert(slot, item) for item in value)
    return convert(slot, value)


def _encoded(slot: Slot, value: Any) -> Any:
    if slot.nested is not None:
        return to_body(value)
    if value is None and slot.coding.encode is not _uuid_text:
        return None
    return slot.coding.encode(value)


def to_entity(schema: type, body: Body) -> Any:
    """Build an entity; keys that its version does not have are left out.

    Raises KeyError for a missing field without a default.
    """
    given = {}
    for slot in slots(schema):
        if slot.key in body:
            given[slot.attribute] = _each(slot, body[slot.key], _decoded, tuple)
        elif slot.required:
            raise KeyError(slot.key)
    return schema(**given)


def _decoded(slot: Slot, value: Any) -> Any:
    if value is None:
        return None
    return to_entity(slot.nested, value) if slot.nested else slot.coding.decode(value)
