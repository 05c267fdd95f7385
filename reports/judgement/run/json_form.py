"""JSON of a run folder, whole or line by line: parsed, and checked for the fields that are read."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import Any, TypeVar

import msgspec

from reports.judgement.log.log_bytes import shortened

Form = Mapping[str, type | UnionType]
"""Fields and their types; a field that may be null may be missing."""
Entry = dict[str, Any]
T = TypeVar("T")
LARGEST = 1e300
"""Of numbers: with larger ones Python cannot compute."""
_LAST_MS = 253_402_300_799_000
"""The end of the year 9999, the last valid time."""


def parse(text: str | bytes) -> Any:
    """Parse a JSON text. Raises ValueError where it is not JSON: NaN and infinities are not."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON ({error})") from error


def lacks(content: Any, form: Form) -> str | None:
    """Say in words how parsed JSON differs from a form; None if it does not."""
    if not isinstance(content, dict):
        return "no JSON object"
    for name, kind in form.items():
        value = content.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            fault = "is of the wrong type" if name in content else "is missing"
            return f"{name!r} {fault}"
        if isinstance(value, int | float) and abs(value) > LARGEST:
            return f"{name!r} is too large"
    return None


def entry(line: bytes, every: Form, forms: Mapping[str, Form]) -> Entry:
    """Parse a line that has the fields of `every` one, and those of its `event`.

    Raises ValueError, in words.
    """
    content: Entry = parse(line)
    wrong = lacks(content, every) or lacks(content, forms.get(content["event"], {}))
    if wrong is None and not 0 <= content["at_ms"] <= _LAST_MS:
        wrong = "'at_ms' is no time"
    if wrong is not None:
        raise ValueError(wrong)
    return content


class Account(msgspec.Struct):
    """Counts the lines of a file or of a part of it, and names the first one not understood."""

    lines: int = 0
    damaged: int = 0
    first: int = 0
    why: str = ""

    def entries(self, lines: Iterable[bytes], read: Callable[[bytes], T]) -> Iterator[T]:
        """Yield what is understood; `read` raises ValueError for any other line, in words."""
        for line in lines:
            self.lines += 1
            try:
                yield read(shortened(line))
            except (ValueError, RecursionError) as error:
                why = "invalid UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
                self.first, self.why = self.first or self.lines, self.why or why
                self.damaged += 1

    def merge(self, later: "Account") -> None:
        """Add the account of the part that follows."""
        if later.damaged and not self.damaged:
            self.first, self.why = self.lines + later.first, later.why
        self.lines += later.lines
        self.damaged += later.damaged

    def doubts(self, name: str) -> list[str]:
        """Say, in one doubt, what of the file of that name is not understood."""
        more = f"; {self.damaged} such lines" if self.damaged > 1 else ""
        return [f"{name}:{self.first} not understood ({self.why}){more}"] if self.damaged else []
