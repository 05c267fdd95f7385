"""Starts, watches and kills the duplicate process of a member."""

import json
import signal
from functools import partial
from typing import Any

import gevent
from gevent import subprocess
from gevent.event import Event
from gevent.lock import BoundedSemaphore

from loadtest.client_configs import MemberConfig
from loadtest.errors import LoadtestError
from loadtest.history import History
from loadtest.librdkafka_process import launch

START_S = 20.0
"""How long the process may take to start its consumer; it needs a fraction of a second."""


class DuplicateProcess:
    """The `loadtest.member_program` of one member; at most one runs at a time."""

    def __init__(self, bootstrap: str, history: History) -> None:
        self._bootstrap = bootstrap
        self._history = history
        self._one_at_a_time = BoundedSemaphore()
        self._process: subprocess.Popen[bytes] | None = None
        self._row: dict[str, Any] = {}

    def start(self, original: MemberConfig) -> dict[str, Any]:
        """Start a process with the identity of `original`; return its `client_id` and `pid`.

        Raises LoadtestError if one runs already, if it cannot be started, or if the member is
        dynamic.
        """
        config = original.as_duplicate()
        with self._one_at_a_time:
            if self._process is not None:
                raise LoadtestError(
                    f"{original.name!r} has a duplicate already, process {self._process.pid};"
                    " end that first (end-duplicate)"
                )
            return {"client_id": config.name, "pid": self._launch(config)}

    def end(self) -> None:
        """Kill the process, if there is one, and wait until it is gone.

        It may be called again if the calling greenlet was killed meanwhile.
        """
        with self._one_at_a_time:
            self._end()

    def _launch(self, config: MemberConfig) -> int:
        """Start the process, wait until it has a consumer, and return its id."""
        process = launch(config, self._bootstrap, self._history)
        self._process = process
        self._config, self._row = config, {}
        is_up = Event()
        self._reader = gevent.spawn(self._read_rows, process.stdout, is_up)
        is_up.wait(START_S)
        if self._row.get("state", "failed") == "failed":
            self._end()
            raise LoadtestError(
                f"{config.name!r} did not come up; see the history and the load's own log"
            )
        return int(process.pid)

    def _read_rows(self, lines: Any, is_up: Event) -> None:
        with lines:
            for line in lines:
                if line.endswith(b"\n"):
                    self._row = json.loads(line)
                    is_up.set()
        is_up.set()

    def _end(self) -> None:
        if (process := self._process) is None:
            return
        process.kill()
        code = process.wait()
        process.stdin.close()
        self._reader.join()
        config = self._config
        write = partial(
            self._history.write, member=config.name, group=config.group, kind=config.kind
        )
        if code != -signal.SIGKILL:
            write("error", error=f"its process had already ended, exit code {code}")
        write("killed", partitions=self._row.get("partitions", []))
        self._process = None
