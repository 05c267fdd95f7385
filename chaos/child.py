"""A process of ours that takes commands, a JSON line each, on the socket that is its stdin.

It answers each with a line: whether it is `ok`, and the `result` or the `error`. It ends when the
socket does, and so with this process, even if that is killed.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from chaos.errors import ChaosError


def launch(
    module: str, output: Path, *, nice: int = 0
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a module as a process, as nice as that; return it, and our end of its stdin."""
    ours, its = socket.socketpair()
    with output.open("ab") as log, its:
        process = subprocess.Popen(
            ["nice", f"-n{nice}", sys.executable, "-P", "-m", module],
            # it can import what we can
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=its.fileno(),
            stdout=log,
            stderr=log,
            # A signal to the runner's process group must not end it. Linux shares CPUs among
            # sessions before it regards niceness (sched_autogroup).
            start_new_session=not nice,
            process_group=0 if nice else None,
        )
    return process, ours


class Child:
    """Commands to a process, which are carried out in the order in which they were given.

    It may be used from any thread. `name` and `log` are for people; `gone` is what is raised once
    the process has ended, or has been killed since it did not answer in time, and `refused` where
    it answers with an error.
    """

    name: ClassVar[str]
    log: ClassVar[str]
    gone: ClassVar[type[ChaosError]]
    refused: ClassVar[type[ChaosError]] = ChaosError

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self._process, self._connection = process, connection
        self.process_id = process.pid
        self._one_at_a_time = threading.Lock()

    @property
    def exit_status(self) -> int | None:
        """What it ended with; None while it runs."""
        return self._process.poll()

    def ask(self, within_s: float, **request: Any) -> Any:
        """Return the result. Raises `gone` and `refused`."""
        deadline = time.monotonic() + within_s
        try:
            reply = self._reply(request, deadline)
        except TimeoutError as error:
            self._kill()  # else it could act on after the journal says that it ended
            raise self.gone(
                f"{self.name} did not answer within {within_s:g} s and was killed; see {self.log}"
            ) from error
        except OSError as error:
            raise self.gone(f"{self.name} has ended ({error}); see {self.log}") from error
        if not reply["ok"]:
            raise self.refused(f"{self.name} refused {request['do']}: {reply['error']}")
        return reply["result"]

    def _reply(self, request: Mapping[str, Any], deadline: float) -> Any:
        if not self._one_at_a_time.acquire(timeout=_left_s(deadline)):
            raise TimeoutError
        try:
            self._connection.settimeout(_left_s(deadline))
            self._connection.sendall(json.dumps(request).encode() + b"\n")
            line = b""
            while not line.endswith(b"\n"):
                self._connection.settimeout(_left_s(deadline))
                if not (read := self._connection.recv(1 << 16)):
                    raise ConnectionError("it closed its connection")
                line += read
        finally:
            self._one_at_a_time.release()
        return json.loads(line)

    def end(self, within_s: float) -> None:
        """End the process by the end of its input; kill it if it runs on."""
        with suppress(OSError):  # it has ended
            self._connection.shutdown(socket.SHUT_WR)
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self._kill()
        with self._one_at_a_time:  # a thread that waits for an answer learns that it has ended
            self._connection.close()

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _left_s(deadline: float) -> float:
    """Return how long it is until a deadline. Raises TimeoutError if it is over."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s
