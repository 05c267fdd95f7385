"""Standard input, and commands that write logs: their lines, as they come, out."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from groupquake.timing import COMMAND_END_S, START_AGAIN_S
from groupquake.watch.files import CHUNK, lines_of
from loadtest.dies_with_parent import dying_with_parent

STANDARD_INPUT = "-"


class Pipe:
    """What is read as it comes. A command that has ended is started again after a pause."""

    def __init__(
        self, name: str, begins: Callable[[str], None], notice: Callable[[str], None]
    ) -> None:
        """Take `-`, or a command line for a shell; `begins` is called as it begins."""
        self.name, self._begins, self._notice = name, begins, notice
        self.is_over = False
        self._process: subprocess.Popen[bytes] | None = None
        self._file: IO[bytes] | None = None
        self._begin_s = 0.0
        self._rest, self._last = b"", ""

    def read(self, now_s: float) -> list[str]:
        """Return the lines that are there, without their ends; at the end it closes."""
        if self.is_over or now_s < self._begin_s:
            return []
        file = self._file = self._file or self._begun()
        if not select.select([file], [], [], 0)[0]:
            return []
        piece = os.read(file.fileno(), CHUNK)
        whole, end, self._rest = (self._rest + piece).rpartition(b"\n")
        if not piece or len(self._rest) > CHUNK:
            whole, end, self._rest = whole + end + self._rest, b"", b""
        lines = lines_of(whole) if whole or end else []
        self._last = next((line for line in reversed(lines) if line), self._last)
        if not piece:
            code, self._begin_s = self.close(COMMAND_END_S), now_s + START_AGAIN_S
            self.is_over = self.name == STANDARD_INPUT
            if not self.is_over:
                self._notice(
                    f"{self.name}: ended with code {code} ({self._last[:200]}); starts again in"
                    f" {START_AGAIN_S:g} s"
                )
        return lines

    def close(self, within_s: float = 0) -> int | None:
        """Wait for the command to end, or end it with what it has started; return its exit code."""
        process, self._process, self._file = self._process, None, None
        if process is None:
            return None
        with process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(within_s)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also what its shell left behind
            return process.wait()

    def _begun(self) -> IO[bytes]:
        self._begins(self.name)
        if self.name == STANDARD_INPUT:
            return sys.stdin.buffer
        self._process = subprocess.Popen(
            [*dying_with_parent(signal.SIGKILL, "/bin/sh"), "-c", self.name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,  # `docker logs` writes there what a container wrote there
            start_new_session=True,  # Ctrl-C is ours to handle
        )
        assert self._process.stdout is not None, "it is a pipe"
        return self._process.stdout
