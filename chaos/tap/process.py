"""The tap as a child process, and the commands that the runner gives it."""

import itertools
import json
import os
import secrets
import selectors
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import psutil

from chaos.errors import ChaosError, GoneError
from chaos.tap.rules import Rule
from chaos.tap.settings import TapSettings
from chaos.timing import SAME_START_MS, TAP_ANSWER_S, TAP_END_S, TAP_GONE_S, TAP_START_S
from chaos.waiting import until

LOG = "tap.log"


class TapGoneError(GoneError):
    """The tap's process has ended, and with it every rule and connection through it."""

    left = "the tap has ended, and its rules with it"


@dataclass(frozen=True, slots=True)
class RunningTap:
    """The tap that runs; usable from any thread.

    Every command raises TapGoneError if the tap's process has ended, and ChaosError if it runs and
    does not answer: what was asked for may have been done then, or may yet be.

    `listeners` are the addresses for clients by broker id, and `bootstrap` all of them. `folder`
    has a folder with the `group.log` of each broker. `process_id` and `started_at_ms` are which
    process it is.
    """

    listeners: dict[int, str]
    folder: Path
    process_id: int
    started_at_ms: int
    _control: tuple[int, str]
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers for clients: `host:port` of every listener, comma-separated."""
        return ",".join(self.listeners.values())

    def new_id(self) -> str:
        """Return an id for a rule that no other has."""
        return f"r{next(self._numbers)}"

    def add(self, name: str, rule: Rule) -> None:
        """Put a rule in force under an id; it is when this returns."""
        self._ask({"do": "add", "name": name, "rule": asdict(rule)})

    def remove(self, rule: str) -> int:
        """End a rule by its id; return how many requests it has hit, 0 if it is not in force.

        No `add` of that id that is still under way puts it in force afterwards.
        """
        hits: int = self._ask({"do": "remove", "rule": rule})
        return hits

    def hits(self) -> dict[str, int]:
        """Return how many requests each rule in force has hit, by its id."""
        hits: dict[str, int] = self._ask({"do": "hits"})
        return hits

    def _ask(self, request: dict[str, Any]) -> Any:
        port, token = self._control
        try:
            with socket.create_connection(("127.0.0.1", port), TAP_ANSWER_S) as connection:
                connection.sendall(f"{token}\n{json.dumps(request)}\n".encode())
                with connection.makefile("rb") as lines:
                    line = lines.readline()
        except OSError as error:
            raise self._silent(f"the tap does not answer ({error}); see {LOG}") from error
        if not line.endswith(b"\n"):
            raise self._silent(f"the tap ended the connection; see {LOG}")
        reply = json.loads(line)
        if not reply["ok"]:
            raise ChaosError(f"the tap refused {request['do']}: {reply['error']}")
        return reply["result"]

    def _silent(self, what: str) -> ChaosError:
        gone = has_ended(self.process_id, self.started_at_ms, TAP_GONE_S)
        return TapGoneError(f"the tap has ended; see {LOG}") if gone else ChaosError(what)


def has_ended(process_id: int, started_at_ms: int, within_s: float) -> bool:
    """Wait until the process with an id that started at a time has ended; tell whether it has.

    One that has ended and is not waited for by its parent yet has ended.
    """
    return until(lambda: not _runs(process_id, started_at_ms), within_s)


def _runs(process_id: int, started_at_ms: int) -> bool:
    try:
        process = psutil.Process(process_id)
        if abs(process.create_time() * 1000 - started_at_ms) >= SAME_START_MS:
            return False
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@contextmanager
def running(settings: TapSettings) -> Iterator[RunningTap]:
    """Run the tap inside the block. Raises ChaosError if it does not start, or ended early."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    log = settings.folder / LOG
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "chaos.tap"],
            # it can import what we can
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            start_new_session=True,  # a signal to the runner's process group must not end it
        )
    try:
        tap = _started(process, settings, log)
        yield tap
        if (code := process.poll()) is not None:
            raise TapGoneError(f"the tap ended early (exit code {code}); see {log}")
    finally:
        _end(process)


def _started(process: subprocess.Popen[bytes], settings: TapSettings, log: Path) -> RunningTap:
    assert process.stdin is not None
    assert process.stdout is not None
    token = secrets.token_hex(16)
    start = {"token": token, "settings": msgspec.to_builtins(settings, enc_hook=str)}
    line = b""
    try:
        process.stdin.write(json.dumps(start).encode() + b"\n")
        process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if selector.select(TAP_START_S):
                line = process.stdout.readline()
    except OSError:
        pass  # it has ended, and its log says why
    if not line.endswith(b"\n"):
        lines = log.read_text(errors="replace").strip().splitlines()
        why = lines[-1] if lines else f"not ready within {TAP_START_S:g} s"
        raise ChaosError(f"the tap did not start: {why}; see {log}")
    ready = json.loads(line)
    return RunningTap(
        listeners={int(node): address for node, address in ready["listeners"].items()},
        folder=settings.folder,
        process_id=process.pid,
        started_at_ms=round(psutil.Process(process.pid).create_time() * 1000),
        _control=(ready["control"], token),
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process by the end of its input, which it also sees if this process is killed."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.close()
        process.wait(TAP_END_S)
    except (OSError, subprocess.TimeoutExpired):
        process.kill()
        process.wait()
    process.stdout.close()
