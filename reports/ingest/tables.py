"""From log files to tables: the two passes of a run; and the few rows that are read again."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from reference_coordinator.replay import Evidence
from reports.ingest import log_files, reading, sources, storing, uris
from reports.ingest.reading import (
    Reading,
    ReadLines,
    buckets_for,
    by_spark,
    on_paths,
    read_lines,
)
from reports.judgement import buckets, group
from reports.judgement.buckets import Buckets, Check
from reports.judgement.digest import Digest
from reports.judgement.group import check_group, evidence_of
from reports.judgement.judging import Rules, context_of
from reports.judgement.log import broker_log
from reports.judgement.log.broker_log import Place
from reports.judgement.log.log_places import LOG, Level, Split
from reports.judgement.log.parsing import number
from reports.judgement.log.split_rows import How, Lost, line_counts
from reports.judgement.results import Results, gathered
from reports.judgement.run import deliveries, history
from reports.judgement.run.deliveries import ACTED, NOTHING_HELD, Deliveries
from reports.judgement.run.history import reader_of
from reports.judgement.run.machine_log import spans_of
from reports.judgement.run.run_folder import HISTORY, RunFolder, logs_bytes
from reports.judgement.run_context import RunContext
from reports.judgement.witnesses import Tap, compared_apis, hidden_by_nat

Progress = Callable[[str], None]
Json = dict[str, Any]
COLUMNS = {**broker_log.TABLES, **group.TABLES}  # the tables and their columns
OF_LINES = ("requests", "transitions", "coverage")
OF_TAP = tuple(name for name in buckets.OF_TAP if not name.endswith("lost"))
"""The tables of lines that the tap wrote beside the brokers' logs."""
OF_GROUPS = tuple(name for name in group.TABLES if name != "digests")
STORED = (*broker_log.TABLES, *OF_GROUPS)
"""The tables that are stored: all but what is counted of each group."""
ALWAYS_KEPT = ("digests", "groups", "bound", "broken", "unlogged", "rejected", "lost")
"""The tables that are given to the driver as a whole."""
FEW_ROWS = 50_000
"""Up to so many requests and lines, so are all tables of groups: they are not read again."""
FINDINGS = 10_000  # how many rows that show a difference are read; see `_within_limit`
Choose = Callable[[Mapping[str, Digest]], Sequence[str]]
"""Chooses groups by what is counted of them."""


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

    `read` is what was read of the logs, and `kept` are the rows of some tables.
    """

    spark: SparkSession
    run: RunFolder
    output: str
    read: ReadLines
    kept: Mapping[str, list[Json]]
    context: RunContext

    def rows(self, name: str, asked: Asked) -> list[Json]:
        """Read rows of a table, in order."""
        if name in self.kept:
            return [row for row in self.kept[name] if asked.wants(row)]
        stored = storing.stored(self.spark, COLUMNS[name], name, self.output)
        return storing.in_order(stored.where(asked.condition).toArrow().to_pylist())

    def evidence(self, name: str) -> Evidence:
        """Return a group's evidence, as the oracle was given it."""
        requests = [row | {"template": None} for row in self.rows("requests", Asked([name]))]
        lines = self.rows("transitions", Asked([name]))
        return evidence_of(self.context, name, [*requests, *lines])


def build(
    spark: SparkSession, run: RunFolder, source: str, target: str, rules: Rules, progress: Progress
) -> Tables:
    """Compute every table of a run whose evidence is at `source`, and store it under `target`.

    Both are URIs.
    """
    progress("reading the lines")
    held = _deliveries(spark, source, run)
    how = _reading(run, held)
    output = f"{target}/tables"
    with _read(spark, source, how) as read:
        progress("replaying every request through the reference coordinator")
        merged, tap = read.merged[run.parser.folder], _tap(run, read)
        context = context_of(run, rules, merged, held, tap)
        kept = _judged(read, partial(check_group, context), output)
    return Tables(spark, run, output, read, kept, context)


def _reading(run: RunFolder, held: Deliveries) -> Reading:
    """Return how a run is read; the logs that are judged come first."""
    buckets = buckets_for(sum(run.elsewhere.values()) or logs_bytes(run.path))
    compared = run.level is not Level.WIRE
    apis = frozenset(compared_apis(tells_bytes=run.grammar.tells_bytes) if compared else ())
    spans = spans_of(run.stalls, run.standstills)
    logs = {run.parser.folder: (run.parser, How(buckets, spans, held, apis))}
    if _has_tap(run):
        logs[run.tap_parser.folder] = (run.tap_parser, How(buckets, apis=apis))
    if not run.has_history:
        return Reading(logs)
    return Reading(logs, partial(history.read, of_line=reader_of(run), buckets=buckets))


def _has_tap(run: RunFolder) -> bool:
    """Tell whether a run has logs of the tap beside those of its brokers."""
    folder = Level.WIRE.folder
    there = any(run.path.glob(f"{folder}/*/{LOG}*"))
    elsewhere = any(name.startswith(f"{folder}/") for name in run.elsewhere)
    return run.level is Level.REQUESTS and (there or elsewhere)


@contextmanager
def _read(spark: SparkSession, source: str, how: Reading) -> Iterator[ReadLines]:
    """Read the logs of a run at a URI, and its client history."""
    path = uris.local_path(source)
    if path is not None and path.is_dir():
        logs = [file for folder in how.logs for file in sources.logs_of(path, folder)]
        history = [path / HISTORY] if how.history else []
        lines = on_paths(spark, [*logs, *history], log_files.split_bytes(spark))
    else:
        rows = [log_files.lines(spark, source, folder) for folder in how.logs]
        if how.history:
            rows.append(log_files.bounded(spark, [uris.literal(f"{source}/{HISTORY}")]))
        lines = by_spark(reduce(DataFrame.unionAll, rows))
    read = read_lines(lines, source, how)
    try:
        yield read
    finally:
        read.blobs.unpersist()


def _tap(run: RunFolder, read: ReadLines) -> Tap | None:
    """Return what is known of the tap over the whole run, if it is a second witness."""
    if len(read.merged) == 1:
        return None
    logged, seen = read.merged.values()
    of_brokers, of_tap = read.connections.values()
    return Tap(
        of_tap,
        hidden_by_nat(of_brokers, of_tap),
        (logged.places, seen.places),
        run.killed_between,
        {one["broker"]: one["last_ms"] for one in seen.processes},
        whole=seen.is_whole,
        tells_bytes=run.grammar.tells_bytes,
        lines=line_counts(seen.processes).total(),
    )


def _judged(read: ReadLines, check: Check, output: str) -> Mapping[str, list[Json]]:
    """Judge and store what was read; return the rows of some tables.

    The tables of logs beside those that are judged have their folder in their names.
    """
    starts, lost = dict[Split, Place](), dict[str, list[Lost]]()
    for merged in read.merged.values():
        beside = f"{Level.WIRE}/" if lost else ""
        starts |= {split: at._replace(beside=beside) for split, at in merged.starts.items()}
        lost[f"{beside}lost"] = merged.lost
    blobs = reading.placed(read.blobs, read.rows)
    of_buckets = Buckets(starts, check, read.large)
    stored = [*OF_LINES, *lost, *OF_GROUPS, *(OF_TAP if len(lost) > 1 else ())]
    folder = uris.local_path(output)
    if folder is not None:
        kept = {*ALWAYS_KEPT, *(OF_GROUPS if read.rows.total() <= FEW_ROWS else ())}
        with storing.attempts(folder):
            made = reading.judged(blobs, of_buckets, folder, stored, kept).toArrow()
            results = pa.concat_tables([made, storing.of_driver(folder, lost, kept)])
            storing.commit(folder, stored, results)
        return storing.rows_in(results)
    of_lost = blobs.sparkSession.createDataFrame(storing.of_driver(None, lost, lost))
    made = reading.judged(blobs, of_buckets, None, (), {*stored, *ALWAYS_KEPT})
    every = made.unionAll(of_lost).persist()
    try:
        storing.write(every, stored, output)
        return storing.rows_in(every.where(every["name"].isin(*ALWAYS_KEPT)).toArrow())
    finally:
        every.unpersist()


def _deliveries(spark: SparkSession, source: str, run: RunFolder) -> Deliveries:
    """Read what the tap held back of answers, if a fault of the run let it."""
    if "tap" not in run.experiment.needs:
        return NOTHING_HELD
    lines = log_files.lines(spark, source, Level.WIRE.folder)
    ruled = lines.select(F.col("value").cast("string")).where(F.col("value").contains(ACTED))
    return deliveries.read(sorted(ruled.toArrow()["value"].to_pylist()))


# the few rows that the verdict and the page need


def results(
    tables: Tables, planned: Sequence[str], choose: Choose, partitions: int
) -> tuple[Results, Sequence[str], Mapping[str, list[Json]]]:
    """Read what the verdict and the page need: few rows, however many groups there are.

    Return the results, the groups to draw, and the rows of tables that the page shows: of the
    groups that `choose` chooses to be drawn and the `planned` ones; owners of the first
    `partitions` of each topic; the requests of wire scripts.
    """
    digests = {
        row["group"]: Digest.from_json(row["digest"]) for row in tables.kept.get("digests", ())
    }
    drawn = choose(digests)
    wrong = _within_limit(digests, drawn)
    shown = list(dict.fromkeys([*planned, *drawn]))
    wanted: dict[str, Asked] = {
        **dict.fromkeys(("observed", "expulsions", "stops", "handovers", "records"), Asked(shown)),
        **dict.fromkeys(("joins", "causes"), Asked(shown)),
        "client_findings": Asked(None),  # the verdict is about all of them
        "comparison": Asked(shown, wrong),
        "ownership": Asked(shown, below=partitions),
        "heard": Asked(drawn),
        **dict.fromkeys(("violations", "breaches", "member_lines", "departures"), Asked(wrong)),
    }
    total = sum((digest.rows for digest in digests.values()), Counter[str]())
    asked = {name: one for name, one in wanted.items() if total[name]}
    with ThreadPoolExecutor() as threads:  # each may be a job of Spark's
        read = threads.map(lambda name: tables.rows(name, asked[name]), asked)
        rows = defaultdict[str, list[Json]](list, zip(asked, read, strict=True))
    if scripted := [*{*drawn} & {*tables.run.experiment.workload.wire_scripts}]:
        rows["requests"] = tables.rows("requests", Asked(scripted))
    few = {name: tables.kept.get(name, []) for name in ALWAYS_KEPT}
    left_out = sum(of.wrong for group, of in digests.items() if wrong and group not in wrong)
    altered, failed = tables.read.history.doubts(HISTORY), tables.read.commit_errors
    merged = tables.read.merged[tables.run.parser.folder]
    data = gathered({**few, **rows}, merged, tables.context, altered, left_out, failed)
    return data, drawn, rows


def _within_limit(digests: Mapping[str, Digest], drawn: Iterable[str]) -> Collection[str] | None:
    """Return the groups whose differences are read, at most FINDINGS or one group's; None for all.

    Those that are drawn come first. A group's differences are read together: which of them is the
    first is what matters.
    """
    left = FINDINGS
    if sum(digest.wrong for digest in digests.values()) <= left:
        return None
    read = set[str]()
    for name in dict.fromkeys([*drawn, *sorted(digests)]):
        count = digests[name].wrong
        if count and (count <= left or not read):
            read.add(name)
            left -= count
    return read
