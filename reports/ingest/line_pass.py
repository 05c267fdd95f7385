"""The line pass: the brokers' logs in; requests, coordinator lines and the status of lines out.

The splits of a log are read by different tasks, and the lines of a log hang together. So a first
pass summarises each split, the summaries tell where each split begins (`split_summary`), and a
second pass reads them. What splits hold of the processes that wrote a log is joined in the end.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby
from math import inf
from operator import itemgetter
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from reports.ingest import bundle, log_files
from reports.ingest.bundle import Bundle
from reports.ingest.log_files import Split, in_order, log_file
from reports.judgement.collector import collector_paused
from reports.judgement.errors import EvidenceError
from reports.judgement.log.broker_log import TABLES, Log, Number, Start
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.log.parsing import Parser
from reports.judgement.log.processes import STATUSES, ProcessPart, entangled, runs, whole
from reports.judgement.log.split_summary import (
    TAIL_MS,
    SplitSummary,
    TailTooShortError,
    starts,
    summarised,
)
from reports.judgement.run import skews
from reports.judgement.run.deliveries import NOTHING_HELD, Deliveries

Json = dict[str, Any]
Starts = Mapping[Split, Start]
"""Where splits begin, in the order of brokers and of their logs."""

BUNDLE = Bundle({**TABLES, "parts": "broker STRING, line LONG, part BINARY"})
"""What a split gives: rows of the tables, and what it holds of each process (`ProcessPart`)."""


def read_logs(
    spark: SparkSession,
    source: str,
    parser: Parser,
    tables: str,
    deliveries: Deliveries = NOTHING_HELD,
) -> tuple[list[Json], LogPlaces]:
    """Read the logs of the run at a URI into the tables `TABLES` at another.

    `deliveries` tell which requests rules of the tap sent twice. Returns a row for each process,
    and where lines stand.

    Raises EvidenceError where there is no line, or Spark counts other lines than were read.
    """
    lines = log_files.lines(spark, source, parser.folder)
    counted = Observation()
    summaries = _summaries(lines.observe(counted, F.count(F.lit(1)).alias("lines")), parser)
    if not summaries:
        raise EvidenceError(
            f"{source}: every {parser.folder}/*/group.log is empty;"
            " read brokers/*/stdout.log for the reason"
        )
    try:
        begins = _starts(summaries)
    except TailTooShortError:
        begins = _starts(_summaries(lines, parser, inf))
    processes = _read(lines, parser, begins, tables, deliveries)
    if again := _repeated(spark, tables, begins):
        begins = {split: start._replace(seen=again[split]) for split, start in begins.items()}
        processes = _read(lines, parser, begins, tables, deliveries)
    read = sum(process[status] for process in processes for status in STATUSES)
    if read != counted.get["lines"]:
        raise EvidenceError(
            f"{source}: {read} lines were read, and Spark counts {counted.get['lines']};"
            " report it again when the logs no longer change"
        )
    return processes, _places(begins, parser.folder)


def _places(begins: Starts, folder: str) -> LogPlaces:
    files: dict[str, dict[str, int]] = defaultdict(dict)
    for split, start in begins.items():
        file = log_file(split.file)
        files[file.broker].setdefault(file.name, start.line)
    return LogPlaces(
        {broker: [(line, name) for name, line in of.items()] for broker, of in files.items()},
        folder,
    )


def _summaries(
    lines: DataFrame, parser: Parser, tail_ms: float = TAIL_MS
) -> dict[Split, SplitSummary]:
    def summarise(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for split, of_split in groupby(log_files.texts(batches), key=itemgetter(0)):
            texts = chain.from_iterable(map(itemgetter(1), of_split))
            set_off = skews.of_broker(parser.skews, _broker(split))
            summary = msgspec.msgpack.encode(summarised(texts, parser, tail_ms, set_off))
            row = {"file": split.file, "start": split.start, "summary": summary}
            yield pa.RecordBatch.from_pylist([row])

    found = lines.mapInArrow(summarise, "file STRING, start LONG, summary BINARY").toArrow()
    decode = msgspec.msgpack.Decoder(SplitSummary).decode
    return {Split(row["file"], row["start"]): decode(row["summary"]) for row in found.to_pylist()}


def _starts(summaries: Mapping[Split, SplitSummary]) -> Starts:
    begins: dict[Split, Start] = {}
    for _, of_broker in groupby(sorted(summaries, key=in_order), key=_broker):
        splits = list(of_broker)
        _refuse_copies(splits)
        begins |= zip(splits, starts([summaries[split] for split in splits]), strict=True)
    return begins


def _refuse_copies(splits: Iterable[Split]) -> None:
    """Raise EvidenceError where two files are the same part of a log: compressed, and as it was."""
    named: dict[int, str] = {}
    for file in map(log_file, dict.fromkeys(split.file for split in splits)):
        if (other := named.setdefault(file.age, file.name)) != file.name:
            raise EvidenceError(f"{other} and {file.name}: the same part of a log; remove one")


def _broker(split: Split) -> str:
    return log_file(split.file).broker


def _read(
    lines: DataFrame, parser: Parser, begins: Starts, tables: str, deliveries: Deliveries
) -> list[Json]:
    """Read the splits, write the tables, return a row for each process."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with collector_paused():  # millions of rows are made, and no cycles among them
            yield from read_splits(batches)

    def read_splits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for split, of_split in groupby(log_files.texts(batches), key=itemgetter(0)):
            file = log_file(split.file)
            log = Log(file.broker, file.name, parser, begins[split], deliveries)
            for _, texts in of_split:
                for text in texts:
                    log.read(text)
                for name, rows in log.rows.items():
                    if rows:
                        yield BUNDLE.batch(name, list(zip(*rows, strict=True)))
                        rows.clear()
            parts = [msgspec.msgpack.encode(part) for part in log.end()]
            place = begins[split].line
            yield BUNDLE.batch("parts", [[file.broker] * len(parts), [place] * len(parts), parts])

    made = lines.mapInArrow(read, BUNDLE.columns).persist()
    try:
        processes, lost = _joined(made)
        bundle.write(made, [name for name in TABLES if name != "lost"], tables)
        found = bundle.table(made, "lost")
        if lost:
            found = found.unionByName(made.sparkSession.createDataFrame(lost, TABLES["lost"]))
        bundle.write_table(found, "lost", tables)
    finally:
        made.unpersist()
    return processes


def _joined(made: DataFrame) -> tuple[list[Json], list[tuple[Any, ...]]]:
    """Join what splits hold of processes: a row for each, and the rows of `lost` that this tells.

    Reads `parts`, and of processes whose serial numbers splits share, every number.
    """
    decode = msgspec.msgpack.Decoder(ProcessPart).decode
    of_brokers: dict[str, list[ProcessPart]] = defaultdict(list)
    rows = bundle.table(made, "parts").toArrow().to_pylist()
    for row in sorted(rows, key=itemgetter("broker", "line")):
        of_brokers[row["broker"]].append(decode(row["part"]))
    processes: list[Json] = []
    lost: list[tuple[Any, ...]] = []
    for broker, parts in of_brokers.items():
        for number in entangled(parts):
            _disentangle(made, broker, number, parts)
        of_broker, gaps = whole(broker, parts)
        lost += gaps
        processes += (
            {
                "broker": broker,
                "process": process.number,
                "last_ms": process.last_ms,
                "partition": process.partition,
                **{status: process.statuses[status] for status in STATUSES},
            }
            for process in of_broker
        )
    return processes, lost


def _disentangle(made: DataFrame, broker: str, number: int, parts: list[ProcessPart]) -> None:
    """Replace the runs of a process by those of all its lines, in one of its parts."""
    coverage = bundle.table(made, "coverage")
    placed = (
        coverage.where((coverage["broker"] == broker) & (coverage["process"] == number))
        .select("serial_number", "line", "at_ms")
        .dropna()
        .orderBy("serial_number", "line")
        .toLocalIterator()
    )
    exact = list(runs(tuple(row) for row in placed))
    for part in parts:
        if part.number == number:
            part.runs, exact = exact, []


def _repeated(
    spark: SparkSession, tables: str, begins: Starts
) -> Mapping[Split, Mapping[Number, int]]:
    """Return, by split, how often the splits before it have the requests that its lines repeat.

    Within a split, `Log` sees what is repeated.
    """
    brokers = [_broker(split) for split in begins]
    if len({*brokers}) == len(brokers):
        return {}
    stored = lambda name: bundle.stored(spark, TABLES[name], name, tables)
    number = ["broker", "connection", "correlation_id"]
    numbers = stored("requests").select(*number, "line").dropna()
    hashes = numbers.groupBy(F.xxhash64(*number).alias("hash")).count().where("count > 1")
    if hashes.isEmpty():
        return {}
    candidates = numbers.join(hashes, F.xxhash64(*number) == hashes["hash"], "left_semi")
    of_lines = stored("coverage").select("broker", "line", "process")
    twice = (
        candidates.join(of_lines, ["broker", "line"])
        .groupBy("process", *number)
        .agg(F.array_sort(F.collect_list("line")).alias("lines"))
        .where("size(lines) > 1")
    )
    splits: dict[str, list[Split]] = defaultdict(list)
    for split in begins:
        splits[_broker(split)].append(split)
    found: dict[Split, dict[Number, int]] = {split: {} for split in begins}
    for row in twice.toArrow().to_pylist():
        of_broker = splits[row["broker"]]
        at = [begins[split].line for split in of_broker]
        places = [bisect_right(at, line - 1) - 1 for line in row["lines"]]
        for place in {*places} - {places[0]}:
            repeated = row["connection"], row["correlation_id"]
            found[of_broker[place]][repeated] = sum(before < place for before in places)
    return found if any(found.values()) else {}
