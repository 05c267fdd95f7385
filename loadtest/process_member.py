"""What members in processes of their own share: their end, and signals that stop them."""

import fcntl
import os
import select
import signal
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from math import inf
from typing import IO, Any

import gevent
from gevent import monkey, subprocess
from gevent.event import Event

from loadtest.base_member import BaseMember, State
from loadtest.errors import LoadtestError
from loadtest.history import now_ms
from loadtest.process_group import DEAD, STOPPED, is_within

CLOSE_S = 15.0
"""How long a clean close may take, of all processes of a member."""
READ_S = 5.0
"""How long what a member printed is read after its end, while more comes."""
_EVERY_S = 0.01
FREEZE_S = 10.0
"""How long a signal may take to reach all threads."""
_CRASHES = (-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGABRT)
"""The exit codes of a process that does not close, whichever program it is."""
_HELD_BYTES, _FREE_BYTES = 4_096, 65_536
"""How much a pipe takes of what nobody reads: the least that Linux allows, and its default."""


class ProcessMember(BaseMember):
    """A member in a process that leads a session of its own, so that a signal reaches all of it.

    One greenlet at a time uses it. A subclass starts the process, and reads what it prints in
    `_reader`.
    """

    _process: subprocess.Popen[bytes] | None = None
    _reader: gevent.Greenlet
    _ended_ms = inf
    """When its last process ended."""
    _held: Event | None = None
    """Set once what it prints is read again; None while it is read."""

    @property
    def is_up(self) -> bool:
        """Whether its process is known to run."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        """The id of its process, which is that of its process group, too."""
        return None if self._process is None else int(self._process.pid)

    @abstractmethod
    def open(self) -> None:
        """Start its process, if there is none. Raises LoadtestError if it cannot be started."""

    def stop_polling(self) -> None:
        """Let the application poll no more, while the client's other threads go on.

        Nobody reads what it prints: the thread that prints what it polled blocks once the pipe is
        full, some polls later. Raises LoadtestError if it is not up.
        """
        if self._process is None:
            raise LoadtestError(f"{self.config.name!r} is {self.state} and polls nothing")
        self._held = self._held or Event()
        self._set_pipe(_HELD_BYTES)

    def _poll_again(self) -> None:
        """Let the application poll, if it does not."""
        held, self._held = self._held, None
        if held is not None:
            self._set_pipe(_FREE_BYTES)
            held.set()

    def _set_pipe(self, size: int) -> None:
        if self._process is not None:
            with suppress(OSError, ValueError):  # more than that may be in it
                fcntl.fcntl(self._process.stdout.fileno(), fcntl.F_SETPIPE_SZ, size)

    def _unless_held(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines that the process prints, and read none while they are held."""
        for line in lines:
            if self._held is not None:
                self._held.wait()
            yield line

    def pause(self) -> None:
        """Freeze its processes (SIGSTOP): no thread of the client runs when this returns.

        Raises LoadtestError if there is none, or if one still runs after FREEZE_S.
        """
        self._signal(signal.SIGSTOP)
        if not is_within(self.pid or 0, STOPPED, FREEZE_S):
            raise LoadtestError(
                f"{self.config.name!r}: process {self.pid} still runs {FREEZE_S:.0f} s after"
                " SIGSTOP; the machine may be overloaded"
            )

    def resume(self) -> None:
        """Let its processes go on and poll, if it is up."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGCONT)
            self._poll_again()

    def poll_once(self) -> None:
        """Handle the end of its process, as when it is fenced."""
        if self._process is None or (code := self._process.poll()) is None:
            return
        self._end("killed", "failed")
        why = f"its process has ended by itself, exit code {code}; {self._last_words()}"
        self.fail(why, at_ms=self._ended_ms, exit_code=code)

    def close(self) -> None:
        """Close it cleanly, if it is up: a dynamic member leaves, a static one does not."""
        self.poll_once()  # it may have ended by itself
        if self._process is None:
            self.state = "stopped"
            return
        self._write_event("closing")
        began = time.perf_counter()
        code = self._terminate()
        took_ms = round((time.perf_counter() - began) * 1000, 1)
        if code is None:
            self._end("killed", "stopped")
        elif code in _CRASHES:
            self._write_crash(code)
            self._end("killed", "stopped")
        else:
            self._end("closed", "stopped", took_ms=took_ms)

    def kill(self) -> None:
        """Kill its process. Raises LoadtestError if it is not up."""
        if self._process is None:
            raise LoadtestError(
                f"{self.config.name!r} is {self.state} and has no process to kill; start it first"
            )
        self._end("killed", "killed")

    def _terminate(self) -> int | None:
        """Send SIGTERM, and wait; return its exit code, or None if some of it still runs.

        A shell ends before the program that it started.
        """
        assert self._process is not None, "callers check"
        self.resume()
        with suppress(ProcessLookupError):  # all of them: a shell hands no signal on
            os.killpg(self._process.pid, signal.SIGTERM)
        if not is_within(self._process.pid, DEAD, CLOSE_S):
            return None
        return int(self._process.wait())

    def _last_words(self) -> str:
        return "see locust.log"  # it has the standard error of the load

    def _write_crash(self, code: int) -> None:
        self._write_event("error", error=f"its process crashed as it closed, exit code {code}")
        self._report("error", None, error=f"exit code {code}")

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to all its processes. Raises LoadtestError if there is none."""
        try:
            if self._process is not None:
                os.killpg(self._process.pid, number)
                return
        except ProcessLookupError:
            pass
        raise LoadtestError(f"{self.config.name!r} is {self.state} and has no process to stop")

    def _end(self, event: str | None, state: State, **more: Any) -> None:
        """Kill the process if it still runs, and write the event with the partitions it owned."""
        assert self._process is not None, "callers check"
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        is_within(self._process.pid, DEAD, CLOSE_S)  # others of its group may end later
        self._ended_ms = now_ms()
        self._poll_again()
        self._read_rest()
        self._process = None
        self.state = state
        partitions = self._disown()
        if event is not None:
            self._write_event(event, at_ms=self._ended_ms, partitions=partitions, **more)

    def _read_rest(self) -> None:
        """Read what is left of what it printed, and stop reading.

        A process that it started in a session of its own may hold the pipe open for ever.
        """
        assert self._process is not None, "callers check"
        with gevent.Timeout(READ_S, False):
            self._reader.join(_EVERY_S)
            while not self._reader.ready() and _has_more(self._process.stdout):
                self._reader.join(_EVERY_S)
        self._reader.kill()


def _has_more(pipe: IO[bytes]) -> bool:
    """Whether a pipe has something to read, or its end."""
    asked = monkey.get_original("select", "poll")()  # any number of a file; it does not wait
    with suppress(OSError, ValueError):
        asked.register(pipe.fileno(), select.POLLIN)
        return bool(asked.poll(0))
    return False
