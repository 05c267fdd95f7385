"""What goes wrong in Spark is one line that says what, where and what to do."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from kafka_protocol.coordinator_lines import JAVA
from reports import EvidenceError, ExecutionError, analyse
from reports.ingest.failures import explained, explanation
from reports.ingest.reading import Reading, on_paths, read_lines
from reports.judgement.log.parsing import Parser
from reports.judgement.log.split_rows import How

pytestmark = pytest.mark.spark
# Workers import from the folder in which the JVM was started, which need not be this one.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
PLACE = "file:/results"
Batches = Iterator[pa.RecordBatch]
Action = Callable[[DataFrame, Path], object]


def line_of(error: pytest.ExceptionInfo[Exception]) -> str:
    text = str(error.value)
    assert "\n" not in text
    assert "Exception" not in text.partition("(")[0]
    return text


def fails(kind: type[Exception], action: Callable[[], object]) -> str:
    """Return the line of what an action raises."""
    with pytest.raises(kind) as error, explained(PLACE):
        action()
    return line_of(error)


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(0, 200_000, 1, 2).selectExpr("id", "uuid() AS text")


NO_SYSTEM = "nosuch://bucket/run: Spark knows no file system nosuch:; "


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("nosuch://bucket/run", NO_SYSTEM),
        ("hdfs://nowhere.invalid:9000/run", ": no host is called nowhere.invalid; check the URI"),
        ("file:/no/such/run", "file:/no/such/run: no such file or folder; check it"),
    ],
)
def test_evidence_that_cannot_be_read(spark: SparkSession, uri: str, words: str) -> None:
    assert words in fails(EvidenceError, lambda: analyse(spark, uri))


def test_an_output_that_cannot_be_written(
    spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    below = f"{tmp_path}/file/results"
    there = tmp_path / "there" / "verdict.json"
    there.parent.mkdir()
    there.write_text("{}")
    for output, words in (
        ("nosuch://bucket/run", NO_SYSTEM),
        (below, f"{below}/"),
        (below, ": cannot be written; check the folder"),
        (str(there.parent), f"file:{there}: exists already; delete it, or give another output"),
    ):
        assert words in fails(EvidenceError, lambda at=output: analyse(spark, recorded, at))
    assert not (recorded / "tables").exists()
    assert there.read_text() == "{}"


def test_a_log_that_workers_do_not_see(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "brokers/1/group.log"
    log.parent.mkdir(parents=True)
    log.write_text("a line\n")
    source = on_paths(spark, [log], 1_000)
    log.unlink()
    how = Reading({"brokers": (Parser(JAVA, numbered=True), How())})
    line = fails(EvidenceError, lambda: read_lines(source, "the run", how))
    assert line.startswith(f"{log}: no such file or folder; check it, and that Spark's driver")


def test_a_full_disk_leaves_no_table(rows: DataFrame, tmp_path: Path) -> None:
    """A disk of one MB."""
    full = tmp_path / "full"
    full.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(full)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("a small disk is mounted by root alone")
    try:
        line = fails(ExecutionError, lambda: rows.write.parquet(f"file:{full}/table"))
        assert line.startswith(f"{PLACE}: a disk is full")
        assert not [file for file in full.rglob("*.parquet") if "_temporary" not in file.parts]
    finally:
        subprocess.run(["umount", "--lazy", str(full)], check=True)


def imports(batches: Batches) -> Batches:
    import no_such_package  # type: ignore[import-not-found]  # noqa: F401, PLC0415

    yield from batches


def refuses(batches: Batches) -> Batches:
    raise EvidenceError("brokers/1/group.log: it was altered")
    yield from batches


def divides(batches: Batches) -> Batches:
    yield from [1 / 0]  # type: ignore[list-item]


def below_a_file(rows: DataFrame, folder: Path) -> None:
    (folder / "file").touch()
    rows.write.parquet(f"file:{folder}/file/table")


def existing(rows: DataFrame, folder: Path) -> None:
    rows.write.mode("error").parquet(f"file:{folder}")


def working(work: Callable[[Batches], Batches]) -> Action:
    return lambda rows, _: rows.mapInArrow(work, "id LONG").count()


NO_WRITE = "cannot be written; check the folder, its permissions, and that every worker of Spark"
NO_MODULE = (
    "Spark's workers have no Python module no_such_package; leave `--archive none` out, or give"
    " their session what `groupquake dev spark-archive` writes (reports.ingest.archive.ship)"
)
ACTIONS: dict[str, tuple[Action, type[Exception], str]] = {
    "a table that exists": (
        existing, EvidenceError,
        "file:{folder}: exists already; delete it, or give another output",
    ),
    "a folder that is a file": (below_a_file, EvidenceError, f"{PLACE}: {NO_WRITE} sees it"),
    "no packages": (working(imports), EvidenceError, NO_MODULE),
    "altered evidence": (
        working(refuses), EvidenceError, "brokers/1/group.log: it was altered",
    ),
    "no known cause": (
        working(divides), ExecutionError,
        f"{PLACE}: Spark failed (ZeroDivisionError: division by zero); its log says more",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("action", "kind", "line"), ACTIONS.values(), ids=ACTIONS)
def test_what_fails_in_spark(
    action: Action, kind: type[Exception], line: str, rows: DataFrame, tmp_path: Path
) -> None:
    assert fails(kind, lambda: action(rows, tmp_path)) == line.format(folder=tmp_path)


def test_a_file_that_is_not_what_its_name_says(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "group.log.gz"
    log.write_bytes(b"no gzip" * 100)
    line = fails(EvidenceError, spark.read.text(f"file:{log}").count)
    assert re.fullmatch(
        rf"file://{re.escape(str(log))}: a worker of Spark cannot read it \(.*not a gzip file.*\);"
        " check the file, and that every worker sees it",
        line,
    )


def test_workers_with_another_python(
    spark: SparkSession, rows: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonVer", "3.8")
    same = rows.mapInArrow(lambda batches: batches, "id LONG, text STRING")
    line = fails(EvidenceError, same.count)
    assert "run another Python than this process: " in line
    assert "3.8" in line


def test_our_own_errors_stay_what_they_are() -> None:
    with pytest.raises(KeyError), explained(PLACE):
        raise KeyError("a mistake of ours")


@pytest.mark.parametrize(
    "text",
    [
        "org.apache.spark.SparkException: All masters are unresponsive! Giving up.",
        "Job 3 cancelled because SparkContext was shut down",
        "<_MultiThreadedRendezvous of RPC that terminated with: status = StatusCode.UNAVAILABLE",
        "An error occurred while calling o1.x.\n: java.net.ConnectException: Connection refused",
    ],
)
def test_a_lost_cluster(text: str) -> None:
    error = explanation(text, PLACE)
    assert isinstance(error, ExecutionError)
    assert str(error).startswith("Spark's cluster does not answer, or ended (")
    assert "\n" not in str(error)
