"""Rows: what the lines of a split are, and whose; what the lines of one key tell. No Spark.

Both engines call the same: `of_split` for each split, `Owners.owned` for each coordinator's line,
and `of_key` for all lines of a key. A key is a group, or for lines without one their broker.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from heapq import nsmallest
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from reports.incident.folding import folded
from reports.incident.group_incident import row_about
from reports.incident.lines.form import Form
from reports.incident.lines.reader import Line, Reader, SplitSummary

Json = dict[str, Any]
Key = tuple[str, bool]
"""The name of a group, or that of a broker, and whether it is a group."""
Found = tuple[str, Any]
"""The kind of a row (`KINDS`), and the row."""
Recognise = Callable[[str, list[str]], Form]
"""Given a file and its first lines, returns its form."""
SHOWN = 100
"""How many of the longest rebalances, worst members, moves, fences and rejected lines are kept."""
DRAWN = 20_000
"""How many rebalances the page draws at most; the tables have all."""
HEAD = 1 << 20
"""How many characters of a file are read to find out its form."""
CHARACTERS = 300
"""How many characters of a rejected line are kept."""
MOVES = ("loaded", "unloaded", "load_failed")
ORDER: Mapping[str, Any] = {
    "longest": lambda row: (-row["took_ms"], row["at_ms"], row["group"]),
    "worst_members": lambda row: (-row["rebalances"], -row["expired"], row["client"], row["group"]),
    "coordinator_moves": lambda row: (
        row["at_ms"], row["broker"], -1 if row["partition"] is None else row["partition"],
        row["template"],
    ),
    "fenced": lambda row: (-row["count"], row["instance"] or "", row["operation"] or ""),
    "rejected": itemgetter("file", "start", "place"),
    "rebalances": itemgetter("at_ms", "group", "generation"),
}  # fmt: skip
"""What comes first in the lists of an incident; of other rows, all are kept."""
OF_KEYS = ("longest", "worst_members", "coordinator_moves")
"""Those that are joined from the lists of all keys."""


class Row(NamedTuple):
    """A coordinator's line, and where it stands: the path of its file, its split, its place."""

    file: str
    start: int
    place: int
    line: Line


KINDS: Mapping[str, Any] = {
    "splits": tuple[str, int, SplitSummary], "lines": Row, "rejected": Json,
    "abouts": bytes, "rebalances": Json, "members": Json,
}  # fmt: skip
"""The kinds of rows that `of_split` and `of_key` yield, with the types of those.

A split is given by its file, its begin in it, and its summary.
"""


def text_lines(lines: Iterable[bytes]) -> Iterator[str]:
    """Decode lines, without what ends them."""
    return (line.decode("utf-8", "replace").rstrip("\r\n") for line in lines)


def head_of(texts: Iterator[str]) -> list[str]:
    """Take the first lines of a file: `HEAD` characters, or all."""
    head, size = list[str](), 0
    while size < HEAD and (text := next(texts, None)) is not None:
        head.append(text)
        size += len(text) + 1
    return head


def of_split(
    file: str, start: int, texts: Iterable[str], form: Form, zone: tzinfo
) -> Iterator[Found]:
    """Read a split: yield each coordinator's line, what is rejected, and the split itself."""
    reader = Reader(form, zone)
    for place, text in enumerate(texts):
        found = reader.read(text)
        for line in found.lines:
            yield "lines", Row(file, start, place, line)
        if found.why:
            at = {"file": file, "start": start, "place": place}
            yield "rejected", {**at, "why": found.why, "line": text[:CHARACTERS]}
    yield "splits", (file, start, reader.summary())


def first(kind: str, rows: Iterable[Any]) -> list[Any]:
    """Return the first rows of a list, by its `ORDER`."""
    if kind not in ORDER:
        return [*rows]
    return nsmallest(DRAWN if kind == "rebalances" else SHOWN, rows, key=ORDER[kind])


@dataclass(frozen=True)
class Owners:
    """Whose lines are.

    `ranks` orders the files by their times. `brokers` has the broker of a process, by file and
    `source`; without a file that of processes called so, without a source that of the file.
    `clusters` has where a process of a file names its cluster: it is of that from (split, place)
    on. `cluster` is the only one to be read, if one is asked for. The lines of files that are
    `newest_first` stand the other way round.
    """

    ranks: Mapping[str, int]
    brokers: Mapping[tuple[str, str], str]
    clusters: Mapping[tuple[str, str], list[tuple[int, int, str]]] = field(default_factory=dict)
    cluster: str = ""
    newest_first: frozenset[str] = frozenset()

    def owned(self, row: Row) -> Row | None:
        """Name the broker of a line; None if it is of another cluster than the one asked for."""
        process = row.file, row.line.source
        marks = self.clusters.get(process, [])
        if self.cluster and marks:
            before = [name for start, place, name in marks if (start, place) <= row[1:3]]
            if (before[-1] if before else marks[0][2]) != self.cluster:
                return None
        if row.line.broker:
            return row
        known = (self.brokers.get(of, "") for of in (process, ("", process[1]), (process[0], "")))
        return row._replace(line=row.line._replace(broker=next(filter(None, known), "")))

    def in_order(self, row: Row) -> tuple[float, int, int, int]:
        """Return what the lines of a key are ordered by."""
        step = -1 if row.file in self.newest_first else 1
        return row.line.at_ms, self.ranks[row.file], step * row.start, step * row.place


def key_of(line: Line) -> Key:
    """Return whose line it is: its group's, or its broker's."""
    return (line.broker, False) if line.group is None else (line.group, True)


def of_key(
    key: Key, rows: Iterable[Row], owners: Owners, session_ms: float | None
) -> Iterator[Found]:
    """Tell what the lines of a key say, at least one; `session_ms` is the session asked for.

    Beside these lines and the rows of tables, `abouts` has JSON for `joined`.
    """
    ordered = sorted(rows, key=owners.in_order)
    lines, doubled = folded((row.file, row.line) for row in ordered)
    name, is_group = key
    of_group = row_about(name, lines, session_ms) if is_group else {}
    rebalances, members = of_group.get("rebalances", []), of_group.get("members", [])
    seen: dict[tuple[str | None, ...], list[float]] = defaultdict(list)
    for line in lines:
        seen["templates", line.broker, line.template].append(line.at_ms)
        if line.template == "fenced":
            by = line.fields.get("instance"), line.fields.get("operation")
            seen["fenced", *by].append(line.at_ms)
    for row in ordered:
        seen["files", row.file].append(row.line.at_ms)
    moves = [
        {name: getattr(line, name) for name in ("at_ms", "broker", "partition", "template")}
        for line in lines
        if line.template in MOVES
    ]
    found = {
        "group": name if is_group else None,
        "incident": msgspec.Raw(of_group["incident"]) if is_group else None,
        "doubled": doubled,
        "seen": [(of, (len(at), min(at), max(at))) for of, at in seen.items()],
        "longest": first("longest", (row for row in rebalances if row["took_ms"] is not None)),
        "worst_members": first("worst_members", members),
        "coordinator_moves": first("coordinator_moves", moves),
    }
    yield "abouts", msgspec.json.encode(found)
    for kind, of_kind in (("lines", ordered), ("rebalances", rebalances), ("members", members)):
        yield from ((kind, row) for row in of_kind)


def joined(abouts: Iterable[bytes]) -> Json:
    """Join what `of_key` says of all keys, in any order."""
    groups: dict[str, Json] = {}
    doubled = Counter[str]()
    seen: dict[tuple[Any, ...], list[list[Any]]] = defaultdict(list)
    shown: dict[str, list[Json]] = {name: [] for name in OF_KEYS}
    for one in map(msgspec.json.decode, abouts):
        if one["incident"] is not None:
            groups[one["group"]] = one["incident"]
        doubled.update(one["doubled"])
        for of, times in one["seen"]:
            seen[tuple(of)].append(times)
        for name in OF_KEYS:
            shown[name] += one[name]
    known: dict[str, dict[Any, Json]] = {"templates": {}, "files": {}, "fenced": {}}
    for (what, *of), times in seen.items():
        counts, first_ms, last_ms = zip(*times, strict=True)
        lasted = {"count": sum(counts), "first_ms": min(first_ms), "last_ms": max(last_ms)}
        known[what][tuple(of)] = lasted
    shown["fenced"] = [
        {"instance": instance, "operation": operation, **lasted}
        for (instance, operation), lasted in known["fenced"].items()
    ]
    lists = {name: first(name, rows) for name, rows in shown.items()}
    return known | {"groups": groups, "doubled": doubled, "shown": lists}
