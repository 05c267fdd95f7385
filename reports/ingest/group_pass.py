"""The group pass: all rows of a group in; its timelines, comparison and checks out.

The rows are requests, coordinator lines and, where there is a client history, events of clients.

Spark adds no logic: it brings rows together by group, and `reports.judgement` does the rest.
`mapInArrow` over sorted partitions keeps one chunk of one group in memory at a time.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from reference_coordinator.replay.group_replay import CHUNK
from reports.ingest.bundle import Bundle, Rows
from reports.judgement.collector import collector_paused
from reports.judgement.group import TABLES, Judge
from reports.judgement.logged import LINE, REQUEST, Chunk, in_order
from reports.judgement.run import history

BUNDLE = Bundle(TABLES)
"""What a partition gives: rows of the tables."""
ORDER = ("group", "since_ms", "broker", "line", "client_id", "api", "request", "template")
"""The order in which rows of a partition are judged: total, so that chunks are always the same."""
ROWS_OF_PARTITION = 50_000
"""How many rows a partition has, about: some seconds of judging. Small evidence has smaller ones,
so that there is work for some cores."""
SOME = 16
"""How many partitions evidence of middle size has, at most: cores that differ end at one time."""
LARGE = 2 * CHUNK
"""From so many rows on a group may keep one core busy while the others have nothing left to do."""

_OF_LINES = [name for name in LINE if name not in REQUEST]
EVIDENCE = ("group", "since_ms", *REQUEST, *_OF_LINES)
"""The columns of the evidence. Those of lines alone follow those of requests, `template` first."""
_FIRST, _TEMPLATE = EVIDENCE.index(REQUEST[0]), EVIDENCE.index("template")
_EVENT = "client event"
"""Stands as `template` in the rows of clients' events."""
_TAPPED = "seen by the tap"
"""Stands as `template` in the rows of requests that the tap saw, where it is a second witness."""
_TELLS = ("partitions", "member_id", "offsets", "instance_id", "api", "sent_at_ms", "kind")
"""What an event tells beside its time, client and group."""
_OF_EVENT: Callable[[tuple[Any, ...]], tuple[Any, ...]] = itemgetter(
    *map(EVIDENCE.index, ("at_ms", "client_id", "group", "api", "request"))
)
_LINE: Callable[[tuple[Any, ...]], tuple[Any, ...]] = itemgetter(*map(EVIDENCE.index, LINE))


def evidence_rows(requests: DataFrame, lines: DataFrame) -> DataFrame:
    """Unite the requests and the coordinator lines of all groups in one table.

    `since_ms` is the time from which on a row counts. Nothing is known of the times of requests
    that cannot be read.
    """
    about = lines.withColumns(
        {
            "since_ms": F.col("at_ms"),
            **{name: F.lit(None) for name in REQUEST if name not in LINE},
        }
    )
    return _of_requests(requests).unionAll(about.select(*EVIDENCE)).where("group IS NOT NULL")


def tapped_rows(requests: DataFrame) -> DataFrame:
    """Return the requests that the tap saw, where it is a second witness, as rows of it."""
    return _of_requests(requests, _TAPPED).where("group IS NOT NULL")


def _of_requests(requests: DataFrame, template: str | None = None) -> DataFrame:
    of_lines = {name: F.lit(None) for name in _OF_LINES}
    return requests.withColumns(
        {
            "since_ms": F.coalesce("earliest_ms", F.lit(0.0)),
            "at_ms": F.coalesce("at_ms", F.lit(0.0)),
            **of_lines,
            "template": F.lit(template),
        }
    ).select(*EVIDENCE)


def event_rows(lines: DataFrame) -> DataFrame:
    """Return the events of members, lines of a client history, as rows of the evidence."""
    rows = {
        **{name: F.lit(None) for name in EVIDENCE},
        "group": F.col("group"),
        "since_ms": F.col("at_ms"),
        "at_ms": F.col("at_ms"),
        "client_id": F.col("member"),
        "api": F.col("event"),
        "request": F.to_json(F.struct(*_TELLS)),
        "template": F.lit(_EVENT),
    }
    return lines.select(*(column.alias(name) for name, column in rows.items()))


def judged(evidence: DataFrame, judge: Judge, rows: int) -> DataFrame:
    """Judge every group; return the bundle `BUNDLE`. The evidence has `rows` rows, about."""
    partitioned = _by_group(evidence, rows).sortWithinPartitions(*ORDER)
    return partitioned.mapInArrow(_judging(judge), BUNDLE.columns)


def _by_group(evidence: DataFrame, rows: int) -> DataFrame:
    """Partition the rows by group; each large group has a partition, and these come first."""
    count = max(min(rows // 5_000, SOME), rows // ROWS_OF_PARTITION, 2)
    large = _large(evidence) if rows >= 2 * LARGE else []
    place = F.pmod(F.xxhash64("group"), F.lit(count)) + len(large)
    for number, group in enumerate(large):
        place = F.when(F.col("group") == group, number).otherwise(place)
    return evidence.repartitionById(count + len(large), place.cast("int"))


def _large(evidence: DataFrame) -> list[str]:
    """List the large groups, the largest first."""
    sizes = evidence.groupBy("group").count().where(F.col("count") >= LARGE)
    largest = sizes.orderBy(F.desc("count"), "group").limit(100).toArrow()
    found: list[str] = largest["group"].to_pylist()
    return found


def _judging(judge: Judge) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what judges the groups of a partition: sorted evidence rows in, a bundle out."""

    def of_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = Rows(BUNDLE)
        for group, of_group in groupby(_chunks(batches), key=itemgetter(0)):
            with collector_paused():
                for name, row in judge.judged(group, map(itemgetter(1), of_group)):
                    rows.add_named(name, {"group": group, **row})
            yield from rows.batches()
        yield from rows.rest()

    return of_groups


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, Chunk]]:
    """Cut the rows of each group into chunks."""
    all_rows = chain.from_iterable(
        zip(*(column.to_pylist() for column in batch.columns), strict=True) for batch in batches
    )
    for group, of_group in groupby(all_rows, key=itemgetter(0)):
        rows = iter(of_group)
        first = next(rows, None)
        while first is not None:
            requests, lines, events, tapped = [], [], [], []
            for row in chain((first,), islice(rows, CHUNK - 1)):
                if row[_TEMPLATE] is None:
                    requests.append(row[_FIRST:_TEMPLATE])
                elif row[_TEMPLATE] == _TAPPED:
                    tapped.append(row[_FIRST:_TEMPLATE])
                elif row[_TEMPLATE] == _EVENT:
                    if (event := _event(row)) is not None:
                        events.append(event)
                else:
                    lines.append(dict(zip(LINE, _LINE(row), strict=True)))
            first = next(rows, None)
            known_ms = first[1] if first is not None else float("-inf")
            requests.sort()
            lines.sort(key=in_order)
            events.sort(key=history.in_order)
            yield group, Chunk(requests, lines, known_ms, events, tapped)


def _event(row: tuple[Any, ...]) -> history.ClientEvent | None:
    at_ms, client, group, event, fields = _OF_EVENT(row)
    return history.event_of(history.Said(at_ms, event, client, group, **json.loads(fields)))
