"""What goes wrong in Spark is one line that says what, where and what to do."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_protocol.coordinator_lines import JAVA
from reports import EvidenceError, ExecutionError, analyse
from reports.ingest.failures import explained, explanation
from reports.ingest.reading import Reading, on_paths, read_lines
from reports.judgement.log.parsing import Parser
from reports.judgement.log.split_rows import How

pytestmark = pytest.mark.spark
PLACE = "file:/results"
Batches = Iterator[pa.RecordBatch]


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


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A disk of one MB."""
    folder = tmp_path / "full"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("a small disk is mounted by root alone")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("nosuch://bucket/run", "nosuch://bucket/run: Spark knows no file system nosuch:; "),
        ("hdfs://nowhere.invalid:9000/run", ": no host is called nowhere.invalid; check the URI"),
        ("file:/no/such/run", "file:/no/such/run: no such file or folder; check it"),
    ],
)
def test_evidence_that_cannot_be_read(spark: SparkSession, uri: str, words: str) -> None:
    with pytest.raises(EvidenceError) as error:
        analyse(spark, uri)
    assert words in line_of(error)


def test_an_output_that_cannot_be_written(spark: SparkSession, recorded: Path) -> None:
    with pytest.raises(EvidenceError) as error:
        analyse(spark, recorded, "nosuch://bucket/results")
    assert "nosuch://bucket/results: Spark knows no file system nosuch:; " in line_of(error)
    assert not (recorded / "tables").exists()


def test_an_output_below_a_file(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EvidenceError) as error:
        analyse(spark, recorded, tmp_path / "file" / "results")
    assert f"{tmp_path}/file/results/" in line_of(error)
    assert ": cannot be written; check the folder" in line_of(error)


def test_a_log_that_workers_do_not_see(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "brokers/1/group.log"
    log.parent.mkdir(parents=True)
    log.write_text("a line\n")
    source = on_paths(spark, [log], 1_000)
    log.unlink()
    how = Reading({"brokers": (Parser(JAVA, numbered=True), How())})
    line = fails(EvidenceError, lambda: read_lines(source, "the run", how))
    assert line.startswith(f"{log}: no such file or folder; check it, and that Spark's driver")


def test_an_output_that_has_results_is_left_as_it_is(
    spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    verdict = tmp_path / "results" / "verdict.json"
    verdict.parent.mkdir()
    verdict.write_text("{}")
    with pytest.raises(EvidenceError) as error:
        analyse(spark, recorded, verdict.parent)
    assert line_of(error) == (f"file:{verdict}: exists already; delete it, or give another output")
    assert verdict.read_text() == "{}"


def test_a_full_disk_leaves_no_table(rows: DataFrame, full: Path) -> None:
    line = fails(ExecutionError, lambda: rows.write.parquet(f"file:{full}/table"))
    assert line.startswith(f"{PLACE}: a disk is full")
    assert not [file for file in full.rglob("*.parquet") if "_temporary" not in file.parts]


def test_a_folder_that_is_a_file(rows: DataFrame, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    line = fails(EvidenceError, lambda: rows.write.parquet(f"file:{tmp_path}/file/table"))
    assert line.startswith(f"{PLACE}: cannot be written; check the folder")


def test_a_table_that_exists(rows: DataFrame, tmp_path: Path) -> None:
    line = fails(EvidenceError, lambda: rows.write.mode("error").parquet(f"file:{tmp_path}"))
    assert line == f"file:{tmp_path}: exists already; delete it, or give another output"


def test_a_worker_without_our_packages(rows: DataFrame) -> None:
    def imports(batches: Batches) -> Batches:
        import no_such_package  # type: ignore[import-not-found]  # noqa: F401, PLC0415

        yield from batches

    line = fails(EvidenceError, lambda: rows.mapInArrow(imports, "id LONG, text STRING").count())
    assert "workers have no Python module no_such_package; leave `--archive none` out" in line


def test_workers_with_another_python(
    spark: SparkSession, rows: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonVer", "3.8")
    same = rows.mapInArrow(lambda batches: batches, "id LONG, text STRING")
    line = fails(EvidenceError, same.count)
    assert "run another Python than this process: " in line
    assert "3.8" in line


def test_what_a_worker_says_of_the_evidence(rows: DataFrame) -> None:
    def refuses(batches: Batches) -> Batches:
        raise EvidenceError("brokers/1/group.log: it was altered")
        yield from batches

    line = fails(EvidenceError, lambda: rows.mapInArrow(refuses, "id LONG").count())
    assert line == "brokers/1/group.log: it was altered"


def test_a_file_that_is_not_what_its_name_says(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "group.log.gz").write_bytes(b"no gzip" * 100)
    log = spark.read.text(f"file:{tmp_path}/group.log.gz")
    line = fails(EvidenceError, log.count)
    assert f"file://{tmp_path}/group.log.gz: a worker of Spark cannot read it" in line
    assert "not a gzip file" in line


def test_a_failure_without_a_known_cause_is_quoted(rows: DataFrame) -> None:
    def divides(batches: Batches) -> Batches:
        yield from [1 / 0]  # type: ignore[list-item]

    line = fails(ExecutionError, lambda: rows.mapInArrow(divides, "id LONG").count())
    assert line == (
        f"{PLACE}: Spark failed (ZeroDivisionError: division by zero); its log says more"
    )


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
