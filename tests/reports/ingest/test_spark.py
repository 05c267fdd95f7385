"""Sessions that start early, Spark's JVM on this machine, and its archive of classes."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyspark import SparkConf, SparkContext

from reports import EvidenceError, ExecutionError
from reports.ingest import spark
from reports.ingest.failures import explained

EARLY = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from reports.ingest import spark

def failing(batches):
    raise ValueError("a rehearsal may fail")

spark._imported = failing
log, options = Path(sys.argv[1]), spark.SparkOptions("local[1]")
spark.prepare(options, 0, log, rehearsal=True)
spark._rehearsing[0].join()
early = SparkSession.builder.getOrCreate()
with spark.session(options, 0, log) as opened:
    print(opened is early and opened.range(3).count())
with spark.session(options, 0, log) as again:
    print(again is not early and again.range(4).count())
"""
FAILS = """
import sys
from pathlib import Path
from reports import ExecutionError
from reports.ingest import spark

log, options = Path(sys.argv[1]), spark.SparkOptions("local[1]")
spark.prepare(options, 0, log)
try:
    with spark.session(options, 0, log):
        pass
except ExecutionError as error:
    print(error)
"""
JVM = """
import sys
from pathlib import Path
from pyspark import SparkContext
from reports.ingest import spark
spark.start_jvm(spark._quick(), Path(sys.argv[1]))
print(SparkContext._gateway.proc.pid, flush=True)
"""
STAYS = "sys.stdin.read()"
NO_JAVA = {"hangs": "exec sleep 600", "ends": "exit 1"}


@pytest.mark.parametrize("how", NO_JAVA)
def test_a_jvm_that_does_not_start_is_one_error_and_nothing_of_it_is_left(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{NO_JAVA[how]}\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(spark, "JVM_STARTS_S", 2.0)
    with pytest.raises(ExecutionError, match=r"^Spark's JVM did not start.*; .*log says more"):
        spark.start_jvm(SparkConf(), tmp_path / "log")
    ours = psutil.Process().children(recursive=True)
    alive = [one for one in ours if one.status() != psutil.STATUS_ZOMBIE]
    assert [one for one in alive if one.environ().get("JAVA_HOME") == str(tmp_path)] == []


def test_a_jvm_that_does_not_start_in_a_rehearsal_is_not_started_again(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho started >> {tmp_path}/starts\nexit 1\n")
    java.chmod(0o755)
    environment = os.environ | {"JAVA_HOME": str(tmp_path)}
    program = [sys.executable, "-c", FAILS, str(tmp_path / "log")]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Spark's JVM did not start; "), done.stderr
    assert (tmp_path / "starts").read_text() == "started\n"


@pytest.mark.parametrize(
    ("configured", "kind", "line"),
    [
        ({"SPARK_HOME": "/nonexistent"}, EvidenceError, "/nonexistent/.*: no such file or folder"),
        (
            {"PYSPARK_GATEWAY_PORT": "1", "PYSPARK_GATEWAY_SECRET": "x"},
            ExecutionError,
            "Spark's cluster does not answer, or ended .*refused",
        ),
    ],
)
def test_a_spark_of_the_users_that_is_not_there_is_one_line(
    configured: dict[str, str],
    kind: type[Exception],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    for name, value in configured.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(kind, match=line), explained("Spark"):
        spark.start_jvm(SparkConf(), tmp_path / "log", plain=False)


def test_the_jvm_ends_with_its_process_and_leaves_no_file(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    program = [sys.executable, "-c", JVM + STAYS, str(tmp_path / "log")]
    options = f"-Djava.io.tmpdir={temporary} -XX:-UsePerfData"
    environment = os.environ | {"TMPDIR": str(temporary), "JAVA_TOOL_OPTIONS": options}
    with subprocess.Popen(
        program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        jvm = psutil.Process(int(process.stdout.readline()))
        assert jvm.name() == "java"
        process.kill()
    jvm.wait(60)
    assert list(temporary.iterdir()) == []


@pytest.fixture
def classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = spark.archive_place()
    assert place is not None
    yield place
    place.unlink(missing_ok=True)  # 190 MB


def classes_of_a_jvm(log: Path) -> str:
    """Start and end a process with a JVM, which outlives it; return where its classes are from."""
    classes = log.with_suffix(".%p")
    environment = os.environ | {"JAVA_TOOL_OPTIONS": f"-Xlog:class+load:file={classes}"}
    program = [sys.executable, "-c", JVM, str(log)]
    subprocess.run(program, env=environment, check=True, timeout=60, stdout=subprocess.DEVNULL)
    return "".join(one.read_text() for one in log.parent.glob(f"{log.name}.*"))


def test_the_first_jvm_writes_the_archive_and_the_next_maps_it(
    classes: Path, tmp_path: Path
) -> None:
    gateway = "PythonGatewayServer$ source: "
    assert f"{gateway}file:" in classes_of_a_jvm(tmp_path / "first")
    deadline = time.monotonic() + 60
    while "SharedArchiveFile" not in spark.archive_options()[0]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert f"{gateway}shared objects file (top)" in classes_of_a_jvm(tmp_path / "next")


def test_an_archive_that_is_not_whole_is_written_again_and_one_of_no_use_passed_over(
    classes: Path, tmp_path: Path
) -> None:
    classes.parent.mkdir(parents=True)
    for written in (b"", bytes(1_000)):
        classes.write_bytes(written)
        assert spark.archive_options()[0] == f"-XX:ArchiveClassesAtExit={classes}"
    classes.write_bytes(b"no archive" * 1_000)
    assert spark.archive_options() == [f"-XX:SharedArchiveFile={classes}"]
    assert "PythonGatewayServer$ source: file:" in classes_of_a_jvm(tmp_path / "log")


def test_another_jdk_or_other_jars_have_another_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {spark.archive_place()}
    (tmp_path / "jars").mkdir()
    monkeypatch.setattr(spark, "spark_home", lambda: tmp_path)
    places.add(spark.archive_place())
    (tmp_path / "jars" / "spark.jar").write_bytes(b"1")
    places.add(spark.archive_place())
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    places.add(spark.archive_place())
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="99"\n')
    places.add(spark.archive_place())
    assert len(places - {None}) == 5


@pytest.mark.spark
def test_a_session_that_started_early_is_used_and_its_rehearsal_may_fail(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    program = [sys.executable, "-c", EARLY, str(log)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["3", "4"], done.stderr + log.read_text()
    assert done.stderr == ""
