"""A worker's end: it asks its master for clients, carries out commands, and sends its history."""

# Locust's runners have no types.
# mypy: disable-error-code="no-untyped-call"

import itertools
import logging
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import AsyncResult

from loadtest import workers as messages
from loadtest.configs import ClientConfig, ClientKind, MemberConfig, ProducerConfig
from loadtest.control import Commands, carry_out
from loadtest.history import now_ms
from loadtest.timing import LEASE_ANSWER_S, WORKERS_EVERY_S

if TYPE_CHECKING:
    from locust.runners import WorkerRunner

_LOG = logging.getLogger(__name__)
MOST_LINES = 2_000
"""The most lines of history in one message."""


class LoadWorker:
    """What connects this worker with its master, over all its loads."""

    def __init__(
        self,
        runner: "WorkerRunner",
        folder: Path | None,
        end_load: Callable[[], object],
        crash: Callable[[], object],
    ) -> None:
        """Its histories are in `folder`, or in one for temporary files.

        `end_load` is called when the master ends the load; it calls `end`. `crash` is called when
        the master has dismissed this worker; it ends the process at once.
        """
        self._runner = runner
        self._folder = folder
        self._crash = crash
        self._numbers = itertools.count(1)
        self._asked: dict[int, AsyncResult[ClientConfig | None]] = {}
        self._commands: Commands = {}
        self._spool: Spool | None = None
        self._sent = 0
        runner.register_message(messages.LEASED, self._on_leased)
        runner.register_message(messages.COMMAND, self._on_command, concurrent=True)
        runner.register_message(messages.END, lambda **_: end_load(), concurrent=True)
        runner.register_message(messages.DISMISS, self._on_dismiss)

    def begin(self, commands: Commands) -> Path:
        """Begin a load; return the path of its history, which is sent as it grows.

        The master's `commands` are carried out from now on.
        """
        self._commands = commands
        self._spool = Spool(self._folder)
        self._sender = gevent.spawn(self._send_as_it_grows)
        return self._spool.path

    def end(self) -> None:
        """Send the rest of the history; its writers have ended."""
        if (spool := self._stop_sending()) is None:
            return
        self._send_history(spool)
        self._runner.send_message(messages.HISTORY_END, {"lines": self._sent})
        spool.close()

    def lease(self, kind: ClientKind) -> ClientConfig | None:
        """Ask for a client that no user has; None if there is none now."""
        number = next(self._numbers)
        answer = self._asked[number] = AsyncResult()
        self._runner.send_message(messages.LEASE, {"number": number, "kind": kind})
        try:  # one that comes later is returned
            config: ClientConfig | None = answer.wait(LEASE_ANSWER_S)
        except gevent.GreenletExit:
            if answer.ready() and (config := answer.get()) is not None:
                self.release(config.name)
            raise
        finally:
            del self._asked[number]
        return config

    def release(self, name: str) -> None:
        """Return a client."""
        self._runner.send_message(messages.RELEASE, {"name": name})

    def _on_leased(self, msg: Any, **_: object) -> None:
        config = client_of(msg.data["client"])
        answer = self._asked.get(msg.data["number"])
        if answer is not None:
            answer.set(config)
        elif config is not None:
            self.release(config.name)

    def _on_command(self, msg: Any, **_: object) -> None:
        reply = carry_out(msg.data["request"], self._commands)
        self._runner.send_message(messages.ANSWER, {"number": msg.data["number"], "reply": reply})

    def _on_dismiss(self, **_: object) -> None:
        if (spool := self._stop_sending()) is not None:
            spool.close()
        _LOG.error(
            "this worker is not the master's: it was not heard of for too long, or is of an earlier"
            " run; it ends now"
        )
        self._crash()

    def _stop_sending(self) -> "Spool | None":
        spool, self._spool = self._spool, None
        if spool is not None:
            self._sender.kill()
        return spool

    def _send_as_it_grows(self) -> None:
        while (spool := self._spool) is not None:
            gevent.sleep(WORKERS_EVERY_S)
            self._send_history(spool)

    def _send_history(self, spool: "Spool") -> None:
        while lines := spool.new():
            batch = {"first": self._sent + 1, "lines": lines, "sent_ms": now_ms()}
            self._runner.send_message(messages.HISTORY, batch)
            spool.taken(len(lines))
            self._sent += len(lines)


class Spool:
    """The history of a worker on its own disk, from where its lines go to the master.

    A new file in `folder`, or in one for temporary files; gone with a worker that ends by itself.
    """

    def __init__(self, folder: Path | None) -> None:
        number, name = tempfile.mkstemp(".jsonl", "history-of-worker-", folder)
        self.path = Path(name)
        self._file = os.fdopen(number, "rb")
        self._lines: list[str] = []
        self._begun = b""

    def new(self) -> list[str]:
        """Return the next whole lines; the same ones until `taken` is called."""
        if not self._lines:
            *whole, self._begun = (self._begun + self._file.read()).split(b"\n")
            self._lines = [line.decode() for line in whole]
        return self._lines[:MOST_LINES]

    def taken(self, lines: int) -> None:
        """Pass the next lines over: they are sent."""
        del self._lines[:lines]

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
        self.path.unlink(missing_ok=True)


def client_of(fields: Mapping[str, Any] | None) -> ClientConfig | None:
    """Return the client of a message."""
    if fields is None:
        return None
    if "rate" in fields:
        return ProducerConfig(**fields)
    lists = {name: tuple(fields[name]) for name in ("topics", "command")}
    return MemberConfig(**{**fields, **lists})
