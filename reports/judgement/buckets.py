"""Judges the groups of a bucket: packed rows of all splits in; rows of all tables out.

Groups do not depend on each other. Those of a bucket are in memory together; a large one, which has
blobs to itself, comes in order of time and is judged chunk by chunk.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from operator import itemgetter
from tempfile import TemporaryFile
from typing import Any

from reference_coordinator.replay.group_replay import CHUNK
from reports.judgement.coordinators.wire_epochs import Restart, marks_in, of_groups
from reports.judgement.coordinators.wire_marks import telling
from reports.judgement.group import TABLES, Judge
from reports.judgement.log import broker_log
from reports.judgement.log.broker_log import COLUMNS, Place, Placing
from reports.judgement.log.log_places import Split
from reports.judgement.log.parsing import Parser
from reports.judgement.log.reading import Blob, Row, Rows, unpacked
from reports.judgement.logged import REQUEST, Chunk, LoggedRow
from reports.judgement.logged import in_order as lines_in_order
from reports.judgement.run import history
from reports.judgement.run.history import ClientEvent, Said, event_of

Named = tuple[str, Row]
"""The name of a table, and a row of it."""
ALL_TABLES = {**broker_log.TABLES, **TABLES, "rejected": broker_log.COVERAGE}
"""The tables that are made of lines and of groups, and their columns. `rejected` are the first
lines of `coverage` that are rejected, at most GAPS."""
GAPS = 1_000
_NAMES = {
    name: [column.split()[0] for column in columns.split(",")] for name, columns in TABLES.items()
}
_REQUEST: Callable[[Row], Row] = itemgetter(*map(COLUMNS["requests"].index, REQUEST))
_EARLIEST = COLUMNS["requests"].index("earliest_ms")
_STATUS = COLUMNS["coverage"].index("status")
_AT_MS = COLUMNS["transitions"].index("at_ms")


@dataclass(slots=True)
class Evidence:
    """What is known of a group: rows of `requests` and `transitions`, events of its clients."""

    requests: list[Row] = field(default_factory=list)
    lines: list[Row] = field(default_factory=list)
    events: list[ClientEvent] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.requests) + len(self.lines) + len(self.events)

    def add(self, other: "Evidence") -> None:
        """Add what another part tells."""
        self.requests += other.requests
        self.lines += other.lines
        self.events += other.events

    @property
    def chunk(self) -> Chunk:
        """All rows, in order."""
        return Chunk(
            sorted(map(_request, self.requests)),
            sorted(map(_line, self.lines), key=lines_in_order),
            events=sorted(self.events, key=history.in_order),
        )

    @property
    def in_time(self) -> list[tuple[float, str, Any]]:
        """All rows in order of the times from which on they count, each with its kind."""
        rows = [("requests", row, row[_EARLIEST] or 0.0) for row in self.requests]
        rows += (("lines", row, row[_AT_MS]) for row in self.lines)
        rows += (("events", one, one.at_ms) for one in self.events)  # type: ignore[misc]
        return sorted(((at_ms, kind, row) for kind, row, at_ms in rows), key=itemgetter(0))


def _request(row: Row) -> Row:
    """Return a request as `Chunk` has it: nothing is known of the times of an unreadable one."""
    found = _REQUEST(row)
    return found if found[0] is not None else (0.0, *found[1:])


def _line(row: Row) -> LoggedRow:
    return dict(zip(COLUMNS["transitions"], row, strict=True))


def chunks(
    first: Evidence, more: Iterable[tuple[float, Evidence]] = (), size: int = CHUNK
) -> Iterator[Chunk]:
    """Cut a group's evidence into chunks, in order of time.

    Of `more`, each part counts from a time on that is not before that of the part before it.
    """
    rows = first.in_time
    for since_ms, part in more:
        while bisect_left(rows, since_ms, key=itemgetter(0)) > size:
            yield _cut(rows, size)
        rows = sorted([*rows, *part.in_time], key=itemgetter(0))
    while len(rows) > size:
        yield _cut(rows, size)
    yield _together(rows).chunk


def _cut(rows: list[tuple[float, str, Any]], size: int) -> Chunk:
    """Cut the first chunk off."""
    chunk = replace(_together(rows[:size]).chunk, known_ms=rows[size][0])
    del rows[:size]
    return chunk


def _together(rows: Iterable[tuple[float, str, Any]]) -> Evidence:
    found = Evidence()
    for _, kind, row in rows:
        getattr(found, kind).append(row)
    return found


@dataclass(frozen=True, slots=True)
class Buckets:
    """What is known of all buckets: where splits stand in their logs, what judges, large groups.

    Without a judge, nothing is judged. `restarts` are those of brokers.
    """

    starts: Mapping[Split, Place]
    parser: Parser
    judge: Judge | None = None
    restarts: Sequence[Restart] = ()
    large: frozenset[str] = frozenset()

    def judged(self, blobs: Iterable[tuple[Split, Blob]]) -> Iterator[Named]:
        """Judge the groups of buckets; yield the rows of `ALL_TABLES` but `lost`.

        Blobs come in the order of buckets, groups and times.
        """
        rejected: list[Row] = []
        for name, row in self._judged_buckets(blobs):
            yield name, row
            if name == "coverage" and row[_STATUS] == "rejected":
                rejected.append(row)
                if len(rejected) > 2 * GAPS:
                    rejected = first_gaps(rejected)
        yield from (("rejected", row) for row in first_gaps(rejected))

    def _judged_buckets(self, blobs: Iterable[tuple[Split, Blob]]) -> Iterator[Named]:
        placings = {split: Placing(place, self.parser) for split, place in self.starts.items()}
        for _, of_bucket in groupby(blobs, key=lambda one: one[1].bucket):
            waiting: dict[str, Evidence] = {}
            for group, of_group in groupby(of_bucket, key=lambda one: one[1].group):
                if group:
                    yield from self._large(
                        group, waiting.pop(group, Evidence()), of_group, placings
                    )
                    continue
                for split, blob in of_group:
                    for rows in unpacked(blob.data):
                        found = yield from self._placed(rows, placings.get(split))
                        if rows.group is not None:
                            waiting.setdefault(rows.group, Evidence()).add(found)
                for name in sorted(waiting.keys() - self.large):
                    yield from self._group(name, waiting.pop(name))
            assert not waiting, "a large group has blobs to itself"

    def _placed(self, rows: Rows, placing: Placing | None) -> Any:
        """Yield the unused lines and what is about no group; return the evidence of a group."""
        if placing is None:  # what the history says
            said = (event_of(Said(*row)) for row in rows.said)
            return Evidence(events=[event for event in said if event is not None])
        tables = dict(placing.tables(rows))
        yield from (("coverage", row) for row in tables["coverage"])
        if rows.group is None:
            yield from (("requests", row) for row in tables["requests"])
            yield from (("transitions", row) for row in tables["transitions"])
        return Evidence([*tables["requests"]], [*tables["transitions"]])

    def _large(
        self,
        group: str,
        first: Evidence,
        blobs: Iterable[tuple[Split, Blob]],
        placings: Mapping[Split, Placing],
    ) -> Iterator[Named]:
        """Judge a large group: a file keeps its packed rows meanwhile."""
        marking: list[Row] = []
        with TemporaryFile() as file:
            kept = []
            yield from _lines_of(first)
            for split, blob in blobs:
                placing = placings.get(split)
                (rows,) = unpacked(blob.data)
                found = yield from self._placed(rows, placing)
                yield from _lines_of(found)
                if self._on_wire:
                    marking += found.requests
                kept.append((blob.since_ms, placing, file.write(blob.data)))
            file.seek(0)
            parts = (
                (since_ms, _exhausted(self._placed(*unpacked(file.read(size)), placing)))
                for since_ms, placing, size in kept
            )
            yield from self._judged(group, [*first.requests, *marking], chunks(first, parts))

    def _group(self, group: str, evidence: Evidence) -> Iterator[Named]:
        yield from _lines_of(evidence)
        of_group = [evidence.chunk] if len(evidence) <= CHUNK else chunks(evidence)
        yield from self._judged(group, evidence.requests, of_group)

    def _judged(
        self, group: str, requests: Sequence[Row], of_group: Iterable[Chunk]
    ) -> Iterator[Named]:
        if self.judge is None:
            return
        judge = self.judge
        if self._on_wire:
            rows = (dict(zip(COLUMNS["requests"], row, strict=True)) for row in requests)
            judge = judge_on_wire(judge, rows, self.restarts)
        for name, row in judge.judged(group, of_group):
            named = {"group": group, **row}
            yield name, tuple(named[column] for column in _NAMES[name])

    @property
    def _on_wire(self) -> bool:
        return self.judge is not None and self.judge.wire is not None


def first_gaps(rows: Iterable[Row]) -> list[Row]:
    """Return the first rows of `coverage`, in order of time, of brokers and of lines."""
    broker, line, at_ms = map(COLUMNS["coverage"].index, ("broker", "line", "at_ms"))
    at = lambda row: float("-inf") if row[at_ms] is None else row[at_ms]
    return sorted(rows, key=lambda row: (at(row), row[broker], row[line]))[:GAPS]


def judge_on_wire(
    judge: Judge, requests: Iterable[Mapping[str, Any]], restarts: Sequence[Restart]
) -> Judge:
    """Return what judges a group at level `wire`, by the rows of its requests."""
    return replace(judge, wire=of_groups(marks_in(telling(requests, restarts)), restarts))


def _lines_of(evidence: Evidence) -> Iterator[Named]:
    yield from (("requests", row) for row in evidence.requests)
    yield from (("transitions", row) for row in evidence.lines)


def _exhausted(placed: Any) -> Evidence:
    """Return what a generator returns; what it yields was given out before."""
    try:
        while True:
            next(placed)
    except StopIteration as end:
        found: Evidence = end.value
        return found


def by_bucket(blobs: Mapping[Split, Sequence[Blob]]) -> Iterator[tuple[Split, Blob]]:
    """Yield the blobs of some splits in the order in which they are judged."""
    every = chain.from_iterable(((split, one) for one in of) for split, of in blobs.items())
    yield from sorted(every, key=lambda one: (one[1].bucket, one[1].group, one[1].since_ms))
