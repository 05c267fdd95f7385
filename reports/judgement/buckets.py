"""Judges the groups of a bucket: packed rows of all splits in; rows of all tables out.

Groups do not depend on each other. Those of a bucket are in memory together; a large one, which has
blobs to itself, comes in order of time and is judged chunk by chunk.
"""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from reference_coordinator.replay.group_replay import CHUNK
from reports.judgement.group import TABLES
from reports.judgement.group_evidence import Named
from reports.judgement.log import broker_log
from reports.judgement.log.broker_log import COLUMNS, Place
from reports.judgement.log.log_places import Split
from reports.judgement.log.split_rows import Blob, Row, Rows, unpacked
from reports.judgement.logged import REQUEST, Chunk
from reports.judgement.logged import in_order as lines_in_order
from reports.judgement.run import history
from reports.judgement.run.history import events_of

Add = Callable[[str, Iterable[Row]], None]  # takes rows of a table, by its name
Check = Callable[[str, Iterable[Chunk]], Iterator[Named]]
"""Judges a group, chunk by chunk: `group.check_group` in a context."""
OF_TAP = {f"wire/{name}": columns for name, columns in broker_log.TABLES.items()}
"""The tables of the tap's lines where it is a second witness, and their columns."""
ALL_TABLES = {**broker_log.TABLES, **TABLES, "rejected": broker_log.COVERAGE, **OF_TAP}
"""The tables that are made of lines and of groups, and their columns. `rejected` are the first
lines of `coverage` that are rejected, at most GAPS."""
GAPS = 1_000
_ROW: Mapping[str, Callable[[Mapping[str, Any]], Row]] = {
    name: itemgetter(*(column.split()[0] for column in columns.split(",")))
    for name, columns in TABLES.items()
}
_REQUEST: Callable[[Row], Row] = itemgetter(*map(COLUMNS["requests"].index, REQUEST))
_EARLIEST = COLUMNS["requests"].index("earliest_ms")
_STATUS = COLUMNS["coverage"].index("status")
_AT = COLUMNS["coverage"].index("at_ms")
_PLACE = itemgetter(*map(COLUMNS["coverage"].index, ("broker", "line")))
Evidence = dict[str, list[Any]]
"""What is known of a group: rows of `requests` and `transitions`, `events` of its clients and, as
`tapped`, requests that the tap saw, where it is a second witness."""
_TIME_OF: Mapping[str, Callable[[Any], float]] = {
    "requests": lambda row: row[_EARLIEST] or 0.0,
    "transitions": itemgetter(COLUMNS["transitions"].index("at_ms")),
    "events": attrgetter("at_ms"),
    "tapped": lambda row: row[_EARLIEST] or 0.0,
}
Timed = tuple[float, str, Any]
"""A row, by the time from which on it counts and the kind of evidence that it is."""


def chunk_of(evidence: Evidence, known_ms: float = float("-inf")) -> Chunk:
    """Return all rows, in order; nothing is known of the times of an unreadable request."""
    of = lambda kind: evidence.get(kind, ())
    names = COLUMNS["transitions"]
    lines = [dict(zip(names, row, strict=True)) for row in of("transitions")]
    lines.sort(key=lines_in_order)
    events = sorted(of("events"), key=history.in_order)
    return Chunk(_in_order(of("requests")), lines, known_ms, events, _in_order(of("tapped")))


def _in_order(requests: Iterable[Row]) -> list[Row]:
    rows = map(_REQUEST, requests)
    return sorted(row if row[0] is not None else (0.0, *row[1:]) for row in rows)


def chunks(
    first: Evidence, more: Iterable[tuple[float, Evidence]] = (), size: int = CHUNK
) -> Iterator[Chunk]:
    """Cut a group's evidence into chunks, in order of time.

    Each part of `more` counts from a time on, which is none before that of the part before it.
    """
    rows = sorted(_timed(first), key=_TIME)
    for since_ms, part in more:
        while bisect_left(rows, since_ms, key=_TIME) > size:
            yield _cut(rows, size)
        rows = sorted([*rows, *_timed(part)], key=_TIME)
    while len(rows) > size:
        yield _cut(rows, size)
    yield chunk_of(_together(rows))


_TIME: Callable[[Timed], float] = itemgetter(0)


def _timed(evidence: Evidence) -> Iterator[Timed]:
    for kind, rows in evidence.items():
        yield from ((_TIME_OF[kind](row), kind, row) for row in rows)


def _cut(rows: list[Timed], size: int) -> Chunk:
    chunk = chunk_of(_together(rows[:size]), known_ms=rows[size][0])
    del rows[:size]
    return chunk


def _together(rows: Iterable[Timed]) -> Evidence:
    found: Evidence = defaultdict(list)
    for _, kind, row in rows:
        found[kind].append(row)
    return found


@dataclass(frozen=True, slots=True)
class Buckets:
    """What is known of all buckets: where splits stand, what judges, large groups.

    Without `check`, nothing is judged.
    """

    places: Mapping[Split, Place]
    check: Check | None = None
    large: frozenset[str] = frozenset()

    def judged(self, blobs: Iterable[tuple[Split, Blob]], add: Add) -> None:
        """Judge the groups of buckets; add the rows of `ALL_TABLES`.

        Blobs come in the order of buckets, groups and times.
        """
        task = _Task(self, add)
        for _, of_bucket in groupby(blobs, key=lambda one: one[1].bucket):
            small: dict[str, Evidence] = {}
            for group, of_group in groupby(of_bucket, key=lambda one: one[1].group):
                if group:
                    task.judge(group, small.pop(group, {}), task.parts(of_group))
                    continue
                small = task.together(of_group)
                for name in sorted(small.keys() - self.large):
                    task.judge(name, small.pop(name))
            assert not small, "a large group has blobs to itself"
        add("rejected", task.rejected)


@dataclass(slots=True)
class _Task:
    """Judges groups, and adds the rows of tables."""

    of: Buckets
    add: Add
    rejected: list[Row] = field(default_factory=list)

    def together(self, blobs: Iterable[tuple[Split, Blob]]) -> dict[str, Evidence]:
        """Return the evidence of groups, by group."""
        found: dict[str, Evidence] = defaultdict(lambda: defaultdict(list))
        for split, blob in blobs:
            for rows in unpacked(blob.data):
                evidence = self.placed(split, rows)
                if rows.group is None:
                    self.add_lines(evidence)
                    continue
                for kind, of_kind in evidence.items():
                    found[rows.group][kind] += of_kind
        return found

    def parts(self, blobs: Iterable[tuple[Split, Blob]]) -> Iterator[tuple[float, Evidence]]:
        """Yield the evidence of a group that has blobs to itself, and since when each counts."""
        for split, blob in blobs:
            for rows in unpacked(blob.data):
                evidence = self.placed(split, rows)
                self.add_lines(evidence)
                yield blob.since_ms, evidence

    def judge(
        self, group: str, first: Evidence, more: Iterable[tuple[float, Evidence]] = ()
    ) -> None:
        """Judge a group: `first` was together with others, `more` comes in order of time."""
        self.add_lines(first)
        few = not more and sum(map(len, first.values())) <= CHUNK
        of_group = iter([chunk_of(first)]) if few else chunks(first, more)
        if self.of.check is None:
            deque(of_group, 0)
            return
        for name, row in self.of.check(group, of_group):
            self.add(name, (_ROW[name]({"group": group, **row}),))

    def placed(self, split: Split, rows: Rows) -> Evidence:
        """Place the rows of a group; those of the client history have their times."""
        if (place := self.of.places.get(split)) is None:
            return {"events": events_of(rows.said)}
        tables = place.tables(rows)
        if place.beside:
            for name, of_table in tables.items():
                self.add(place.beside + name, of_table)
            return {"tapped": tables["requests"]}
        self.add("lost", tables["lost"])
        if unused := tables["coverage"]:
            self.add("coverage", unused)
            self.rejected = _first([*self.rejected, *unused])
        return {kind: tables[kind] for kind in ("requests", "transitions")}

    def add_lines(self, evidence: Evidence) -> None:
        """Add the rows of lines."""
        for name in ("requests", "transitions"):
            self.add(name, evidence.get(name, ()))


def _first(unused: Iterable[Row]) -> list[Row]:
    """Return the first rejected lines, in order of time, of brokers and of lines."""
    rejected = (row for row in unused if row[_STATUS] == "rejected")
    at = lambda row: (row[_AT] is not None, row[_AT] or 0.0, *_PLACE(row))
    return sorted(rejected, key=at)[:GAPS]
