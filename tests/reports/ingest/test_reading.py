"""The first pass: what Spark reads in splits is what one process reads in a row."""

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from kafka_protocol.coordinator_lines import JAVA
from reports import EvidenceError
from reports.ingest import log_files, reading, storing
from reports.ingest.failures import explained
from reports.ingest.reading import Reading, ReadLines, Source, by_spark, on_paths
from reports.ingest.sources import logs_of
from reports.judgement.buckets import Buckets
from reports.judgement.log.broker_log import TABLES
from reports.judgement.log.log_places import LogFile, Split, in_order, log_file
from reports.judgement.log.merging import read_logs
from reports.judgement.log.parsing import Parser
from reports.judgement.log.split_rows import How
from tests.reports.conftest import SPLIT_BYTES, configured

RECORDED = Path(__file__).parents[2] / "recorded/kafka-4.3.0/brokers"
PARSER = Parser(JAVA, numbered=True)
Row = dict[str, Any]


def test_files_of_a_log_are_in_the_order_of_their_lines() -> None:
    names = ["2/group.log", "1/group.log", "1/group.log.2.gz", "1/group.log.10", "1/group.log.1"]
    splits = [Split(f"file:///a%20b/brokers/{name}", start) for name in names for start in (9, 0)]
    ordered = [split.file.rpartition("brokers/")[2] for split in sorted(splits, key=in_order)]
    assert ordered[::2] == ordered[1::2] == [
        "1/group.log.10", "1/group.log.2.gz", "1/group.log.1", "1/group.log", "2/group.log",
    ]  # fmt: skip
    assert [split.start for split in sorted(splits, key=in_order)] == [0, 9] * 5
    assert log_file(splits[4].file) == LogFile("1", 2, "brokers/1/group.log.2.gz")
    with pytest.raises(EvidenceError, match=r"group\.log\.old: no brokers/<id>/group\.log"):
        log_file("file:///a/brokers/1/group.log.old")


def lines_of(broker: int) -> list[str]:
    packed = (RECORDED / f"{broker}/group.log.xz").read_bytes()
    return lzma.decompress(packed).decode().splitlines()


def ranges(spark: SparkSession, folder: Path) -> Source:
    return on_paths(spark, logs_of(folder, "brokers"), 60_000)


def lines(spark: SparkSession, folder: Path) -> Source:
    return by_spark(log_files.lines(spark, f"file:{folder}", "brokers"))


def read(source: Source) -> ReadLines:
    how = Reading({"brokers": (PARSER, How(buckets=5))})
    return reading.read_lines(source, "the run", how)


def stored(tables: Path, name: str) -> list[Row]:
    found: list[Row] = ds.dataset(tables / name, format="parquet").to_table().to_pylist()
    return found


def comparable(rows: list[Row]) -> list[str]:
    return sorted(repr(sorted({**row, "file": None}.items())) for row in rows)


@pytest.mark.spark
@pytest.mark.parametrize("source_of", [ranges, lines])
def test_splits_and_rotated_files_give_the_rows_of_the_whole(
    source_of: Callable[[SparkSession, Path], Source], spark: SparkSession, tmp_path: Path
) -> None:
    """With a request that stands twice, far apart, and bytes that are no UTF-8."""
    first, second = lines_of(1), lines_of(2)
    again = next(line for line in first[:100] if "HEARTBEAT" in line)
    head, _, rest = first[600].partition(" data-plane")
    assert rest
    first[600] = f"{head} {again.split(' ', 3)[3]}"
    first[300] = "\ufffd no line"
    logs = {"1": first, "2": second}
    for broker in logs:
        (tmp_path / f"brokers/{broker}").mkdir(parents=True)
    write = lambda name, lines: (tmp_path / "brokers/1" / name).write_bytes(lines)
    joined = lambda lines: "\n".join(lines).encode().replace("\ufffd".encode(), b"\xff")
    write("group.log.2.gz", gzip.compress(joined(first[:100]) + b"\n"))
    write("group.log.1", joined(first[100:500]).replace(b"\n", b"\r\n"))
    write("group.log", joined(first[500:]) + b"\n")
    write("group.log.swp", b"no log")
    (tmp_path / "brokers/2/group.log").write_bytes(joined(second))
    (tmp_path / "brokers/3").mkdir()
    (tmp_path / "brokers/3/group.log").write_bytes(b"")
    with configured(spark, {SPLIT_BYTES: "60000", "spark.sql.files.openCostInBytes": "0"}):
        found = read(source_of(spark, tmp_path))
    merged = found.merged["brokers"]
    assert len(merged.starts) > 8
    names = ["requests", "transitions", "coverage"]
    of = Buckets(merged.starts)
    placed = reading.placed(found.blobs, found.rows)
    with storing.attempts(tmp_path):
        tables = reading.judged(placed, of, tmp_path, names, []).toArrow()
        results = pa.concat_tables([tables, storing.of_driver(tmp_path, {"lost": merged.lost}, ())])
        storing.commit(tmp_path, [*names, "lost"], results)
    found.blobs.unpersist()
    expected = read_logs(
        {Split(f"brokers/{b}/group.log", 0): [line.encode() for line in logs[b]] for b in logs},
        PARSER,
    )
    tables = expected.tables()
    for name in TABLES:
        assert comparable(stored(tmp_path, name)) == comparable(tables[name]), name
    assert merged.processes == expected.merged.processes
    places = merged.places
    assert [places.written("1", line) for line in (1, 100, 101, 500, 501)] == [
        "brokers/1/group.log.2.gz:1", "brokers/1/group.log.2.gz:100", "brokers/1/group.log.1:1",
        "brokers/1/group.log.1:400", "brokers/1/group.log:1",
    ]  # fmt: skip
    assert places.written("2", 70) == "brokers/2/group.log:70"
    files = {row["line"]: row["file"] for row in stored(tmp_path, "requests")
             if row["broker"] == "1"}  # fmt: skip
    assert {(line > 100) + (line > 500): file for line, file in files.items()} == {
        0: "brokers/1/group.log.2.gz", 1: "brokers/1/group.log.1", 2: "brokers/1/group.log",
    }  # fmt: skip
    unreadable = [row["line"] for row in tables["requests"] if not row["readable"]]
    assert unreadable == [601]
    counted = sum(len(of_broker) for of_broker in logs.values())
    assert sum(one[status] for one in merged.processes for status in
               ("used", "irrelevant", "rejected")) == counted  # fmt: skip


@pytest.mark.spark
def test_no_log_and_empty_logs_are_errors(spark: SparkSession, tmp_path: Path) -> None:
    for source_of in (ranges, lines):
        with pytest.raises(EvidenceError, match=r"no brokers/<id>/group\.log"):
            source_of(spark, tmp_path)
    (tmp_path / "brokers/1").mkdir(parents=True)
    (tmp_path / "brokers/1/group.log").write_bytes(b"")
    for source_of in (ranges, lines):
        with pytest.raises(EvidenceError, match=r"every brokers/\*/group\.log is empty"):
            read(source_of(spark, tmp_path))
    (tmp_path / "brokers/1/group.log.1").write_text("a line\n")
    (tmp_path / "brokers/1/group.log.1.gz").write_bytes(gzip.compress(b"a line\n"))
    copies = "brokers/1/group.log.1(.gz)? and brokers/1/group.log.1(.gz)?: the same part of a log"
    with pytest.raises(EvidenceError, match=copies):
        read(ranges(spark, tmp_path))


@pytest.mark.spark
def test_a_log_that_grew_since_it_was_listed_is_one_clear_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = tmp_path / "brokers/1/group.log"
    log.parent.mkdir(parents=True)
    log.write_text("a line\n")
    source = ranges(spark, tmp_path)
    with log.open("a") as file:
        file.write("another\n")
    changed = f"^{log}: it changed while it was read; report it"
    with pytest.raises(EvidenceError, match=changed), explained("the run"):
        read(source)


def test_a_task_that_ran_twice_counts_once(tmp_path: Path) -> None:
    """A third attempt ended in the middle of its file."""
    attempts = []
    with storing.attempts(tmp_path):
        for _ in range(2):
            files = storing.Files(tmp_path, ["bound", "broken"], ["bound"])
            files.add("bound", [("g", "name", 1), ("h", "name", 2)])
            files.add("digests", [("g", "{}")])
            attempts.append(files.end())
        dying = storing.Files(tmp_path, ["bound"], [])
        dying.add("bound", [("g", "other", 1)] * storing.ROWS)
        results = pa.Table.from_batches(attempts[:1])
        storing.commit(tmp_path, ["bound", "broken"], results)
    assert {place.name for place in tmp_path.iterdir()} == {"bound", "broken"}
    tables = {name: stored(tmp_path, name) for name in ("bound", "broken")}
    rows = [{"group": "g", "name": "name", "count": 1}, {"group": "h", "name": "name", "count": 2}]
    assert tables == {"bound": rows, "broken": []}
    assert storing.rows_in(results) == {"bound": rows}
    assert all((tmp_path / name / storing.SUCCESS).exists() for name in tables)
