"""JSON of a run folder: parsed, and checked for the fields that are read of it."""

import json
from collections.abc import Mapping
from types import UnionType
from typing import Any

Form = Mapping[str, type | UnionType]
"""Fields and their types; a field that may be null may be missing."""


def parse(text: str) -> Any:
    """Parse a JSON text. Raises ValueError where it is not JSON, or cannot be encoded as UTF-8."""
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    json.dumps(content, ensure_ascii=False).encode()  # a lone surrogate cannot be encoded
    return content


def lacks(content: Any, form: Form) -> str | None:
    """Say in words how parsed JSON differs from a form; None if it does not."""
    if not isinstance(content, dict):
        return "no JSON object"
    for name, kind in form.items():
        if not isinstance(content.get(name), kind):
            fault = "is of the wrong type" if name in content else "is missing"
            return f"{name!r} {fault}"
    return None
