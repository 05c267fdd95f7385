"""Collects the logs of brokers that are not ours, as they grow, into the run folder.

A source is a file of this machine, or what a command prints. What was written before the collection
begins stays out. Whole lines are appended to `brokers/<id>/group.log`.
"""

import os
import subprocess
import threading
import time
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path
from typing import IO

from chaos.clusters import GROUP_LOG, commands
from chaos.errors import ClusterError
from chaos.timing import (
    LOG_COMMAND_AGAIN_S,
    LOG_END_S,
    LOG_LIVE_S,
    LOG_POLL_S,
    LOG_QUIET_S,
)
from kafka_protocol.log_line import written_ms
from scenarios.external import BROKER, Logs

_REMEMBERED = 100_000
"""How many lines a command may print again."""
_CUT = b"groupquake: the log was truncated in place; lines may be missing here\n"
"""A line that nothing understands: it makes the verdict unknown."""


def collect(logs: Logs, broker: int, into: Path) -> "FileSource | CommandSource":
    """Begin to collect a broker's log into a folder. Raises ClusterError if there is none."""
    into.mkdir(parents=True, exist_ok=True)
    if logs.command is not None:
        return CommandSource(logs.command.replace(BROKER, str(broker)), into)
    assert logs.folder is not None, "the file was checked"
    named = BROKER in logs.folder
    folder = Path(logs.folder.replace(BROKER, str(broker)))
    file = (folder if named else folder / str(broker)) / GROUP_LOG
    if not file.is_file():
        raise ClusterError(
            f"{file}: no such log of broker {broker}; `groupquake doctor` says how to switch it on,"
            f" and {{broker}} in the folder stands for the broker's id"
        )
    return FileSource(file, into)


class _Source:
    """Copies whole lines, from `_next`, in a thread of its own until `end`."""

    def __init__(self, into: Path) -> None:
        self._began_ms = time.time() * 1000
        self._out = (into / GROUP_LOG).open("ab")
        self._over = threading.Event()
        self._wrote_s = time.monotonic()
        self._error: OSError | None = None
        self._thread = threading.Thread(
            target=self._until_error, name=f"log into {into}", daemon=True
        )

    def end(self) -> None:
        """Wait until no line came for a while, 10 s at most, and stop.

        Raises ClusterError if lines could not be copied.
        """
        asked_s = time.monotonic()
        while time.monotonic() - max(self._wrote_s, asked_s) < LOG_QUIET_S:
            if time.monotonic() - asked_s > LOG_END_S:
                break
            time.sleep(LOG_POLL_S)
        self._over.set()
        self._interrupt()
        self._thread.join()
        with suppress(OSError):  # the first error is raised below
            self._out.close()
        if self._error is not None:
            raise ClusterError(
                f"{self._out.name}: the log could not be collected ({self._error.strerror}); what"
                " is there ends too soon; mend that, and run it again"
            )

    def _interrupt(self) -> None:
        """Wake a thread that waits for a line."""

    def _until_error(self) -> None:
        try:
            self._run()
        except OSError as error:
            self._error = error

    def _run(self) -> None:
        raise NotImplementedError

    def _write(self, lines: bytes) -> None:
        if lines:
            self._out.write(lines)
            self._out.flush()
            self._wrote_s = time.monotonic()


class FileSource(_Source):
    """A file, from its present end on; it may be renamed and begun anew (rotation).

    It may be truncated in place, too (logrotate's `copytruncate`), which loses lines.
    """

    def __init__(self, file: Path, into: Path) -> None:
        super().__init__(into)
        self._path = file
        self._file = file.open("rb")
        size = os.fstat(self._file.fileno()).st_size
        self._file.seek(max(0, size - 1))
        self._in_line = size > 0 and self._file.read(1) != b"\n"  # its rest is not ours
        self._rest = b""
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(LOG_POLL_S):
            self._copy()
        self._copy()
        self._file.close()

    def _copy(self) -> None:
        self._take()
        try:
            there = self._path.stat()
            here = os.fstat(self._file.fileno())
            begun_anew = None if there.st_ino == here.st_ino else self._path.open("rb")
        except OSError:
            return  # it is being renamed
        if begun_anew is not None:
            self._take()
            self._file.close()
            self._file, self._rest = begun_anew, b""
            self._take()
        elif here.st_size < self._file.tell():
            self._file.seek(0)
            self._rest, self._in_line = b"", False
            self._write(_CUT)
            self._take()

    def _take(self) -> None:
        whole, end, self._rest = (self._rest + self._file.read()).rpartition(b"\n")
        lines = whole + end
        if self._in_line and lines:
            self._in_line = False
            lines = lines.partition(b"\n")[2]
        self._write(lines)


class CommandSource(_Source):
    """What a command prints; it is started again when it ends, without the lines that came.

    What it prints then begins anywhere in the log, and goes on without a gap: as far as its lines
    are those that were written last, they are left out.
    """

    def __init__(self, command: str, into: Path) -> None:
        super().__init__(into)
        self._command = command
        self._errors = into / "logs-command.err"
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._written: deque[tuple[int, float]] = deque(maxlen=_REMEMBERED)
        self._last_ms = 0.0
        self._code = 0
        self._late_ms = 0.0
        self._thread.start()

    def _interrupt(self) -> None:
        with self._lock:
            if self._process is not None:
                commands.kill(self._process)

    def _run(self) -> None:
        while (process := self._started()) is not None:
            began_s = time.monotonic()
            assert process.stdout is not None
            try:
                with process.stdout as lines:
                    self._take(lines)
            except OSError:
                self._interrupt()
                raise
            finally:
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
                with self._lock:  # a process that was waited for must not be signalled
                    code, self._process = process.wait(), None
                    if not self._over.is_set():  # it was not killed by `end`
                        self._code = code
            self._over.wait(began_s + LOG_COMMAND_AGAIN_S - time.monotonic())
        if not self._written and (why := self._nothing()):
            self._write(f"groupquake: {why}\n".encode())

    def _nothing(self) -> str | None:
        """Say what may be the cause that no line came; such a line makes the verdict unknown."""
        if self._late_ms:
            return (
                f"lines that were just printed are {self._late_ms / 1000:.0f} s old; the log has to"
                " be in UTC, and the clocks have to agree"
            )
        if self._code > 0:
            return f"the log command fails with code {self._code}; see {self._errors.name}"
        return None

    def _started(self) -> subprocess.Popen[bytes] | None:
        """Start the command, unless it is over."""
        with self._lock:
            if self._over.is_set():
                return None
            with self._errors.open("ab") as errors:
                brokers = self._errors.parent.parent
                self._process = commands.start(self._command, brokers, subprocess.PIPE, errors)
            return self._process

    def _take(self, lines: IO[bytes]) -> None:
        """Copy the lines, without those that an earlier process of the command printed, too."""
        known = Counter(line for line, _ in self._written)
        oldest_ms = max(self._began_ms, self._written[0][1] if known else 0)
        is_new, began_s = False, time.monotonic()
        for line in lines:
            if not line.endswith(b"\n"):
                return
            at_ms = _written_ms(line)
            if at_ms is not None:
                is_new = at_ms >= (oldest_ms if known else self._began_ms)
            if known[hash(line)] > 0:
                known[hash(line)] -= 1
            elif is_new:
                known.clear()  # it has come to the end of what was written
                self._last_ms = at_ms or self._last_ms
                self._written.append((hash(line), self._last_ms))
                self._write(line)
            elif at_ms is not None and time.monotonic() - began_s > LOG_LIVE_S:
                self._late_ms = time.time() * 1000 - at_ms


def _written_ms(line: bytes) -> float | None:
    """Return when a line was written; None for one without a time, such as of a stack trace."""
    with suppress(ValueError):
        return written_ms(line.decode(errors="replace"))
    return None
