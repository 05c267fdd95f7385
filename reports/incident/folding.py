"""Lines that stand in logs more than once: lines in; each once, and the number of copies, out.

Two appenders write a line twice into one stream, and a broker's file and its standard output are
shipped together.
"""

from collections import Counter
from collections.abc import Iterable

from reports.incident.lines.reader import Line
from reports.incident.timing import COARSE_MS

_TELLING = ("generation", "member")
"""The fields that tell a line from the next one like it, which is written in the same second."""
_ONCE_A_RECORD = "member_loaded"
"""The line that a loading broker writes for each record of a group, mostly within a millisecond:
no copy (`GroupMetadata.loadGroup`, up to 3.9)."""


def folded(rows: Iterable[tuple[str, Line]]) -> tuple[list[Line], Counter[str]]:
    """Return the lines in the order of their times, each once, and the copies by file.

    `rows` are lines, each with its file, of one group or about none. A broker's lines with the same
    text and time are one line, wherever they stand, and so are those of which one has the time to
    the second only; the first of them counts, with the more exact time. Only lines that tell
    neither generation nor member and have no more exact time count as often as the file has them
    that has them most: they may well have been written as often.
    """
    copies: Counter[str] = Counter()
    again: Counter[tuple[str, str, str, float]] = Counter()
    once: dict[tuple[str, str, float, int], dict[float | None, Line]] = {}
    rows = [*rows]
    exact = {file for file, line in rows if line.at_ms % COARSE_MS}
    for file, line in rows:
        second = line.at_ms // COARSE_MS * COARSE_MS
        is_coarse, number = file not in exact, 0
        at_ms = None if is_coarse else line.at_ms
        if is_coarse and not any(line.fields.get(name) for name in _TELLING):
            number = again[file, line.broker, line.text, second]
            again[file, line.broker, line.text, second] += 1
        same = once.setdefault((line.broker, line.text, second, number), {})
        if at_ms in same or (is_coarse and same):
            copies[file] += line.template != _ONCE_A_RECORD
        else:
            copies[file] += same.pop(None, None) is not None
            same[at_ms] = line
    lines = [line for same in once.values() for line in same.values()]
    return sorted(lines, key=lambda line: line.at_ms), +copies
