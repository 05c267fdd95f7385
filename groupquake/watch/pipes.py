"""Standard input, and commands that write logs: their lines, as they come, out."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from groupquake.timing import COMMAND_END_S, START_AGAIN_S
from groupquake.watch.files import CHUNK, lines_of
from loadtest.dies_with_parent import dying_with_parent


def command_line(text: str) -> list[str]:
    """Return the program and the arguments of a command. Raises UsageError where it cannot run."""
    try:
        program, *arguments = shlex.split(text) or [""]
    except ValueError as error:
        raise click.UsageError(f"--command {text!r}: {error}; give a command line") from error
    found = shutil.which(program)
    if found is None:
        raise click.UsageError(f"--command {text!r}: there is no program {program!r} here")
    return [found, *arguments]


class Pipe:
    """What is read as it comes. A command that has ended is started again after a pause."""

    def __init__(self, name: str, command: Sequence[str] = ()) -> None:
        """Without a command it is standard input."""
        self.name, self.is_open = name, False
        self.notice = ""
        """What is to be said once about how it ended."""
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._open_at_s: float | None = 0.0
        self._rest, self._last = b"", ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        return self._open_at_s is None

    def fileno(self) -> int:
        """Return what can be waited for while it is open."""
        if self._process is None:
            return sys.stdin.fileno()
        assert self._process.stdout is not None, "it is a pipe"
        return self._process.stdout.fileno()

    def may_open(self, now_s: float) -> bool:
        """Open it if it is time to; tell whether it was."""
        if self.is_open or self._open_at_s is None or now_s < self._open_at_s:
            return False
        if self._command:
            program, *arguments = self._command
            self._process = subprocess.Popen(
                [*dying_with_parent(signal.SIGKILL, program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,  # `docker logs` writes there what a container wrote there
                start_new_session=True,  # Ctrl-C is ours to handle
            )
        self.is_open = True
        return True

    def read(self, now_s: float) -> list[str]:
        """Return the lines that are there, without their ends; at the end it closes."""
        piece = os.read(self.fileno(), CHUNK)
        whole, end, self._rest = (self._rest + piece).rpartition(b"\n")
        if not piece or len(self._rest) > CHUNK:
            whole, end, self._rest = whole + end + self._rest, b"", b""
        lines = lines_of(whole) if whole or end else []
        self._last = next((line for line in reversed(lines) if line), self._last)
        if not piece:
            code = self._closed()
            self._open_at_s = now_s + START_AGAIN_S if self._command else None
            if self._command:
                self.notice = (
                    f"ended with code {code} ({self._last[:200]}); starts again in"
                    f" {START_AGAIN_S:g} s"
                )
        return lines

    def close(self) -> None:
        """End the command, with what it has started."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)
            self._closed()

    def _closed(self) -> int | None:
        """Return the exit code of the command, once it has ended."""
        process, self._process, self.is_open = self._process, None, False
        if process is None:
            return None
        with process:
            try:
                return process.wait(COMMAND_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                return process.wait()
