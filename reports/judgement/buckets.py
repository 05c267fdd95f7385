"""Judges the groups of a bucket: packed rows of all splits in; rows of all tables out.

Groups do not depend on each other. Those of a bucket are in memory together; a large one, which has
blobs to itself, comes in order of time and is judged chunk by chunk.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from reference_coordinator.replay.group_replay import CHUNK
from reports.judgement.case import Named
from reports.judgement.group import TABLES
from reports.judgement.log import broker_log
from reports.judgement.log.broker_log import COLUMNS, Placing
from reports.judgement.log.log_places import Split
from reports.judgement.log.split_rows import Blob, Row, Rows, unpacked
from reports.judgement.logged import REQUEST, Chunk
from reports.judgement.logged import in_order as lines_in_order
from reports.judgement.run import history
from reports.judgement.run.history import ClientEvent, Said, event_of

Add = Callable[[str, Iterable[Row]], None]
"""Takes rows of a table, by its name."""
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
_AT_MS = COLUMNS["transitions"].index("at_ms")
_STATUS = COLUMNS["coverage"].index("status")
_AT = COLUMNS["coverage"].index("at_ms")
_PLACE = itemgetter(*map(COLUMNS["coverage"].index, ("broker", "line")))
Timed = tuple[float, str, Any]
"""A row, by the time from which on it counts and the field of `Evidence` that it is of."""


@dataclass(slots=True)
class Evidence:
    """What is known of a group: rows of `requests` and `transitions`, events of its clients.

    `tapped` are requests that the tap saw, where it is a second witness.
    """

    requests: list[Row] = field(default_factory=list)
    lines: list[Row] = field(default_factory=list)
    events: list[ClientEvent] = field(default_factory=list)
    tapped: list[Row] = field(default_factory=list)

    def extend(self, other: "Evidence") -> None:
        """Add what another part tells."""
        self.requests += other.requests
        self.lines += other.lines
        self.events += other.events
        self.tapped += other.tapped

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.requests) + len(self.lines) + len(self.events) + len(self.tapped)

    def chunk(self, known_ms: float = float("-inf")) -> Chunk:
        """Return all rows, in order; nothing is known of the times of an unreadable request."""
        lines = [dict(zip(COLUMNS["transitions"], row, strict=True)) for row in self.lines]
        events = sorted(self.events, key=history.in_order)
        lines.sort(key=lines_in_order)
        return Chunk(_in_order(self.requests), lines, known_ms, events, _in_order(self.tapped))

    @property
    def in_time(self) -> list[Timed]:
        """All rows in order of time."""
        rows: list[Timed] = [(row[_EARLIEST] or 0.0, "requests", row) for row in self.requests]
        rows += ((row[_AT_MS], "lines", row) for row in self.lines)
        rows += ((one.at_ms, "events", one) for one in self.events)
        rows += ((row[_EARLIEST] or 0.0, "tapped", row) for row in self.tapped)
        return sorted(rows, key=itemgetter(0))


def _in_order(requests: Iterable[Row]) -> list[Row]:
    rows = map(_REQUEST, requests)
    return sorted(row if row[0] is not None else (0.0, *row[1:]) for row in rows)


def chunks(
    first: Evidence, more: Iterable[tuple[float, Evidence]] = (), size: int = CHUNK
) -> Iterator[Chunk]:
    """Cut a group's evidence into chunks, in order of time.

    Each part of `more` counts from a time on, which is none before that of the part before it.
    """
    rows = first.in_time
    for since_ms, part in more:
        while bisect_left(rows, since_ms, key=itemgetter(0)) > size:
            yield _cut(rows, size)
        rows = sorted([*rows, *part.in_time], key=itemgetter(0))
    while len(rows) > size:
        yield _cut(rows, size)
    yield _together(rows).chunk()


def _cut(rows: list[Timed], size: int) -> Chunk:
    """Cut the first chunk off."""
    chunk = _together(rows[:size]).chunk(known_ms=rows[size][0])
    del rows[:size]
    return chunk


def _together(rows: Iterable[Timed]) -> Evidence:
    found = Evidence()
    for _, kind, row in rows:
        getattr(found, kind).append(row)
    return found


@dataclass(frozen=True, slots=True)
class Buckets:
    """What is known of all buckets: what places the rows of splits, what judges, large groups.

    Without `check`, nothing is judged.
    """

    placings: Mapping[Split, Placing]
    check: Check | None = None
    large: frozenset[str] = frozenset()

    def judged(self, blobs: Iterable[tuple[Split, Blob]], add: Add) -> None:
        """Judge the groups of buckets; add the rows of `ALL_TABLES` but `lost`.

        Blobs come in the order of buckets, groups and times.
        """
        task = _Task(self, add)
        for _, of_bucket in groupby(blobs, key=lambda one: one[1].bucket):
            small: dict[str, Evidence] = {}
            for group, of_group in groupby(of_bucket, key=lambda one: one[1].group):
                if group:
                    task.judge_large(group, small.pop(group, Evidence()), of_group)
                    continue
                small = task.together(of_group)
                for name in sorted(small.keys() - self.large):
                    task.judge_small(name, small.pop(name))
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
        found: dict[str, Evidence] = {}
        for split, blob in blobs:
            for rows in unpacked(blob.data):
                evidence = self._placed(split, rows)
                if rows.group is None:
                    self._add_lines(evidence)
                else:
                    found.setdefault(rows.group, Evidence()).extend(evidence)
        return found

    def judge_small(self, group: str, evidence: Evidence) -> None:
        """Judge a group that is in memory."""
        self._add_lines(evidence)
        few = len(evidence) <= CHUNK
        self._judge(group, [evidence.chunk()] if few else chunks(evidence))

    def judge_large(self, group: str, first: Evidence, blobs: Iterable[tuple[Split, Blob]]) -> None:
        """Judge a group that has blobs to itself; `first` was together with others."""
        self._add_lines(first)
        self._judge(group, chunks(first, self._parts(blobs)))

    def _parts(self, blobs: Iterable[tuple[Split, Blob]]) -> Iterator[tuple[float, Evidence]]:
        for split, blob in blobs:
            for rows in unpacked(blob.data):
                evidence = self._placed(split, rows)
                self._add_lines(evidence)
                yield blob.since_ms, evidence

    def _placed(self, split: Split, rows: Rows) -> Evidence:
        """Place the rows of a group; those of the client history have their times."""
        if (placing := self.of.placings.get(split)) is None:
            said = (event_of(Said(*row)) for row in rows.said)
            return Evidence(events=[event for event in said if event is not None])
        tables = dict(placing.tables(rows))
        if placing.beside:
            for name, of_table in tables.items():
                self.add(placing.beside + name, of_table)
            return Evidence(tapped=[*tables["requests"]])
        if unused := tables["coverage"]:
            self.add("coverage", unused)
            self.rejected = _first([*self.rejected, *unused])
        return Evidence([*tables["requests"]], [*tables["transitions"]])

    def _add_lines(self, evidence: Evidence) -> None:
        self.add("requests", evidence.requests)
        self.add("transitions", evidence.lines)

    def _judge(self, group: str, of_group: Iterable[Chunk]) -> None:
        if self.of.check is None:
            deque(of_group, 0)
            return
        for name, row in self.of.check(group, of_group):
            self.add(name, (_ROW[name]({"group": group, **row}),))


def _first(unused: Iterable[Row]) -> list[Row]:
    """Return the first rejected lines, in order of time, of brokers and of lines."""
    rejected = (row for row in unused if row[_STATUS] == "rejected")
    at = lambda row: (row[_AT] is not None, row[_AT] or 0.0, *_PLACE(row))
    return sorted(rejected, key=at)[:GAPS]
