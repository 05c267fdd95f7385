"""The control channel: a loopback server for the runner's commands to members.

It accepts connections from this machine that begin with the token of the run: then a line with a
JSON object for each request, and for each reply. Every request has a greenlet of its own, since a
`stop` may take seconds and must not delay the next request.
"""

import hmac
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from errno import EISDIR
from functools import partial
from pathlib import Path
from typing import Any

import gevent
from gevent import socket
from gevent.lock import BoundedSemaphore
from gevent.server import StreamServer

from loadtest.errors import LoadtestError, WorkerGoneError

LONGEST_LINE = 65_536

Command = Callable[[dict[str, Any]], Any]
"""Gets the whole request and returns a JSON value."""
Commands = Mapping[str, Command]
"""Commands by name."""


class ControlServer:
    """Serves `commands` on a free port of 127.0.0.1 from its construction on."""

    def __init__(self, token: str, commands: Commands) -> None:
        self._token = token
        self._commands = commands
        self._server = StreamServer(("127.0.0.1", 0), self._serve)
        self._server.start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_port)

    def announcement(self, path: Path) -> Callable[[], object]:
        """Return what writes `{"port": N}` to a file, atomically, once it is called.

        Raises LoadtestError at once if that cannot be done.
        """
        try:
            if path.is_dir():
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
            draft = path.with_name(path.name + ".new")
            draft.write_text(f'{{"port": {self.port}}}\n')
        except OSError as error:
            raise LoadtestError(
                f"--control-file {path}: cannot be written ({error.strerror});"
                " name a file in a folder that exists"
            ) from error
        return partial(draft.replace, path)

    def _serve(self, connection: socket.socket, _address: object) -> None:
        with connection.makefile("rb") as lines:
            if not has_token(lines.readline(LONGEST_LINE), self._token):
                return
            whole_lines = BoundedSemaphore()
            while line := lines.readline(LONGEST_LINE):
                gevent.spawn(self._reply, connection, whole_lines, line)

    def _reply(self, connection: socket.socket, whole_lines: BoundedSemaphore, line: bytes) -> None:
        try:
            reply = answer(line, self._commands)
            with whole_lines, suppress(OSError):  # a client may go; its command is carried out
                connection.sendall(reply)
        except KeyboardInterrupt as interrupt:  # for the main greenlet; gevent would print it too
            gevent.get_hub().handle_system_error(KeyboardInterrupt, interrupt)


def has_token(line: bytes, token: str) -> bool:
    """Return whether the first line of a connection has the right token."""
    try:
        offered = json.loads(line)["token"]
    except (ValueError, TypeError, KeyError):
        return False
    return isinstance(offered, str) and hmac.compare_digest(offered.encode(), token.encode())


def answer(line: bytes, commands: Commands) -> bytes:
    """Carry a request line out and return the reply line; a refusal is a reply too."""
    problem = 'a request is an object with "id" and "do"'
    try:
        request = json.loads(line)
    except ValueError as error:
        request, problem = None, f"not a line of JSON ({error})"
    if isinstance(request, dict) and isinstance(request.get("do"), str):
        reply = {"id": request.get("id"), **carry_out(request, commands)}
    else:
        reply = {"id": None, "ok": False, "error": problem}
    return json.dumps(reply).encode() + b"\n"


def carry_out(request: dict[str, Any], commands: Commands) -> dict[str, Any]:
    """Carry a request out; return its `result`, or the `error`.

    `gone` says that the member is gone with the worker that ran it.
    """
    if (command := commands.get(request["do"])) is None:
        known = ", ".join(sorted(commands))
        return {"ok": False, "error": f"cannot do {request['do']!r}; known: {known}"}
    try:
        return {"ok": True, "result": command(request)}
    except LoadtestError as error:
        gone = {"gone": True} if isinstance(error, WorkerGoneError) else {}
        return {"ok": False, "error": str(error), **gone}


def member_of(request: dict[str, Any]) -> str:
    """Return the member name in a request. Raises LoadtestError if there is none."""
    name = request.get("member")
    if not isinstance(name, str):
        raise LoadtestError(f'{request.get("do")} needs the name of a member: "member"')
    return name


def instance_id_of(request: dict[str, Any]) -> str | None:
    """Return the instance id in a request, or None for a dynamic member.

    Raises LoadtestError for any other value.
    """
    given = request["instance_id"]
    if given is None or (isinstance(given, str) and given):
        return given
    raise LoadtestError(
        f'{request.get("do")} takes "instance_id" as a name, or as null for a dynamic member'
    )
