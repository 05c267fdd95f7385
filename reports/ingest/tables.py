"""From log files to tables: the two passes of a run, in a row, and its tables read back."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from reference_coordinator.replay import Evidence
from reports.ingest import judging, log_files, places, sources, storing
from reports.ingest.reading import (
    Reading,
    ReadLines,
    Source,
    buckets_for,
    by_spark,
    on_paths,
    read_lines,
)
from reports.judgement import buckets, group
from reports.judgement.buckets import Buckets
from reports.judgement.group import check_group, evidence_of
from reports.judgement.judging import Rules, context_of, spans_of
from reports.judgement.log import broker_log
from reports.judgement.log.broker_log import Placing
from reports.judgement.log.log_places import LOG
from reports.judgement.log.merging import Merged
from reports.judgement.log.parsing import Parser, number
from reports.judgement.log.processes import line_counts
from reports.judgement.log.split_rows import How
from reports.judgement.run import deliveries
from reports.judgement.run.deliveries import ACTED, NOTHING_HELD, Deliveries
from reports.judgement.run.evidence_level import Level
from reports.judgement.run.history import reader_of
from reports.judgement.run.machine_log import Standstill
from reports.judgement.run.run_folder import HISTORY, RunFolder, logs_bytes
from reports.judgement.run_context import RunContext
from reports.judgement.witnesses import Tap, compared_apis, hidden_by_nat

Progress = Callable[[str], None]
Json = dict[str, Any]
COLUMNS = {**broker_log.TABLES, **group.TABLES}
"""The tables and their columns."""
OF_LINES = ("requests", "transitions", "coverage")
OF_TAP = tuple(name for name in buckets.OF_TAP if not name.endswith("lost"))
"""The tables of lines that the tap wrote beside the brokers' logs."""
OF_GROUPS = tuple(name for name in group.TABLES if name != "digests")
STORED = (*broker_log.TABLES, *OF_GROUPS)
"""The tables that are stored: all but what is counted of each group."""
ALWAYS_KEPT = ("digests", "groups", "bound", "broken", "unlogged", "rejected")
"""The tables that are given to the driver as a whole."""
FEW_ROWS = 50_000
"""Up to so many requests and lines, so are all tables of groups: they are not read again."""


class Asked(NamedTuple):
    """The rows of a table that are asked for: those of some groups, or of all (None).

    And of others (None: of all) those that are no match. Of owners, those alone that overlap, or
    of partitions whose number is `below`.
    """

    groups: Collection[str] | None
    differing: Collection[str] | None = ()
    below: int | None = None

    def wants(self, row: Json) -> bool:
        """Tell whether a row is asked for."""
        of = row["group"]
        if self.groups is None or of in self.groups:
            if self.below is None or row["overlap_ms"] > 0:
                return True
            return number(row["partition"].rpartition("-")[2], self.below) is not None
        return (self.differing is None or of in self.differing) and row["outcome"] != "match"

    @property
    def condition(self) -> Column:
        """The same for Spark."""
        of_groups = _among(self.groups)
        if self.below is not None:
            partition = F.substring_index("partition", "-", -1).cast("long")
            return of_groups & ((F.col("overlap_ms") > 0) | (partition < self.below))
        if self.differing is not None and not self.differing:
            return of_groups
        return of_groups | ((F.col("outcome") != "match") & _among(self.differing))


def _among(groups: Collection[str] | None) -> Column:
    return F.lit(True) if groups is None else F.col("group").isin([*groups])


@dataclass(frozen=True)
class Tables:
    """The tables of a run, stored at a URI (`output`), and the few results that are not stored.

    `read` is what was read of the logs, `kept` are the rows of some tables, and `standstills` tell
    when brokers stood still, proven, and by no fault of the journal.
    """

    spark: SparkSession
    run: RunFolder
    output: str
    read: ReadLines
    kept: Mapping[str, list[Json]]
    context: RunContext
    standstills: Sequence[Standstill]

    def frame(self, name: str) -> DataFrame:
        """Return a stored table, with the columns that `COLUMNS` names."""
        return storing.stored(self.spark, COLUMNS[name], name, self.output)

    def rows(self, name: str, asked: Asked) -> list[Json]:
        """Read rows of a table, in a total order: nothing depends on their partitions."""
        if name in self.kept:
            found = [row for row in self.kept[name] if asked.wants(row)]
        else:
            found = self.frame(name).where(asked.condition).toArrow().to_pylist()
        return sorted(found, key=lambda row: [(value is not None, value) for value in row.values()])

    def evidence(self, name: str) -> Evidence:
        """Return a group's evidence, as the oracle was given it."""
        requests = [row | {"template": None} for row in self.rows("requests", Asked([name]))]
        lines = self.rows("transitions", Asked([name]))
        return evidence_of(self.context, name, [*requests, *lines])


def build(
    spark: SparkSession,
    run: RunFolder,
    source: str,
    target: str,
    rules: Rules,
    progress: Progress,
) -> Tables:
    """Compute every table of a run whose evidence is at `source`, and store it under `target`.

    Both are URIs.
    """
    progress("reading the lines")
    held = _deliveries(spark, source, run)
    output = f"{target}/tables"
    with ExitStack() as stack:
        reading = lambda parser: stack.enter_context(_read(spark, run, source, parser, held))
        read = reading(run.parser)
        seen = reading(run.tap_parser) if _has_tap(spark, run, source) else None
        progress("replaying every request through the reference coordinator")
        tap = None if seen is None else _tap(run, read, seen)
        context, standstills = context_of(run, rules, read.merged, held, tap)
        kept = _judged([read] if seen is None else [read, seen], context, output)
    return Tables(spark, run, output, read, kept, context, standstills)


def store_lines(spark: SparkSession, run: RunFolder, source: str, output: str) -> Merged:
    """Read the logs of a run at a URI and store the tables of their lines at another."""
    with _read(spark, run, source, run.parser, NOTHING_HELD) as read:
        _judged([read], None, output)
    return read.merged


@contextmanager
def _read(
    spark: SparkSession, run: RunFolder, source: str, parser: Parser, held: Deliveries
) -> Iterator[ReadLines]:
    """Read the lines of a run's logs and, beside those that are judged, its client history."""
    is_second = parser.on_wire and run.level is not Level.WIRE
    of_history = reader_of(run) if run.has_history and not is_second else None
    apis = compared_apis(tells_bytes=run.grammar.tells_bytes)
    how = How(
        buckets_for(sum(run.elsewhere.values()) or logs_bytes(run.path)),
        () if is_second else spans_of(run),
        NOTHING_HELD if is_second else held,
        frozenset(apis if run.level is not Level.WIRE else ()),
    )
    lines = _source_of(spark, source, parser, with_history=of_history is not None)
    read = read_lines(lines, source, Reading(parser, how, of_history))
    try:
        yield read
    finally:
        read.blobs.unpersist()


def _source_of(spark: SparkSession, source: str, parser: Parser, *, with_history: bool) -> Source:
    """Return the source of the logs of a run at a URI, and of its history."""
    path = places.local_path(source)
    if path is not None and path.is_dir():
        history = [path / HISTORY] if with_history else []
        logs = sources.logs_of(path, parser.folder)
        return on_paths(spark, [*logs, *history], log_files.split_bytes(spark))
    rows = log_files.lines(spark, source, parser.folder)
    if with_history:
        history_uri = log_files.literal(f"{source}/{HISTORY}")
        rows = rows.unionAll(log_files.bounded(spark, [history_uri]))
    return by_spark(rows)


def _has_tap(spark: SparkSession, run: RunFolder, source: str) -> bool:
    """Tell whether a run has logs of the tap beside those of its brokers."""
    path = places.local_path(source)
    if run.level is not Level.REQUESTS:
        return False
    if path is not None and path.is_dir():
        return any(path.glob(f"{Level.WIRE.folder}/*/{LOG}*"))
    return bool(log_files.listed(spark, source, Level.WIRE.folder))


def _tap(run: RunFolder, logged: ReadLines, seen: ReadLines) -> Tap:
    """Return what is known of the tap over the whole run."""
    counts = line_counts(seen.merged.processes)
    return Tap(
        seen.connections,
        hidden_by_nat(logged.connections, seen.connections),
        (logged.merged.places, seen.merged.places),
        run.killed_between,
        {one["broker"]: one["last_ms"] for one in seen.merged.processes},
        whole=not counts["rejected"] and not seen.merged.lost,
        tells_bytes=run.grammar.tells_bytes,
        lines=counts.total(),
    )


def _judged(
    reads: Sequence[ReadLines], context: RunContext | None, output: str
) -> Mapping[str, list[Json]]:
    """Judge and store what was read, by the brokers' logs first; return the rows of some tables."""
    placings = {
        split: Placing(place, read.how.parser, beside=f"{Level.WIRE}/" if number else "")
        for number, read in enumerate(reads)
        for split, place in read.merged.starts.items()
    }
    check = None if context is None else partial(check_group, context)
    of_buckets = Buckets(placings, check, reads[0].large.union(*(read.large for read in reads)))
    rows = sum((read.rows for read in reads), Counter())
    blobs = judging.placed(reduce(DataFrame.unionAll, (read.blobs for read in reads)), rows)
    lost = {"lost": reads[0].merged.lost}
    lost |= {f"{Level.WIRE}/lost": read.merged.lost for read in reads[1:]}
    stored = [*OF_LINES, *lost, *(OF_GROUPS if context is not None else ())]
    stored += OF_TAP if len(reads) > 1 else ()
    folder = places.local_path(output)
    if folder is not None:
        kept = {*ALWAYS_KEPT, *(OF_GROUPS if rows.total() <= FEW_ROWS else ())}
        with storing.attempts(folder):
            made = judging.judged(blobs, of_buckets, folder, stored, kept).toArrow()
            results = pa.concat_tables([made, storing.told(folder, lost)])
            storing.commit(folder, stored, results)
        return storing.rows_in(results)
    of_lost = blobs.sparkSession.createDataFrame(storing.told(None, lost))
    made = judging.judged(blobs, of_buckets, None, (), {*stored, *ALWAYS_KEPT})
    told = made.unionAll(of_lost).persist()
    try:
        storing.write(told, stored, output)
        return storing.rows_in(told.where(told["name"].isin(*ALWAYS_KEPT)).toArrow())
    finally:
        told.unpersist()


def _deliveries(spark: SparkSession, source: str, run: RunFolder) -> Deliveries:
    """Read what the tap held back of answers, if a fault of the run let it."""
    if not run.experiment.needs_tap:
        return NOTHING_HELD
    lines = log_files.lines(spark, source, Level.WIRE.folder)
    ruled = lines.select(F.col("value").cast("string")).where(F.col("value").contains(ACTED))
    return deliveries.read(sorted(ruled.toArrow()["value"].to_pylist()))
