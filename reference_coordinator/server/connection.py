"""A connection of a client: requests in, each answered before the next one is read, as in Kafka."""

import asyncio
import itertools
import sys
import time
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from kio.schema.errors import ErrorCode

from kafka_protocol import request_log
from kafka_protocol.apis import LOGGED_APIS
from kafka_protocol.frames import (
    KEYS,
    NAMES,
    BodyError,
    FrameBuffer,
    FrameError,
    Head,
    head_of,
    request_of,
    response_frame,
)
from kafka_protocol.kio_bodies import to_body, to_entity
from kafka_protocol.printable import printable
from kafka_protocol.schemas import schema_of
from reference_coordinator.server.apis import HANDLERS, api_versions
from reference_coordinator.server.timing import DECODED

if TYPE_CHECKING:
    from reference_coordinator.server.broker import Broker

Json = Mapping[str, Any]
_CORRELATION = slice(8, 12)
"""Where the correlation id stands in a request: behind its length, API key and version."""
_numbers = itertools.count(1)


@lru_cache(maxsize=DECODED)
def _decoded(before: bytes, behind: bytes, api_key: int, version: int) -> Json:
    """Decode a request without its correlation id; nobody changes what comes out."""
    return to_body(request_of(before + bytes(4) + behind, api_key, version))


class Request:
    """A request, as the oracle reads it; `answer` ends it."""

    response_fields: Json = MappingProxyType({})

    def __init__(self, connection: "Connection", head: Head, body: Json, received_ns: int) -> None:
        self.id = str(next(_numbers))
        self.api, self.api_version = NAMES[head.api_key], head.version
        self.head, self.request = head, body
        self.connection, self.received_ns = connection, received_ns
        self.begun_ns = time.monotonic_ns()
        self.handed_ns = 0
        """When its handler had ended; 0 before that."""

    @property
    def client_id(self) -> str:
        """The client id of the header."""
        return self.head.client_id or ""

    @property
    def client_host(self) -> str:
        """The host that it came from."""
        return self.connection.host

    def answer(self, body: Json) -> None:
        """Send the response, and write the request's line."""
        self.connection.answer(self, body)


class Connection(asyncio.Protocol):
    """Takes the requests of a client one after the other."""

    transport: asyncio.Transport

    def __init__(self, broker: "Broker") -> None:
        self.broker = broker
        self.software = ("unknown", "unknown")
        self._buffer = FrameBuffer()
        self._unread: deque[bytes] = deque()
        self._busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a number, as brokers name connections."""
        self.transport = cast(asyncio.Transport, transport)
        ours, theirs = (transport.get_extra_info(name) for name in ("sockname", "peername"))
        number = self.broker.connected(self)
        self.thread = number % 2
        self.host = f"/{theirs[0]}"
        self.name = f"{ours[0]}:{ours[1]}-{theirs[0]}:{theirs[1]}-{self.thread}-{number}"

    def connection_lost(self, _: Exception | None) -> None:
        """Forget it; a request that waits is answered and logged all the same."""
        self.broker.connections.discard(self)
        self._unread.clear()

    def data_received(self, data: bytes) -> None:
        """Take what is complete; it waits for the response to the request before."""
        try:
            self._unread += self._buffer.feed(data)
        except FrameError as error:
            self._abort(error)
        self.go_on()

    def go_on(self) -> None:
        """Act on the next request, unless one waits, or the broker is frozen."""
        while self._unread and not self._busy and not self.broker.agenda.frozen:
            self._begin(self._unread.popleft())

    def _begin(self, frame: bytes) -> None:
        received_ns = time.monotonic_ns()
        try:
            head = head_of(frame)
            api = NAMES.get(head.api_key, "")
            if head.version not in self.broker.cluster.versions.get(api, ()):
                self._refuse(head)
                return
            cut = frame[: _CORRELATION.start], frame[_CORRELATION.stop :]
            body = _decoded(*cut, head.api_key, head.version)
        except (FrameError, BodyError) as error:
            self._abort(error)
            return
        request = Request(self, head, body, received_ns)
        self._busy = True
        if api == "API_VERSIONS" and "clientSoftwareName" in body:
            self.software = body["clientSoftwareName"], body["clientSoftwareVersion"]
        answered = HANDLERS[api](self.broker, request)
        request.handed_ns = time.monotonic_ns()
        if answered is not None:
            request.answer(answered)

    def _abort(self, why: object) -> None:
        """End a connection over a request that cannot be answered."""
        print(printable(f"{self.name}: {why}"), file=sys.stderr, flush=True)
        self.transport.abort()

    def _refuse(self, head: Head) -> None:
        """Answer a version of ApiVersions that is not known in version 0 (KIP-511); else end."""
        if head.api_key != KEYS["API_VERSIONS"]:
            self._abort(f"{NAMES.get(head.api_key)} v{head.version} is not served")
            return
        body = {**api_versions(self.broker), "errorCode": int(ErrorCode.unsupported_version)}
        self._send(Head(head.api_key, 0, head.correlation_id, None), body)

    def _send(self, head: Head, body: Json) -> Any:
        schema = schema_of(head.api_key, head.version, response=True)
        entity = to_entity(schema, {"throttleTimeMs": 0, **body})
        header = schema.__header_schema__(correlation_id=head.correlation_id)
        frame = response_frame(header, entity)
        if not self.transport.is_closing():
            self.transport.write(frame)
        return entity

    def answer(self, request: Request, body: Json) -> None:
        """Answer the request that is under way, and go on with the next one."""
        answered_ns = time.monotonic_ns()
        entity = self._send(request.head, body)
        if request.api in LOGGED_APIS:
            self.log(request, to_body(entity), self.broker, answered_ns)
        self.done()

    def done(self) -> None:
        """Go on with the next request."""
        self._busy = False
        if self._unread:  # soon: the coordinator may be in the midst of a step
            asyncio.get_running_loop().call_soon(self.go_on)

    def log(
        self, request: Request, response: Json, by: "Broker", answered_ns: int | None = None
    ) -> None:
        """Write the line of a request that a broker has acted on; it is answered by now."""
        sent_ns, head = time.monotonic_ns(), request.head
        answered_ns = answered_ns or sent_ns
        received_ns, begun_ns = request.received_ns, request.begun_ns
        handed_ns = min(request.handed_ns or answered_ns, answered_ns)
        waited_ns = answered_ns - handed_ns
        parts = (begun_ns - received_ns, handed_ns - begun_ns, waited_ns, 0, sent_ns - answered_ns)
        total, *parts_ms = (round(ns / 1e6, 3) for ns in (sent_ns - received_ns, *parts))
        header = request_log.header(request.api, head.version, head.correlation_id, head.client_id)
        content = request_log.completed(
            header, request.request, response, self.name, total, parts_ms
        ) | request_log.sender(*self.software)
        by.print_request(self.thread, request_log.printed(content), sent_ns)


__all__ = ["Connection", "Request"]
