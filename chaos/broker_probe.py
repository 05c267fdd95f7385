"""A broker seen from outside: its port, the end of its logs, and what other brokers say of it."""

import errno
import ipaddress
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress

from chaos import timing
from chaos.cluster_view import ClusterView
from chaos.clusters import BrokerInfo
from chaos.errors import ChaosError
from chaos.witness import Witness
from scenarios.client_properties import Properties, uses_tls
from scenarios.durations import now_ms
from scenarios.faults.base import Finding, await_finding
from scenarios.timing import BROKER_BACK_MS

_SERIAL, _SERIAL_BYTES = 1, 4
_HEAD = struct.Struct(">ii")
_OURS = {
    errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL, errno.ENETDOWN,
    errno.ENETUNREACH, socket.EAI_AGAIN,
}  # fmt: skip
"""Errors of this machine, its network or its resolver, not of the broker."""


class Question:
    """A pending ApiVersions v0, which any broker answers, in the name of a client or of none.

    A frozen broker does not answer it and keeps the connection open.
    """

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str | None = None,
        wrap: Callable[[socket.socket], socket.socket] | None = None,
    ) -> None:
        """Send the request, over TLS if `wrap` adds it. Raises OSError if nothing listens."""
        name = (client_id or "").encode()
        size = -1 if client_id is None else len(name)
        # length (10 without the name), API key, version, correlation id, length of the name
        question = struct.pack(">ihhih", 10 + len(name), 18, 0, _SERIAL, size) + name
        self._sent_ms = now_ms()
        self._socket = socket.create_connection((host, port), timing.PROBE_CONNECT_S)
        try:
            if wrap is not None:
                self._socket = wrap(self._socket)
            self._socket.sendall(question)
        except OSError:
            self._socket.close()
            raise

    def reply(self, within_s: float = 0, size: int = 4) -> bytes | None:
        """Return the next bytes of the response, b"" if the connection closed, None if none."""
        self._socket.settimeout(within_s)
        try:
            return self._socket.recv(size)
        except (BlockingIOError, TimeoutError):
            return None
        except OSError:
            return b""

    def is_answered(self, within_s: float) -> bool:
        """Return whether the response comes in time: its length, and the correlation id."""
        deadline, came = time.monotonic() + within_s, b""
        while len(came) < _HEAD.size:
            left_s = max(0.0, deadline - time.monotonic())
            if not (more := self.reply(left_s, _HEAD.size - len(came))):
                return False
            came += more
        size, serial = _HEAD.unpack(came)
        return bool(size >= _SERIAL_BYTES and serial == _SERIAL)

    def age_ms(self) -> int:
        """Return how long ago it was sent."""
        return now_ms() - self._sent_ms

    def close(self) -> None:
        """Stop waiting."""
        self._socket.close()


class BrokerProbe:
    """What can be seen of one of the `brokers` from outside."""

    def __init__(
        self, broker: int, brokers: Sequence[BrokerInfo], view: ClusterView, witness: Witness
    ) -> None:
        self._broker = next(info for info in brokers if info.id == broker)
        self._brokers = brokers
        self._view = view
        self._witness = witness
        self._line = 0
        self._server_log_bytes = 0

    @property
    def address(self) -> str:
        """The address for clients."""
        return self._broker.address

    def ask(self) -> Question:
        """Send it a request, without TLS. Raises ChaosError if it takes no connections.

        A frozen broker answers nothing; any other answers this, or ends the connection.
        """
        try:
            return Question(self._broker.host, self._broker.port)
        except OSError as error:
            raise ChaosError(f"{self.address}: takes no connections ({error})") from error

    def answers(self) -> bool:
        """Return whether it answers a request: a broker that is frozen or down does not.

        Any broker answers ApiVersions, before a login, too; over TLS only if the handshake ends.
        """
        try:
            at, security = self._broker, self._broker.security
            question = Question(at.host, at.port, wrap=_tls(security))
        except OSError:
            return False
        with closing(question):
            return question.is_answered(timing.PROBE_ANSWER_S)

    def door(self) -> tuple[bool, str]:
        """Return whether its port takes connections, and the same in words.

        A broker of this machine that is down refuses them. That of another may be gone with its
        machine, its address or its name: then nothing answers at all. Raises ChaosError if it is
        not clear.
        """
        error = _refusal(self._broker)
        if error is None:
            return True, f"{self.address} takes connections"
        if isinstance(error, ConnectionRefusedError):
            return False, f"{self.address} takes no connections"
        if not isinstance(error, ConnectionError) and _is_here(self._broker.host):
            raise _unclear(self._broker, error)
        return False, f"{self.address} takes no connections ({error})"

    def await_end(self, within_s: float, stop: threading.Event) -> None:
        """Wait until its port takes no connections, time is up or `stop` is set."""
        deadline = time.monotonic() + within_s
        while self.door()[0] and time.monotonic() < deadline:
            if stop.wait(timing.POLL_S):
                return

    def note_logs(self) -> None:
        """Remember how long its logs are, for `has_stopped` and `has_logged`."""
        self._line = self.log_lines()
        with suppress(FileNotFoundError):
            self._server_log_bytes = self._broker.server_log.stat().st_size

    def log_lines(self) -> int:
        """Return how many whole lines its group.log has."""
        self._witness.poll()
        return self._witness.lines(self._broker.id)

    def has_stopped(self) -> bool:
        """Return whether its coordinator has logged a clean shutdown since `note_logs`."""
        self._witness.poll()
        return self._witness.last_shutdown(self._broker.id) > self._line

    def has_logged(self, text: str) -> bool:
        """Return whether its server.log has a text since `note_logs`."""
        try:
            with self._broker.server_log.open("rb") as log:
                log.seek(self._server_log_bytes)
                return text.encode() in log.read()
        except FileNotFoundError:
            return False

    def await_back(self, stop: threading.Event) -> Finding:
        """Wait until it answers, and every broker that answers reports it in sync."""
        return await_finding(
            self._look_for_it,
            BROKER_BACK_MS,
            f"{self.address} did not answer with broker {self._broker.id} in sync",
            stop,
        )

    def _look_for_it(self) -> Finding | None:
        in_sync = {}
        for info in self._brokers:
            if _refusal(info) is not None:  # paused: its backlog may be full
                continue  # the view would wait for it
            with suppress(ChaosError):
                in_sync[info.id] = self._broker.id in self._view.in_sync(info.address)
        if not in_sync.get(self._broker.id) or not all(in_sync.values()):
            return None
        observers = ", ".join(map(str, in_sync))
        return Finding(True, f"{self.address} answers, in sync according to broker {observers}")


def _refusal(broker: BrokerInfo) -> OSError | None:
    """Return why its port takes no connection; None if it takes one.

    Raises ChaosError for errors that are this machine's, and tell nothing of the broker.
    """
    try:
        socket.create_connection((broker.host, broker.port), timing.PROBE_CONNECT_S).close()
    except OSError as error:
        if error.errno in _OURS:
            raise _unclear(broker, error) from error
        return error
    return None


def _unclear(broker: BrokerInfo, error: OSError) -> ChaosError:
    return ChaosError(f"{broker.address}: cannot be probed ({error})")


def _is_here(host: str) -> bool:
    """Whether a host is this machine, by its address on the loopback."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls(properties: Properties) -> Callable[[socket.socket], socket.socket] | None:
    """Return what adds TLS as clients do it; whose certificate a broker has is not probed."""
    if not uses_tls(properties):
        return None
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if (certificate := properties.get("ssl.certificate.location")) is not None:
        context.load_cert_chain(
            certificate,
            properties.get("ssl.key.location"),
            properties.get("ssl.key.password", ""),
        )
    return context.wrap_socket
