"""JSON of a run folder: parsed, and held against the form that is needed of it."""

import json
from collections.abc import Mapping
from types import UnionType
from typing import Any

Form = Mapping[str, type | UnionType]
"""Fields and their types; one that may be null may also be left out."""


def parse(text: str) -> Any:
    """Return what a JSON text says. Raises ValueError where it is none, or can never be written."""
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    json.dumps(content, ensure_ascii=False).encode()  # half of a character has no bytes
    return content


def lacks(content: Any, form: Form) -> str | None:
    """Say in words what keeps a parsed JSON from having a form; None if it has it."""
    if not isinstance(content, dict):
        return "no JSON object"
    for name, kind in form.items():
        if not isinstance(content.get(name), kind):
            fault = "is of the wrong type" if name in content else "is missing"
            return f"{name!r} {fault}"
    return None
