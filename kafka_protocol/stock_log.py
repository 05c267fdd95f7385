"""Lines of a `server.log` as Kafka's own logging files write them: `[%d] %p %m (%c)%n`.

    [2026-11-21 09:15:05,123] INFO [GroupCoordinator 1]: Startup complete. (kafka.coordinator…)

The time is the broker's local time, without an offset. A message may go on over several lines, such
as a stack trace: then the logger's name ends its last one, and only the first has a time.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

_BEGIN = r"\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]\d{3}\] (?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "
_STARTS = re.compile(_BEGIN, re.ASCII)
_RECORDS = re.compile(f"(?={_BEGIN})", re.ASCII)
_RECORD = re.compile(r"\[([^\]]{23})\] ([A-Z]+) (.*?)(?: \(([\w.$-]+)\))?\r?$", re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Record(NamedTuple):
    """One log event, or its first line; `logger` is empty where the line does not name it."""

    date: str
    level: str
    body: str
    logger: str


def begins_record(text: str) -> bool:
    """Tell whether a line begins with the time and level of the stock form."""
    return _STARTS.match(text) is not None


def records(text: str) -> tuple[str, list[Record]]:
    """Split a line into the records in it; return what stands before the first, and these.

    A line has more than one where a killed broker left half a line, and its successor went on
    behind it.
    """
    rest, *found = _RECORDS.split(text)
    matches = (_RECORD.match(part) for part in found)
    return rest, [
        Record(match[1], match[2], match[3], match[4] or "") for match in matches if match
    ]


def epoch_ms(date: str, zone: tzinfo) -> int | None:
    """Return a record's time in UTC epoch ms; None where there is no such date.

    Where the clock was turned back, local time names two instants: the first is taken.
    """
    try:
        at = datetime.fromisoformat(date.replace(",", ".")).replace(tzinfo=zone)
        return (at - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        return None
