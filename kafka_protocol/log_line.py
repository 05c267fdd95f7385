"""The form of every line in `group.log`: time, thread, level, body and logger.

    <sn> <epoch ms> <nanos> <thread> INFO <body> (<logger>)      from 4.0 on (log4j 2), numbered
    <date> <time>,<ms> <thread> INFO <body> (<logger>)           before (log4j 1), in UTC

The templates are those of `chaos/clusters/templates/`.
"""

import re
from datetime import UTC, datetime

EVENT = r"\S+ (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) ([^\r]*) \(([^()\s]+)\)$"
"""Thread, level, body, logger: the end of every line. log4j encodes carriage returns."""
NUMBERED = rf"^(\d+) (\d+) (\d+) {EVENT}"
"""From Kafka 4.0 on (log4j 2): serial number, epoch ms and nano clock (ns) precede it."""
DATED = rf"^(\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d,\d{{3}}) {EVENT}"
"""Up to 3.9 (log4j 1): the time in UTC with milliseconds precedes it."""

_EPOCH_MS = re.compile(r"\d+ (\d{13}) ")
_MONOTONIC = re.compile(r"(\d{1,18}) \d{13} (\d{1,18}) ")
_DATE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) ")


def is_numbered(kafka_version: str) -> bool:
    """Tell whether the lines of a release such as `3.9.1` carry serial numbers (log4j 2)."""
    return not kafka_version.startswith(("2.", "3."))


def dated_ms(date: str) -> int | None:
    """Return the time that log4j 1 prints, in UTC epoch ms; None where there is no such date."""
    try:
        at = datetime.fromisoformat(date).replace(tzinfo=UTC)
    except ValueError:
        return None
    return round(at.timestamp() * 1000)


def written_ms(line: str) -> int:
    """Return when a line of either form was written, in UTC epoch milliseconds.

    Raises ValueError if it is no whole line.
    """
    if match := _EPOCH_MS.match(line):
        return int(match[1])
    if (match := _DATE.match(line)) and (at_ms := dated_ms(match[1])) is not None:
        return at_ms
    raise ValueError(f"no line of a group.log: {line}")


def monotonic_ms(line: str) -> tuple[int, float] | None:
    """Return a line's serial number and nano clock in ms; None for a form without them."""
    match = _MONOTONIC.match(line)
    return None if match is None else (int(match[1]), int(match[2]) / 1e6)
