"""The fault catalogue as data: what the docs print of each fault, one page a fault."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from scenarios.faults import KINDS, About


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a fault in an experiment file.

    `kind` says what it takes, in words. `default` is written as in the file; None if the key is
    required, or if leaving it out means what `text` says.
    """

    name: str
    kind: str
    required: bool
    default: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One fault: its name, its summary, its keys, and its texts (see `About`)."""

    name: str
    summary: str
    keys: tuple[Key, ...]
    about: About


def catalogue() -> tuple[Entry, ...]:
    """Return every fault, in the order of the list."""
    return tuple(_entry(name) for name in KINDS)


def _entry(name: str) -> Entry:
    kind = KINDS[name]
    schema = TypeAdapter(kind).json_schema()
    required = schema["required"]
    keys = tuple(
        Key(
            name=key,
            kind=_kind(node, schema.get("$defs", {})),
            required=key in required,
            default=str(node["default"]).lower() if node.get("default") is not None else None,
            text=" ".join(node.get("description", "").split()),
        )
        for key, node in schema["properties"].items()
        if key != "fault"
    )
    return Entry(name, inspect.cleandoc(kind.__doc__ or ""), keys, kind.about)


def _kind(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Say in words what a node of the JSON Schema takes."""
    match node:
        case {"$ref": str(name)}:
            return _kind(definitions[name.rpartition("/")[2]], definitions)
        case {"anyOf": list(forms)} | {"oneOf": list(forms)}:
            words = [_kind(form, definitions) for form in forms if form.get("type") != "null"]
            return " or ".join(words)
        case {"const": str(word)}:
            return f"`{word}`"
        case {"enum": list(listed)}:
            return ", ".join(f"`{word}`" for word in listed)
        case {"properties": dict(parts)}:
            inside = (f"{key}: {_kind(part, definitions)}" for key, part in parts.items())
            return f"{{{', '.join(inside)}}}"
        case {"type": "array", "items": dict(item)}:
            return f"list of {_kind(item, definitions)}"
        case {"type": "string", "examples": list()}:
            return "duration"
        case {"type": "string"}:
            return "text"
        case {"type": "integer" | "number"}:
            return "number"
        case {"type": "boolean"}:
            return "true or false"
    raise AssertionError(f"no words for {node}")
