"""The members, as the load process lets us order them about over its control channel."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from chaos.errors import ChaosError, LoadGoneError

TIMEOUT_S = 30.0
"""Closing a consumer whose JoinGroup is pending takes librdkafka about 5 s."""


class Members:
    """Speaks JSON lines to the load process on a port of 127.0.0.1; usable from any thread.

    Every call has a connection of its own, so a slow one holds up nobody. Every method raises
    LoadGoneError if the load process is not there, and ChaosError if it refuses or does not answer.
    """

    def __init__(self, port: int, token: str, timeout_s: float = TIMEOUT_S) -> None:
        self._address = ("127.0.0.1", port)
        self._token = token
        self._timeout_s = timeout_s

    def list(self) -> list[dict[str, Any]]:
        """Return a row for every member: name, group, kind, instance_id, state, member_id, …."""
        rows: list[dict[str, Any]] = self._ask("members")
        return rows

    def stop(self, member: str) -> None:
        """Close a member's consumer; it is closed when this returns."""
        self._ask("stop", member=member)

    def start(self, member: str) -> None:
        """Give a member a fresh consumer, unless it has one; returns before it has joined."""
        self._ask("start", member=member)

    def quit(self) -> None:
        """Let the load process stop all users and end."""
        self._ask("quit")

    @contextmanager
    def watch(self, gone: Callable[[LoadGoneError], object]) -> Iterator[None]:
        """Inside the block, call `gone` (in another thread) as soon as the load process ends."""
        connection = self._connect()
        over = threading.Event()

        def wait_for_the_end() -> None:
            with suppress(OSError):
                connection.recv(1)  # nothing is asked here, so nothing but the end can come
            if not over.is_set():
                gone(self._gone())

        connection.settimeout(None)
        watcher = threading.Thread(target=wait_for_the_end, name="load process watcher")
        watcher.start()
        try:
            yield
        finally:
            over.set()
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            watcher.join()
            connection.close()

    def _ask(self, do: str, **fields: str) -> Any:
        what = " ".join((do, *fields.values()))
        try:
            with self._connect() as connection, connection.makefile("rwb") as lines:
                lines.write(_line({"id": 1, "do": do, **fields}))
                lines.flush()
                answer = lines.readline()
        except TimeoutError as error:
            raise ChaosError(
                f"the load process did not answer '{what}' within {self._timeout_s:g} s;"
                " its log tells what holds it up"
            ) from error
        except OSError as error:
            raise self._gone() from error
        if not answer.endswith(b"\n"):
            raise self._gone()
        reply = json.loads(answer)
        if not reply["ok"]:
            raise ChaosError(f"the load process refused '{what}': {reply['error']}")
        return reply["result"]

    def _connect(self) -> socket.socket:
        try:
            connection = socket.create_connection(self._address, self._timeout_s)
            connection.sendall(_line({"token": self._token}))
        except OSError as error:
            raise self._gone() from error
        return connection

    def _gone(self) -> LoadGoneError:
        return LoadGoneError(
            f"nobody answers on the control channel (127.0.0.1:{self._address[1]}): the load"
            " process has ended, or the token is not its; its log tells more"
        )


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"
