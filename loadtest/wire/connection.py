"""One connection to a broker; responses come in the order of requests.

`negotiate` chooses among the versions that kio has. kio 0.6.5 has every version of Kafka 4. Of the
group's APIs on older brokers it lacks only OffsetCommit v0 and v1 (offsets in ZooKeeper, no group
checks in v0).
"""

import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kafka_protocol.apis import COORDINATOR_APIS, ApiKey
from kafka_protocol.frames import FrameBuffer, FrameError, correlation_id_of, response_of, written
from kafka_protocol.kio_bodies import Body, to_body, to_entity
from kafka_protocol.schemas import known_versions, schema_of
from loadtest.errors import LoadtestError
from loadtest.timing import REQUEST_S, SEND_S
from loadtest.wire.event_log import EventLog

_INT = struct.Struct(">i")
_CORRELATION_AT = 8
"""Where the correlation id stands in a request: behind its length, API key and version."""
_CHUNK = 1 << 12
"""Bytes read at once: most answers are shorter, and a larger buffer costs more than a read."""
_REPEATED = "HEARTBEAT"
"""The API whose requests and answers are nearly always those before; both are flat."""

Versions = Mapping[str, tuple[int, int]]
"""The lowest and the highest version, by API."""


class WireError(LoadtestError):
    """A request cannot be sent, or its response does not come; names the connection and the API."""


@dataclass(slots=True, eq=False)
class _Encoded:
    """A request as it was sent last: to send it again, only its correlation id changes."""

    api_version: int
    body: Body
    entity: Any
    frame: bytearray


@dataclass(slots=True, eq=False)
class Exchange:
    """A request and, once received, its response; times in ms of the connection's clock."""

    connection: str
    client_id: str
    api: str
    api_version: int
    entity: Any
    correlation_id: int
    sent_ms: float = 0.0
    answered_ms: float = 0.0
    response: dict[str, Any] | None = None

    @property
    def request(self) -> dict[str, Any]:
        """The request's body, as the request log prints it."""
        return to_body(self.entity)

    @property
    def error(self) -> int | None:
        """The response's error code at its top; None while there is no response."""
        return None if self.response is None else int(self.response.get("errorCode", 0))


class Connection:
    """Sends any version of any request.

    `name` identifies the connection in `log`, which gets every exchange, if there is one. One
    thread or greenlet at a time uses it: the one that waits for a response reads the socket.
    """

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str,
        *,
        name: str = "",
        log: EventLog | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.client_id = client_id
        self.name = name or client_id
        self.now_ms = log.now_ms if log else lambda: time.monotonic() * 1000
        self._log = log
        self._at = f"{host}:{port}"
        self._awaited: list[Exchange] = []
        self._answers = FrameBuffer()
        self._sent = 0
        self._repeated: _Encoded | None = None
        try:
            self._socket: socket.socket | None = socket.create_connection((host, port), SEND_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is not None:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        except OSError as error:
            raise WireError(f"{self.name}: no broker answers at {self._at}: {error}") from error

    @property
    def awaited(self) -> tuple[Exchange, ...]:
        """The requests without a response so far, oldest first."""
        return tuple(self._awaited)

    def fileno(self) -> int:
        """Return the socket's descriptor, for `select`."""
        return self._open().fileno()

    def send(self, api: str, version: int, body: Body) -> Exchange:
        """Send a request without waiting; keys that the version does not have are left out."""
        request = self._encoded(api, version, body)
        wire = self._open()
        self._sent += 1
        exchange = Exchange(self.name, self.client_id, api, version, request.entity, self._sent)
        _INT.pack_into(request.frame, _CORRELATION_AT, self._sent)
        exchange.sent_ms = self.now_ms()
        if self._log is not None:
            self._log.add(exchange)
        self._awaited.append(exchange)
        try:
            wire.settimeout(SEND_S)
            if (taken := wire.send(request.frame)) < len(request.frame):  # cheaper than sendall
                wire.sendall(request.frame[taken:])
        except OSError as error:
            self.close()
            raise WireError(f"{self.name}: {self._at} is gone: {error}") from error
        return exchange

    def _encoded(self, api: str, version: int, body: Body) -> _Encoded:
        """Encode a request, without its correlation id, unless it is that of before."""
        last = self._repeated if api == _REPEATED else None
        if last is not None and last.api_version == version and last.body == body:
            return last
        schema = schema_of(ApiKey[api], version)
        try:
            entity = to_entity(schema, body)
        except KeyError as error:
            raise WireError(f"{self.name}: {api} v{version} needs {error}") from error
        header = schema.__header_schema__(
            request_api_key=ApiKey[api],
            request_api_version=version,
            correlation_id=0,
            client_id=self.client_id,
        )
        frame = bytearray(written(header, entity))
        request = _Encoded(version, dict(body), entity, frame)  # a copy: the caller may change it
        if api == _REPEATED:
            self._repeated = request
        return request

    def receive(self, timeout_s: float) -> list[Exchange]:
        """Read once from the socket; return the exchanges that are complete now, if any.

        Raises WireError if the broker has closed the connection, or sends what is no response.
        """
        wire = self._open()
        try:
            wire.settimeout(timeout_s)
            data = wire.recv(_CHUNK)
        except (TimeoutError, BlockingIOError):
            return []
        except OSError as error:
            self.close()
            raise WireError(f"{self.name}: {self._at} is gone: {error}") from error
        at_ms = self.now_ms()
        if not data:
            self.close()
            raise WireError(f"{self.name}: {self._at} has closed the connection")
        try:
            return [self._answered(frame, at_ms) for frame in tuple(self._answers.feed(data))]
        except FrameError as error:
            self.close()
            raise WireError(f"{self.name}: {self._at} sent {error}") from error

    def _answered(self, frame: bytes, at_ms: float) -> Exchange:
        if not self._awaited:  # brokers of 2.4 may send two responses to a SyncGroup
            raise WireError(f"{self.name}: {self._at} sent a response without a request")
        exchange = self._awaited.pop(0)
        if correlation_id_of(frame) != exchange.correlation_id:
            raise WireError(f"{self.name}: {self._at} responded out of order")
        api, version, answer = exchange.api, exchange.api_version, frame[2 * _INT.size :]
        body = (_decoded_before if api == _REPEATED else _decoded)(api, version, answer)
        exchange.response = dict(body)
        exchange.answered_ms = at_ms
        return exchange

    def ask(
        self, api: str, version: int, body: Body, timeout_s: float = REQUEST_S
    ) -> dict[str, Any]:
        """Send a request and return its response. Raises WireError if none comes in time."""
        return self.wait(self.send(api, version, body), timeout_s)

    def wait(self, exchange: Exchange, timeout_s: float = REQUEST_S) -> dict[str, Any]:
        """Wait for the response to a request of this connection."""
        until_ms = self.now_ms() + timeout_s * 1000
        while exchange.response is None:
            left_s = (until_ms - self.now_ms()) / 1000
            if left_s <= 0:
                raise WireError(
                    f"{self.name}: no response to {exchange.api} within {timeout_s:g} s"
                )
            self.receive(left_s)
        return exchange.response

    def close(self) -> None:
        """Close the socket, as the crash of a process does; awaited responses are lost."""
        open_socket, self._socket = self._socket, None  # one that it wakes may close it, too
        if open_socket is not None:
            with contextlib.suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits in it
            open_socket.close()

    def _open(self) -> socket.socket:
        if self._socket is None:
            raise WireError(f"{self.name}: the connection to {self._at} is closed")
        return self._socket


def _decoded(api: str, version: int, answer: bytes) -> dict[str, Any]:
    """Decode a response from behind its correlation id, with which its header begins."""
    return to_body(response_of(bytes(2 * _INT.size) + answer, ApiKey[api], version)[1])


_decoded_before = lru_cache(maxsize=256)(_decoded)
"""The same bytes mean the same."""


def known(api: str) -> tuple[int, int]:
    """Return the lowest and the highest version of an API that has classes."""
    versions = known_versions(ApiKey[api])
    return versions.start, versions.stop - 1


def negotiate(connection: Connection, apis: Iterable[str] = COORDINATOR_APIS) -> Versions:
    """Return the versions that a broker and kio share (ApiVersions request).

    An API without a shared version is left out.
    """
    served = connection.ask("API_VERSIONS", 0, {})["apiKeys"]
    offered = {entry["apiKey"]: (entry["minVersion"], entry["maxVersion"]) for entry in served}
    shared = {}
    for api in apis:
        lowest, highest = known(api)
        first, last = offered.get(ApiKey[api], (highest + 1, highest))
        if max(lowest, first) <= min(highest, last):
            shared[api] = (max(lowest, first), min(highest, last))
    return shared
