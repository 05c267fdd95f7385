"""A group member with librdkafka in a process of its own, which can be frozen for itself."""

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import gevent
from gevent import subprocess

from loadtest.base_member import State
from loadtest.client_configs import MemberConfig
from loadtest.dies_with_parent import dying_with_parent
from loadtest.errors import LoadtestError
from loadtest.history import History
from loadtest.process_member import ProcessMember

_PACKAGES = Path(__file__).parents[1]
_ENDED: tuple[State, ...] = ("stopped", "fenced", "failed")
"""The states in which the program has written the end of its consumer."""


class LibrdkafkaProcess(ProcessMember):
    """A `loadtest.member_program`, which writes its own history; its rows are its state."""

    _began = 0.0
    _joins_before = 0

    def open(self) -> None:
        """Start its process, if there is none. Raises LoadtestError if it cannot be started."""
        if self._process is not None:
            return
        self._process = launch(self.config, self._bootstrap, self._history)
        self.state, self._began, self._joins_before = "starting", time.perf_counter(), self.joins
        self._reader = gevent.spawn(self._read, self._process.stdout)

    def stop_polling(self) -> None:
        """Let the program poll no more: librdkafka's own threads go on."""
        self._tell(polls=False)

    def _poll_again(self) -> None:
        with suppress(LoadtestError):
            self._tell(polls=True)

    def _tell(self, *, polls: bool) -> None:
        try:
            if self._process is not None:
                self._process.stdin.write(json.dumps(polls).encode() + b"\n")
                self._process.stdin.flush()
                return
        except OSError:
            pass
        raise LoadtestError(f"{self.config.name!r} is {self.state} and has no process to slow down")

    def poll_once(self) -> None:
        """Handle the end of its consumer, as when it is fenced; its program goes on."""
        if self._process is not None and self.state in ("fenced", "failed"):
            self._end(None, self.state)
        super().poll_once()

    def close(self) -> None:
        """Close it cleanly, if it is up; it writes its own history."""
        self.poll_once()  # it may have ended by itself
        if self._process is None:
            self.state = "stopped"
            return
        code = self._terminate()
        self._read_rest()
        if self.state in _ENDED or code == -signal.SIGTERM:  # that ends it before it has a consumer
            self._end(None, "stopped")
            return
        if code is not None:
            self._write_crash(code)
        self._end("killed", "stopped")

    def _read(self, lines: IO[bytes]) -> None:
        with lines:
            for line in lines:
                if line.endswith(b"\n"):
                    self._take(json.loads(line))

    def _take(self, row: dict[str, Any]) -> None:
        self.state, self.member_id = row["state"], row["member_id"]
        named = (name.rpartition("-") for name in row["partitions"])
        self._partitions = {(topic, int(number)) for topic, _, number in named}
        self.joins = self._joins_before + row["joins"]
        if self._began and self.state == "joined":
            self._report("join", (time.perf_counter() - self._began) * 1000)
            self._began = 0.0


def launch(config: MemberConfig, bootstrap: str, history: History) -> subprocess.Popen[bytes]:
    """Start a `loadtest.member_program`. Raises LoadtestError if it cannot be started."""
    order = {
        "bootstrap": bootstrap,
        "history": str(history.path) if history.path else None,
        "member": asdict(config),
    }
    paths = [str(_PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        process = subprocess.Popen(
            [*dying_with_parent(signal.SIGKILL), "-P", "-m", "loadtest.member_program"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # the load handles Ctrl-C, and ends this process too
        )
    except OSError as error:
        raise LoadtestError(f"{config.name!r} cannot be started: {error}") from error
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
    return process
