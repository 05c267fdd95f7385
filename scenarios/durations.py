"""Durations: text with a unit in YAML, whole milliseconds in Python.

A number without a unit is refused: some of Kafka's settings count milliseconds, some of its tools
seconds, so `session_timeout: 10` is ambiguous.
"""

import re
import time
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from scenarios.problems import shown

# Largest first: `format_ms` takes the first fit.
_UNITS_MS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_DURATION = re.compile("([0-9]+)(ms|s|m|h)")
LONGEST_MS = 596 * _UNITS_MS["h"]
"""About the most that Kafka's settings hold: an INT32 of milliseconds."""
_SIGN = re.compile("[+-]")


def now_ms() -> int:
    """Return the time as UTC epoch milliseconds."""
    return time.time_ns() // 1_000_000


def parse_ms(value: object) -> int:
    """Return the milliseconds that text such as `500ms`, `3s`, `2m` or `1h` stands for.

    Raises ValueError for anything else; the message says what to write instead.
    """
    text = str(value)
    if isinstance(value, str) and (match := _DURATION.fullmatch(text)):
        duration_ms = float(match[1]) * _UNITS_MS[match[2]]  # an int has no more than 4300 digits
        if duration_ms > LONGEST_MS:
            raise ValueError(f"{shown(value)} is too long; write {format_ms(LONGEST_MS)} or less")
        return int(duration_ms)
    if not isinstance(value, bool) and re.fullmatch("[0-9]{1,9}", text):
        raise ValueError(f"{text} has no unit; write {text}s for seconds or {text}ms")
    raise ValueError(
        f"{shown(value)} is not a duration; write a whole number and a unit: 500ms, 3s, 2m or 1h"
    )


def parse_positive_ms(value: object) -> int:
    """Return what `parse_ms` returns; also raises ValueError for zero."""
    if duration_ms := parse_ms(value):
        return duration_ms
    raise ValueError(f"{value} is too short; write 500ms, for example")


def parse_signed_ms(value: object) -> int:
    """Return what `parse_ms` returns, negative behind a minus; a plus may stand there, too."""
    if isinstance(value, str) and _SIGN.match(value):
        return int(f"{value[0]}1") * parse_ms(value[1:])
    return parse_ms(value)


def format_ms(duration_ms: int) -> str:
    """Return the shortest text that `parse_signed_ms` reads as this many milliseconds."""
    unit, size_ms = next(
        (unit, size_ms) for unit, size_ms in _UNITS_MS.items() if duration_ms % size_ms == 0
    )
    return f"{duration_ms // size_ms}{unit}"


def _in_schema(before: str, *examples: str) -> WithJsonSchema:
    """Describe a duration for editors; `before` is a pattern of what stands before it."""
    pattern = f"^{before}0*[0-9]{{1,10}}(ms|s|m|h)$"
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": [*examples]})


_AS_TEXT = PlainSerializer(format_ms, return_type=str)
_PLAIN = ("500ms", "3s", "2m", "1h")
DurationMs = Annotated[int, BeforeValidator(parse_ms), _AS_TEXT, _in_schema("", *_PLAIN)]
PositiveMs = Annotated[
    int, BeforeValidator(parse_positive_ms), _AS_TEXT, _in_schema("(?!0+[msh])", *_PLAIN)
]
SignedMs = Annotated[
    int, BeforeValidator(parse_signed_ms), _AS_TEXT, _in_schema("[+-]?", "3s", "-3s", "1500ms")
]
