"""The control channel: a loopback server for the runner's commands to members.

It accepts connections from this machine that begin with the token of the run. Every request has a
greenlet of its own, since a `stop` may take seconds and must not delay the next request.
"""

import os
from collections.abc import Callable
from errno import EISDIR
from functools import partial
from pathlib import Path

import gevent
from gevent import socket
from gevent.lock import BoundedSemaphore
from gevent.server import StreamServer

from loadtest.control_protocol import Commands, answer, has_token
from loadtest.errors import LoadtestError

LONGEST_LINE = 65_536


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
        reply = answer(line, self._commands)
        with whole_lines:
            try:
                connection.sendall(reply)
            except OSError:
                return  # the client has gone; the command is carried out all the same
