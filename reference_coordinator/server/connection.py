"""A connection of a client: requests in, each answered before the next one is read, as in Kafka."""

import asyncio
import itertools
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from kio.schema.errors import ErrorCode

from kafka_protocol import request_log
from kafka_protocol.apis import LOGGED_APIS
from kafka_protocol.frames import (
    NAMES,
    BodyError,
    FrameBuffer,
    FrameError,
    Head,
    head_of,
    request_of,
    written,
)
from kafka_protocol.kio_bodies import to_body, to_entity
from kafka_protocol.printable import printable
from kafka_protocol.schemas import schema_of
from reference_coordinator.server.apis import HANDLERS, api_versions

if TYPE_CHECKING:
    from reference_coordinator.server.broker import Broker

Json = Mapping[str, Any]
_numbers = itertools.count(1)


@dataclass(eq=False)
class Request:
    """A request, as the oracle reads it. It is `handed_ns` on when only its answer is waited for.

    Times are of the monotonic clock.
    """

    head: Head
    request: Json
    connection: "Connection"
    received_ns: int
    begun_ns: int = field(default_factory=time.monotonic_ns)
    handed_ns: int | None = None
    id: str = field(default_factory=lambda: str(next(_numbers)))
    response_fields: ClassVar[Json] = MappingProxyType({})

    def __post_init__(self) -> None:
        self.api, self.api_version = NAMES[self.head.api_key], self.head.version
        self.client_id = self.head.client_id or ""
        self.client_host = self.connection.host


class Connection:
    """Takes the requests of a client one after the other."""

    def __init__(self, broker: "Broker", number: int, writer: asyncio.StreamWriter) -> None:
        self.broker, self._writer = broker, writer
        (host, port), theirs = map(writer.get_extra_info, ("sockname", "peername"))
        thread, self.host = number % 2, f"/{theirs[0]}"
        self._thread = f"data-plane-kafka-network-thread-{broker.id}-PLAINTEXT-PLAINTEXT-{thread}"
        self._name = f"{host}:{port}-{theirs[0]}:{theirs[1]}-{thread}-{number}"
        self._software = ("unknown", "unknown")

    async def run(self, reader: asyncio.StreamReader) -> None:
        """Answer until either side ends it, or a request cannot be read."""
        buffer = FrameBuffer()
        try:
            while data := await reader.read(1 << 16):
                for frame in buffer.feed(data):
                    await self._take(frame, time.monotonic_ns())
        except (FrameError, BodyError) as error:
            print(printable(f"{self._name}: {error}"), file=sys.stderr, flush=True)
        except ConnectionError:
            pass  # the client has ended it
        finally:
            self._writer.transport.abort()

    async def _take(self, frame: bytes, received_ns: int) -> None:
        await self.broker.agenda.going.wait()
        head = head_of(frame)
        api = NAMES.get(head.api_key, "")
        if head.version not in self.broker.cluster.versions.get(api, ()):
            if api != "API_VERSIONS":
                raise FrameError(f"{api or head.api_key} v{head.version} is not served")
            offered = await api_versions(self.broker)
            refused = {**offered, "errorCode": ErrorCode.unsupported_version.value}
            self._send(head._replace(version=0), refused)  # KIP-511
            return
        body = to_body(request_of(frame, head.api_key, head.version))
        request = Request(head, body, self, received_ns)
        if "clientSoftwareName" in body:
            self._software = body["clientSoftwareName"], body["clientSoftwareVersion"]
        answer = await HANDLERS[api](self.broker, request)
        if answer is None:
            return
        await self.broker.agenda.going.wait()
        answered_ns = time.monotonic_ns()
        entity = self._send(head, answer)
        if api in LOGGED_APIS:
            self.log(request, to_body(entity), self.broker, answered_ns)

    def _send(self, head: Head, body: Json) -> Any:
        schema = schema_of(head.api_key, head.version, response=True)
        entity = to_entity(schema, {"throttleTimeMs": 0, **body})
        header = schema.__header_schema__(correlation_id=head.correlation_id)
        frame = written(header, entity)
        if not self._writer.is_closing():
            self._writer.write(frame)
        return entity

    def log(self, request: Request, response: Json, by: "Broker", answered_ns: int) -> None:
        """Write the line of a request that a broker has acted on."""
        sent_ns, head = time.monotonic_ns(), request.head
        received_ns, begun_ns = request.received_ns, request.begun_ns
        handed_ns = request.handed_ns or answered_ns
        waited_ns = answered_ns - handed_ns
        parts = (begun_ns - received_ns, handed_ns - begun_ns, waited_ns, 0, sent_ns - answered_ns)
        total, *parts_ms = (round(ns / 1e6, 3) for ns in (sent_ns - received_ns, *parts))
        header = request_log.header(request.api, head.version, head.correlation_id, head.client_id)
        content = request_log.completed(
            header, request.request, response, self._name, total, parts_ms
        ) | request_log.sender(*self._software)
        line = f"{self._thread} DEBUG {request_log.printed(content)} ({request_log.LOGGER})"
        by.print(line, sent_ns)
