"""Spark's JVM on this machine, its archive of classes, and sessions that start early."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from reports import ExecutionError
from reports.ingest import jvm
from reports.ingest.jvm import Jvm

EARLY = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from reports.ingest import spark

def failing(batches):
    raise ValueError("a rehearsal may fail")

spark._imported = failing
log, options = Path(sys.argv[1]), spark.SparkOptions("local[1]")
spark.prepare("local[1]", 0, log, rehearsal=True)
spark._rehearsing[0].join()
early = SparkSession.builder.getOrCreate()
with spark.session(options, 0, log) as opened:
    print(opened is early and opened.range(3).count())
with spark.session(options, 0, log) as again:
    print(again is not early and again.range(4).count())
"""


@pytest.mark.spark
def test_it_has_the_options_of_spark_s_own_launcher(spark: SparkSession) -> None:
    launcher = spark._jvm.org.apache.spark.launcher.JavaModuleOptions
    assert " ".join(jvm.MODULES) == launcher.defaultModuleOptions()


def test_one_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match=r"exit code 1; \S+/log says why"):
        _ = Jvm(["-Xmx1k"], tmp_path / "log").address
    assert "Too small maximum heap" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("then", ["", "; started.address"], ids=["at once", "once it is there"])
def test_it_ends_with_its_process(then: str, tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from reports.ingest.jvm import Jvm;"
        f"started = Jvm(['-XX:TieredStopAtLevel=1'], Path({str(tmp_path / 'log')!r}));"
        f"print(started.process.pid){then}"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(ran.stdout)).wait(60)


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = jvm.archive_place()
    assert place is not None
    yield place
    place.unlink(missing_ok=True)  # 190 MB


def run_a_jvm(log: Path) -> None:
    started = Jvm([*jvm.archive_options(), "-Xlog:class+load"], log)
    port, secret = started.address
    assert port > 0
    assert secret
    assert started.process.stdin is not None
    started.process.stdin.close()
    assert started.process.wait(120) == 0


def test_the_first_jvm_writes_the_archive_and_the_next_maps_it(
    archive: Path, tmp_path: Path
) -> None:
    gateway = "PythonGatewayServer$ source: "
    run_a_jvm(tmp_path / "first")
    assert f"{gateway}file:" in (tmp_path / "first").read_text()
    run_a_jvm(tmp_path / "next")
    assert f"{gateway}shared objects file (top)" in (tmp_path / "next").read_text()


@pytest.mark.parametrize("written", [b"", bytes(1_000)], ids=["nothing", "all but the header"])
def test_an_archive_that_was_not_written_to_its_end_is_written_again(
    written: bytes, archive: Path
) -> None:
    archive.parent.mkdir(parents=True)
    archive.write_bytes(written)
    assert jvm.archive_options()[0] == f"-XX:ArchiveClassesAtExit={archive}"


def test_an_archive_that_the_jvm_cannot_use_is_passed_over(archive: Path, tmp_path: Path) -> None:
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"no archive" * 1_000)
    assert jvm.archive_options() == [f"-XX:SharedArchiveFile={archive}"]
    run_a_jvm(tmp_path / "log")


def test_another_jdk_or_other_jars_have_another_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {jvm.archive_place()}
    (tmp_path / "jars").mkdir()
    monkeypatch.setattr(jvm, "spark_home", lambda: tmp_path)
    places.add(jvm.archive_place())
    (tmp_path / "jars" / "spark.jar").write_bytes(b"1")
    places.add(jvm.archive_place())
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    places.add(jvm.archive_place())
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="99"\n')
    places.add(jvm.archive_place())
    assert len(places - {None}) == 5


@pytest.mark.spark
def test_a_session_that_started_early_is_used_and_its_rehearsal_may_fail(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    program = [sys.executable, "-c", EARLY, str(log)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["3", "4"], done.stderr + log.read_text()
    assert done.stderr == ""
