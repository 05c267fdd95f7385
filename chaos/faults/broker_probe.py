"""A broker seen from outside: its port, its last log line, and what other brokers say of it."""

import socket
import struct
import threading
from collections.abc import Sequence
from contextlib import closing, suppress

from chaos.cluster_view import ClusterView
from chaos.clusters import BrokerInfo
from chaos.clusters.releases import SHUTDOWN_LINES
from chaos.errors import ChaosError
from chaos.faults.interface import Finding
from chaos.faults.member_evidence import await_finding
from chaos.journal import now_ms

BACK_WITHIN_MS = 60_000
"""How long a broker may take to be in sync again; after SIGKILL its old lease expires first."""

_HOST = "127.0.0.1"
_CONNECT_S = 2.0
_ANSWER_S = 2.0
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""ApiVersions v0 with correlation id 1 and no client.id, after its length: any broker answers."""
_SHUTDOWN_LINES = tuple(line.encode() for line in SHUTDOWN_LINES)


class Question:
    """A pending request; a frozen broker does not answer it and keeps the connection open."""

    def __init__(self, port: int) -> None:
        """Send the request. Raises OSError if the port takes no connection."""
        self._sent_ms = now_ms()
        self._socket = socket.create_connection((_HOST, port), _CONNECT_S)
        try:
            self._socket.sendall(_API_VERSIONS)
        except OSError:
            self._socket.close()
            raise

    def reply(self, within_s: float = 0) -> bytes | None:
        """Return the first bytes of the response, b"" if the connection closed, None if none."""
        self._socket.settimeout(within_s)
        try:
            return self._socket.recv(4)
        except (BlockingIOError, TimeoutError):
            return None
        except OSError:
            return b""

    def age_ms(self) -> int:
        """Return how long ago it was sent."""
        return now_ms() - self._sent_ms

    def close(self) -> None:
        """Stop waiting."""
        self._socket.close()


class BrokerProbe:
    """What can be seen of one of the `brokers` from outside."""

    def __init__(self, broker: int, brokers: Sequence[BrokerInfo], view: ClusterView) -> None:
        self._broker = next(info for info in brokers if info.id == broker)
        self._brokers = brokers
        self._view = view
        self._read_to = 0

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"{_HOST}:{self._broker.port}"

    def ask(self) -> Question:
        """Send it a request. Raises OSError if it takes no connections."""
        return Question(self._broker.port)

    def answers(self) -> bool:
        """Return whether it answers a request: a broker that is frozen or down does not."""
        try:
            with closing(self.ask()) as question:
                return bool(question.reply(_ANSWER_S))
        except (ConnectionError, TimeoutError):
            return False

    def takes_connections(self) -> bool:
        """Return whether its port takes connections. Raises ChaosError if that is not clear."""
        return _takes_connections(self._broker.port)

    def note_log(self) -> None:
        """Remember the length of its group.log for `logged_shutdown`."""
        with suppress(FileNotFoundError):
            self._read_to = self._broker.group_log.stat().st_size

    def log_lines(self) -> int:
        """Return how many whole lines its group.log has."""
        try:
            with self._broker.group_log.open("rb") as log:
                return sum(line.endswith(b"\n") for line in log)
        except FileNotFoundError:
            return 0

    def logged_shutdown(self) -> bool:
        """Return whether its coordinator has logged a clean shutdown since `note_log`."""
        try:
            with self._broker.group_log.open("rb") as log:
                log.seek(self._read_to)
                return any(line.rstrip().endswith(_SHUTDOWN_LINES) for line in log)
        except FileNotFoundError:
            return False

    def await_back(self, stop: threading.Event) -> Finding:
        """Wait until it answers, and every broker that answers reports it in sync."""
        return await_finding(
            self._look_for_it,
            BACK_WITHIN_MS,
            f"{self.address} did not answer with broker {self._broker.id} in sync",
            stop,
        )

    def _look_for_it(self) -> Finding | None:
        in_sync = {}
        for info in self._brokers:
            if not _takes_connections(info.port, TimeoutError):  # paused: its backlog may be full
                continue  # the view would wait for it
            with suppress(ChaosError):
                in_sync[info.id] = self._broker.id in self._view.in_sync(info.port)
        if not in_sync.get(self._broker.id) or not all(in_sync.values()):
            return None
        observers = ", ".join(map(str, in_sync))
        return Finding(True, f"{self.address} answers, in sync according to broker {observers}")


def _takes_connections(port: int, no: type[OSError] = ConnectionError) -> bool:
    """Return whether a port takes connections; `no` is another error that counts as a refusal.

    Raises ChaosError for any other error.
    """
    try:
        socket.create_connection((_HOST, port), _CONNECT_S).close()
    except (ConnectionError, no):
        return False
    except OSError as error:
        raise ChaosError(f"{_HOST}:{port}: cannot be probed ({error})") from error
    return True
