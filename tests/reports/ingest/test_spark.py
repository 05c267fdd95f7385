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

from reports import ExecutionError
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
GATEWAY = "PythonGatewayServer$ source: "
"""A class of Spark's; what follows in a JVM's log is where it was loaded from."""
OF_ARCHIVE, OF_JAR = f"{GATEWAY}shared objects file (top)", f"{GATEWAY}file:"


def java_home(folder: Path, script: str) -> str:
    """Make a JDK whose `java` is a script."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return str(folder)


def run(script: str, log: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    program = [sys.executable, "-c", script, str(log)]
    return subprocess.run(
        program, env=os.environ | env, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("how", NO_JAVA)
def test_a_jvm_that_does_not_start_is_one_error_and_nothing_of_it_is_left(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", java_home(tmp_path / "jdk", NO_JAVA[how]))
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(spark, "JVM_STARTS_S", 2.0)
    with pytest.raises(ExecutionError, match=r"^Spark's JVM did not start.*; .*log says more"):
        spark.start_jvm(SparkConf(), tmp_path / "log")
    ours = psutil.Process().children(recursive=True)
    alive = [one for one in ours if one.status() != psutil.STATUS_ZOMBIE]
    assert [one for one in alive if one.environ().get("JAVA_HOME") == f"{tmp_path}/jdk"] == []


def test_a_jvm_that_does_not_start_in_a_rehearsal_is_not_started_again(tmp_path: Path) -> None:
    home = java_home(tmp_path / "jdk", f"echo started >> {tmp_path}/starts\nexit 1")
    done = run(FAILS, tmp_path / "log", JAVA_HOME=home)
    assert done.stdout.startswith("Spark's JVM did not start; "), done.stderr
    assert (tmp_path / "starts").read_text() == "started\n"


def test_a_spark_of_the_users_that_does_not_answer_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setenv("PYSPARK_GATEWAY_SECRET", "x")
    line = "Spark's cluster does not answer, or ended .*refused"
    with pytest.raises(ExecutionError, match=line), explained("Spark"):
        spark.start_jvm(SparkConf(), tmp_path / "log", plain=False)


@pytest.fixture
def classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the archive of classes belongs in an empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = spark.archive_place()
    assert place is not None
    yield place
    place.unlink(missing_ok=True)  # 190 MB


def loading(log: Path) -> str:
    """Return the option of a JVM that tells where its classes are from."""
    return f"-Xlog:class+load:file={log.with_suffix('.%p')}"


def loaded(log: Path) -> str:
    return "".join(one.read_text() for one in log.parent.glob(f"{log.name}.*"))


def test_the_first_jvm_writes_the_archive_and_the_next_maps_it_and_ends_with_its_process(
    classes: Path, tmp_path: Path
) -> None:
    first, after, temporary = tmp_path / "first", tmp_path / "next", tmp_path / "temporary"
    assert run(JVM, first, JAVA_TOOL_OPTIONS=loading(first)).returncode == 0
    assert OF_JAR in loaded(first)
    deadline = time.monotonic() + 60
    while "SharedArchiveFile" not in spark.archive_options()[0]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    temporary.mkdir()
    options = f"-Djava.io.tmpdir={temporary} -XX:-UsePerfData {loading(after)}"
    with subprocess.Popen(
        [sys.executable, "-c", JVM + STAYS, str(after)], stdin=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(temporary), "JAVA_TOOL_OPTIONS": options},
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        jvm = psutil.Process(int(process.stdout.readline()))
        assert jvm.name() == "java"
        process.kill()
    jvm.wait(60)
    assert list(temporary.iterdir()) == []
    assert OF_ARCHIVE in loaded(after)


def test_an_archive_that_is_not_whole_is_written_again_and_one_of_no_use_passed_over(
    classes: Path, tmp_path: Path
) -> None:
    classes.parent.mkdir(parents=True)
    for written in (b"", bytes(1_000)):
        classes.write_bytes(written)
        assert spark.archive_options()[0] == f"-XX:ArchiveClassesAtExit={classes}"
    classes.write_bytes(b"no archive" * 1_000)
    assert spark.archive_options() == [f"-XX:SharedArchiveFile={classes}"]
    log = tmp_path / "log"
    assert run(JVM, log, JAVA_TOOL_OPTIONS=loading(log)).returncode == 0
    assert OF_JAR in loaded(log)


def test_another_jdk_or_other_jars_have_another_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [spark.archive_place()]
    (tmp_path / "jars").mkdir()
    monkeypatch.setattr(spark, "spark_home", lambda: tmp_path)
    places.append(spark.archive_place())
    (tmp_path / "jars" / "spark.jar").write_bytes(b"1")
    places.append(spark.archive_place())
    monkeypatch.setenv("JAVA_HOME", java_home(tmp_path / "jdk", ""))
    places.append(spark.archive_place())
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="99"\n')
    places.append(spark.archive_place())
    assert len({*places} - {None}) == len(places)


@pytest.mark.spark
def test_a_session_that_started_early_is_used_and_its_rehearsal_may_fail(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    done = run(EARLY, log)
    assert done.stdout.split() == ["3", "4"], done.stderr + log.read_text()
    assert done.stderr == ""
