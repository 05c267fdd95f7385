"""The members, controlled over the control channel of the load process."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Literal

from chaos.errors import ChaosError, LoadGoneError, WorkerGoneError
from chaos.timing import CONTROL_ANSWER_S
from scenarios.setup import SAME, Identity

Order = Literal[
    "stop", "start", "kill", "pause", "stop-polling", "unsubscribe", "resume", "duplicate",
    "end-duplicate"
]  # fmt: skip


class Members:
    """Speaks JSON lines to the load process on a port of 127.0.0.1; usable from any thread.

    Every call has a connection of its own, so a slow one delays no other. Every method raises
    LoadGoneError if the load process is gone, and ChaosError if it refuses or does not answer.
    """

    def __init__(self, port: int, token: str, timeout_s: float = CONTROL_ANSWER_S) -> None:
        self._address = ("127.0.0.1", port)
        self._token = token
        self._timeout_s = timeout_s

    def list(self) -> list[dict[str, Any]]:
        """Return a row for every member: name, group, kind, instance_id, state, member_id, …."""
        rows: list[dict[str, Any]] = self._ask("members")
        return rows

    def order(self, order: Order, member: str, identity: Identity = SAME) -> None:
        """Let the load do something with a member; it is done when this returns.

        | order | |
        |---|---|
        | `stop` | close its consumer |
        | `start` | give it a fresh one, unless it has one; it has not joined yet |
        | `kill` | end it as a crash does: its sockets are gone |
        | `pause` | freeze the client; refused for librdkafka in the process of the load |
        | `stop-polling` | its application polls no more, its client's own threads go on |
        | `unsubscribe` | its application wants no topics; refused for programs |
        | `resume` | undo these three, if it is up |
        | `duplicate` | start a process under its instance id, `DUPLICATE` behind its client.id |
        | `end-duplicate` | end that process |

        `identity` is for `start` alone.
        """
        self._ask(order, member=member, **identity)

    def restart_as(self, instance_ids: Mapping[str, str]) -> tuple[str, ...]:
        """Close members, then start each with an instance id: no id is used twice in between.

        Returns those that are lost with their worker. Raises WorkerGoneError if all are.
        """
        lost: dict[str, WorkerGoneError] = {}
        for order in ("stop", "start"):
            for member, instance_id in instance_ids.items():
                identity = {"instance_id": instance_id} if order == "start" else SAME
                try:
                    self.order(order, member, identity)
                except WorkerGoneError as error:
                    lost[member] = error
        if len(lost) == len(instance_ids):
            raise next(iter(lost.values()))
        return tuple(lost)

    def begin(self, experiment: str, bootstrap: str, history: str) -> None:
        """Let a load process that waits for its run join this cluster; the others are paths."""
        self._ask("begin", experiment=experiment, bootstrap=bootstrap, history=history)

    def finish(self, within_s: float) -> tuple[str, ...]:
        """Let the load process close all its members; they are closed when this returns.

        Returns what is missing of the load, in words: workers, and lines of their histories.
        """
        return tuple(self._ask("finish", within_s))

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
                connection.recv(1)  # returns when the connection ends
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

    def _ask(self, do: str, within_s: float | None = None, /, **fields: str | None) -> Any:
        within_s = within_s or self._timeout_s
        what = " ".join((do, *filter(None, fields.values())))
        try:
            with self._connect() as connection, connection.makefile("rwb") as lines:
                connection.settimeout(within_s)
                lines.write(_line({"id": 1, "do": do, **fields}))
                lines.flush()
                answer = lines.readline()
        except TimeoutError as error:
            raise ChaosError(
                f"the load process did not answer '{what}' within {within_s:g} s; its log shows why"
            ) from error
        except OSError as error:
            raise self._gone() from error
        if not answer.endswith(b"\n"):
            raise self._gone()
        reply = json.loads(answer)
        if reply.get("gone"):
            raise WorkerGoneError(reply["error"])
        if not reply["ok"]:
            raise ChaosError(f"the load process refused '{what}': {reply['error']}")
        return reply["result"]

    def _connect(self) -> socket.socket:
        try:
            connection = socket.create_connection(self._address, self._timeout_s)
            try:
                connection.sendall(_line({"token": self._token}))
            except OSError:
                connection.close()
                raise
        except OSError as error:
            raise self._gone() from error
        return connection

    def _gone(self) -> LoadGoneError:
        return LoadGoneError(
            f"no answer on the control channel (127.0.0.1:{self._address[1]}): the load"
            " process has ended, or the token is wrong; see its log"
        )


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"
