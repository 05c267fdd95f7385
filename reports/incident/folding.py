"""Doubled lines: the lines of one key as files have them in; each counted once out."""

from collections import Counter
from collections.abc import Iterable

from reports.incident.lines.reader import Line


def folded(rows: Iterable[tuple[str, Line]]) -> tuple[list[Line], Counter[str]]:
    """Return each line once, in their order, and how many were folded, by file.

    Lines of a broker with the same time and text are one.
    """
    lines: dict[tuple[str, float, str], Line] = {}
    doubled = Counter[str]()
    for file, line in rows:
        key = line.broker, line.at_ms, line.text
        doubled[file] += key in lines
        lines.setdefault(key, line)
    return [*lines.values()], +doubled
