"""JSON of a run folder, whole or line by line: parsed, and checked for the fields that are read."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import Any, TypeVar

import msgspec

from reports.judgement.log.log_bytes import TOO_LONG, shortened

Form = Mapping[str, type | UnionType]
"""Fields and their types; a field that may be null may be missing."""
Entry = dict[str, Any]
T = TypeVar("T")

_LAST_MS = 253_402_300_799_000
"""The end of the year 9999, the last valid time."""


def parse(text: str | bytes) -> Any:
    """Parse a JSON text. Raises ValueError, in words, where it is not JSON as RFC 8259 has it.

    NaN, infinities, numbers that no double holds, control characters and what is no UTF-8 are not.
    """
    try:
        return msgspec.json.decode(text)
    except RecursionError as error:
        raise ValueError("no JSON: nested too deeply") from error
    except UnicodeDecodeError as error:
        raise ValueError("no JSON: invalid UTF-8") from error
    except msgspec.MsgspecError as error:
        raise ValueError(f"no JSON: {str(error).removeprefix('JSON is ')}") from error


def lacks(content: Any, form: Form) -> str | None:
    """Say in words how parsed JSON differs from a form; None if it does not."""
    if not isinstance(content, dict):
        return "no JSON object"
    for name, kind in form.items():
        value = content.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            fault = "is of the wrong type" if name in content else "is missing"
            return f"{name!r} {fault}"
    return None


def entry(line: bytes, every: Form, forms: Mapping[str, Form]) -> Entry:
    """Parse a line with an `event` and a time `at_ms`: of the form `every`, and that of its event.

    Raises ValueError, in words.
    """
    if line.startswith(TOO_LONG):
        raise ValueError("longer than 16 MiB")
    content = parse(line)
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
    """The number of the first line that is not understood, from 1 on."""
    why: str = ""

    def entries(self, lines: Iterable[bytes], read: Callable[[bytes], T]) -> Iterator[T]:
        """Yield what is understood; `read` raises ValueError, in words, for any other line."""
        for line in lines:
            self.lines += 1
            try:
                yield read(shortened(line))
            except ValueError as error:
                self.first, self.why = self.first or self.lines, self.why or str(error)
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


def lines_in(content: bytes) -> list[bytes]:
    """Return the lines of a file, the last one also if it has no end."""
    lines = content.split(b"\n")
    return lines if lines[-1] else lines[:-1]
