"""Spark gives the rows and bytes of a plain loop, however it splits and however files are cut."""

import gzip
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from benchmarks.evidence import multiply
from reference_coordinator.classic.releases import promised_by
from reports import analyse
from reports.ingest import reading
from reports.judgement.group import TABLES, check_rows
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.missing.gaps import described, gap, whole_log
from reports.judgement.recording import Recording
from tests.recorded.logs import RECORDINGS
from tests.reports.conftest import SPLIT_BYTES, Unaltered, configured

STORED = [name for name in TABLES if name != "digests"]
FILES = ("verdict.json", "junit.xml", "report.html")


def key(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, default=str)


@pytest.mark.spark
def test_every_row_is_that_of_a_plain_loop_around_the_same_functions(unaltered: Unaltered) -> None:
    folder, _ = unaltered(RECORDINGS["kafka-4.3.0"])
    recording = Recording(folder)
    rules = recording.context.profile
    loop = replace(recording.context, promised=promised_by(rules), rules=rules)
    expected = {table: Counter[str]() for table in STORED}
    for group, rows in recording.rows_by_group.items():
        for table, row in check_rows(loop, group, rows):
            names = [column.split()[0] for column in TABLES[table].split(",")]
            whole = {"group": group, **row}
            expected[table][key({column: whole[column] for column in names})] += 1
    for table in STORED:
        stored = pq.read_table(folder / "tables" / table).to_pylist()
        assert Counter(map(key, stored)) == expected[table], table
    assert expected["departures"]


@pytest.mark.spark
def test_a_verdict_does_not_depend_on_the_partitioning(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies of a recorded run: findings of several groups have the same time and client."""
    folder = tmp_path / "run"
    multiply(3, folder)
    results = []
    for conf, rows in (({}, reading.ROWS_OF_PARTITION), ({SPLIT_BYTES: "300k"}, 700)):
        monkeypatch.setattr(reading, "ROWS_OF_PARTITION", rows)
        with configured(spark, conf):
            verdict = analyse(spark, folder)
        same = Counter((one["at_ms"], one["client"]) for one in verdict["client_findings"])
        assert max(same.values()) > 1
        results.append({name: (folder / name).read_bytes() for name in FILES})
    assert [name for name in FILES if results[0][name] != results[1][name]] == []


def test_the_place_of_a_line_and_of_a_gap_is_that_in_its_file() -> None:
    packed, last = "brokers/1/group.log.1.gz", "brokers/1/group.log"
    places = LogPlaces({"1": [(0, packed), (100, last)]})
    found = [places.place("1", line) for line in (1, 100, 101, 0)]
    assert found == [(packed, 1), (packed, 100), (last, 1), (last, 0)]
    assert places.place("2", 101) == ("brokers/2/group.log", 101)
    assert described(gap("1", 103, None, "cut"), places) == f"{last}:3: cut"
    assert described(whole_log("1", "gone"), places) == f"{last}: gone"


def rotated(log: Path, first: int, second: int) -> None:
    """Cut a log before two lines (from 0): a compressed file, a plain one, and what is left."""
    lines = log.read_bytes().splitlines(keepends=True)
    log.with_name("group.log.2.gz").write_bytes(gzip.compress(b"".join(lines[:first])))
    log.with_name("group.log.1").write_bytes(b"".join(lines[first:second]))
    log.write_bytes(b"".join(lines[second:]))


@pytest.mark.spark
def test_findings_in_rotated_logs_name_the_line_in_its_file(
    spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    """One answer is changed, in the second file of three; folders have characters of globs."""
    folder, results = recorded.rename(tmp_path / "run [1] {a}"), tmp_path / "results [1]"
    beats = lambda log: [
        number
        for number, line in enumerate(log.read_text().splitlines())
        if '"HEARTBEAT"' in line and '{"groupId":"static"' in line and '"errorCode":0' in line
    ]
    log = max(folder.glob("brokers/*/group.log"), key=lambda log: len(beats(log)))
    changed = beats(log)[20]
    lines = log.read_text().splitlines(keepends=True)
    lines[changed] = lines[changed].replace('"errorCode":0', '"errorCode":27')
    log.write_text("".join(lines))
    rotated(log, changed - 6, changed + 50)
    verdict = analyse(spark, folder, results)
    [root] = [finding for finding in verdict["findings"] if finding["root"]]
    file = f"brokers/{log.parent.name}/group.log.1"
    assert root["log"] == {"broker": log.parent.name, "file": file, "line": 7}
    pages = ("counterexample.txt", "report.html", "junit.xml")
    assert [name for name in pages if f"{file}:7" not in (results / name).read_text()] == []
    assert {*pages, "tables", "verdict.json"} < {place.name for place in results.iterdir()}
    assert verdict["verdict"] == "fail"
