"""One connection of a client, and the tap's own connection to the broker for it."""

import asyncio
import itertools
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from chaos.tap.answers import Address, erring, is_rewritten, rewritten, unsupported_handshake
from chaos.tap.exchange import Exchange
from chaos.tap.group_log import GroupLog, Sender
from chaos.tap.lane import Lane
from kafka_protocol.apis import LOGGED_APIS, ApiKey
from kafka_protocol.errors import CODES
from kafka_protocol.frames import (
    KEYS,
    BodyError,
    FrameBuffer,
    FrameError,
    Head,
    correlation_id_of,
    head_of,
    request_of,
)
from kafka_protocol.printable import printable

if TYPE_CHECKING:
    from chaos.tap.server import Tap

_LOGGED = frozenset(KEYS[name] for name in LOGGED_APIS)
_SASL_HANDSHAKE = KEYS["SASL_HANDSHAKE"]
_numbers = itertools.count(1)
_DROPPED = "dropped"


@dataclass(slots=True)
class Broker:
    """A broker, and what the tap has for it."""

    id: int
    address: Address
    """Where the broker is now."""
    listener: Address
    log: GroupLog
    tap: "Tap"
    connections: "set[Connection]" = field(default_factory=set)


class Side(asyncio.Protocol):
    """One of the two sockets; tells the connection what comes, and paces the other side."""

    other: "Side"

    def __init__(self, data: Callable[[bytes], None], lost: Callable[[], None]) -> None:
        self.transport: asyncio.Transport | None = None
        self._data = data
        self._lost = lost

    def data_received(self, data: bytes) -> None:
        """Hand the bytes on."""
        self._data(data)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast(asyncio.Transport, transport)

    def pause_writing(self) -> None:
        """Read no more from the other side: this one is slow."""
        self.other.reading(False)

    def resume_writing(self) -> None:
        """Read from the other side again."""
        self.other.reading(True)

    def connection_lost(self, _: Exception | None) -> None:
        """Tell the connection."""
        self._lost()

    def write(self, frame: bytes) -> bool:
        """Send a frame, and tell whether the socket was open."""
        if self.transport is None or self.transport.is_closing():
            return False
        self.transport.write(frame)
        return True

    def close(self) -> None:
        """Send what is left, then close."""
        if self.transport is not None:
            self.transport.close()

    def reading(self, on: bool) -> None:
        """Read, or do not."""
        if self.transport is not None and not self.transport.is_closing():
            if on:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()


class Connection:
    """Forwards frames both ways, through the lanes, and writes those that are evidence."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._number = next(_numbers)
        self.client = Side(self._from_client, self._client_lost)
        self.server = Side(self._from_broker, self._broker_lost)
        self.client.other, self.server.other = self.server, self.client
        self._to_broker = Lane("to-broker", broker.tap.rules, self._forward, self.server.close,
                               self.client.reading, is_open=False)  # fmt: skip
        self._to_client = Lane("to-client", broker.tap.rules, self._deliver, self._end_client,
                               self.server.reading, is_open=True)  # fmt: skip
        self._requests = FrameBuffer()
        self._answers = FrameBuffer()
        self._pending: deque[Exchange] = deque()
        self._last: Exchange | None = None
        self._instances: frozenset[str] = frozenset()
        self._sender = Sender("PLAINTEXT" if broker.tap.tls is None else "SSL",
                              is_anonymous=not broker.tap.shows_certificate)  # fmt: skip
        self._name = ""
        self._is_silent = False
        self._client_gone: str | None = None
        self._broker_gone: str | None = None
        self._connecting: asyncio.Task[None] | None = None

    def protocol(self) -> asyncio.Protocol:
        """Return the client's side, for a connection that a client has opened."""
        self._broker.connections.add(self)
        self._connecting = asyncio.get_running_loop().create_task(self._connect())
        return self.client

    async def _connect(self) -> None:
        """Connect to the broker; the client sees a broker that is not there as a closed door."""
        loop = asyncio.get_running_loop()
        address = self._broker.address
        name = address.host if self._broker.tap.tls is not None else None
        try:
            await loop.create_connection(
                lambda: self.server, address.host, address.port,
                ssl=self._broker.tap.tls, server_hostname=name,
            )  # fmt: skip
        except OSError as error:
            if self._broker.tap.tls is not None:
                self._complain(f"no TLS with the broker: {error}")
            self._broker_lost(f"broker at {address}: {error}")
            return
        transport = self.server.transport
        assert transport is not None
        if self._client_gone is not None:
            self.server.close()
            return
        ours = transport.get_extra_info("sockname")
        theirs = transport.get_extra_info("peername")
        self._name = f"{theirs[0]}:{theirs[1]}-{ours[0]}:{ours[1]}-0-{self._number}"
        self._to_broker.open()

    # requests

    def _from_client(self, data: bytes) -> None:
        try:
            for frame in self._requests.feed(data):
                self._request(frame, head_of(frame))
        except FrameError as error:
            self._complain(f"a client sent {error}; is its security.protocol that of the tap?")
            self.end(f"the client sent {error}")

    def _request(self, frame: bytes, head: Head) -> None:
        if head.api_key == _SASL_HANDSHAKE:
            if head.version == 0:
                self._complain("SaslHandshake v0 is not supported: use a client that sends v1")
                self.client.write(unsupported_handshake(head))
                return
            if not self._sender.security.startswith("SASL_"):
                self._sender.security = f"SASL_{self._sender.security}"
        elif head.api_key in (ApiKey.JOIN_GROUP, ApiKey.API_VERSIONS):
            self._learn(frame, head)
        logged = frame if head.api_key in _LOGGED else None
        exchange = Exchange(head, self._broker.id, self._instances, logged)
        self._last = exchange
        self._to_broker.push(exchange, frame)

    def _learn(self, frame: bytes, head: Head) -> None:
        """Note the instance id of a JoinGroup, or the client software of an ApiVersions."""
        try:
            body = request_of(frame, head.api_key, head.version)
        except BodyError:
            return  # its line will say so, or the broker, which answers in version 0
        if instance := getattr(body, "group_instance_id", None):
            self._instances |= {instance}
        if name := getattr(body, "client_software_name", None):
            self._sender.software = (name, body.client_software_version)

    def _forward(self, exchange: Exchange, frame: bytes) -> None:
        """Send a request to the broker, twice if a rule says so."""
        forwarded_ns = time.monotonic_ns()  # before the broker may have it
        if not self.server.write(frame):
            self._unanswered(exchange, self._broker_gone or "the broker closed the connection")
            return
        copied = replace(exchange, copy=True, decided={}) if (
            self._broker.tap.rules and self._broker.tap.rules.hitting("duplicate", exchange)
        ) else None  # fmt: skip
        exchange.forwarded_ns = forwarded_ns
        self._pending.append(exchange)
        if copied is not None and self.server.write(frame):
            copied.forwarded_ns = forwarded_ns
            copied.decided = dict(exchange.decided)
            self._pending.append(copied)

    def _client_lost(self) -> None:
        """Tell the broker, after what is under way; what a rule still holds is lost."""
        if self._client_gone is None:
            self._client_gone = "the client closed the connection"
        if self._to_broker.is_held:
            for exchange, _ in self._to_broker.discard():
                self._unanswered(exchange, self._client_gone)
        self._to_broker.finish(self._last)
        if self._connecting is not None and self.server.transport is None:
            self._connecting.cancel()
            self._done()

    # answers

    def _from_broker(self, data: bytes) -> None:
        try:
            for frame in self._answers.feed(data):
                self._answer(frame)
        except (FrameError, BodyError) as error:
            self._complain(f"an answer that cannot be passed on: {error}")
            self.end(f"the tap cannot pass on an answer: {error}")

    def _answer(self, frame: bytes) -> None:
        exchange = self._asked(correlation_id_of(frame))
        if exchange is None:
            self.client.write(frame)
            return
        exchange.answered_ns = time.monotonic_ns()
        head = exchange.head
        if exchange.copy:
            self._completed(exchange, frame, "the answer to a copy")
            return
        if is_rewritten(head.api_key, head.version):
            frame = rewritten(frame, head.api_key, head.version, self._broker.tap.listener)
        if self._is_silent:
            self._completed(exchange, frame, "an earlier answer was dropped")
            return
        rules = self._broker.tap.rules
        drops = rules.hitting("drop-answers", exchange) if rules else None
        if drops is None:
            if rules and (erroneous := rules.hitting("answer-error", exchange)) is not None:
                code = CODES[erroneous.error]
                try:
                    instead = erring(frame, head.api_key, head.version, code)
                except BodyError:
                    self._pending.appendleft(exchange)  # the end leaves it unanswered
                    raise
                exchange.error, exchange.true_answer = code, frame
                frame = instead
            self._to_client.push(exchange, frame)
            return
        self._completed(exchange, frame, _DROPPED)
        self._is_silent = True
        if drops.then == "close":
            self.end("the tap dropped an earlier answer")

    def _asked(self, correlation_id: int) -> Exchange | None:
        """Return the request that an answer is for; those before it get none (Produce, acks=0)."""
        pending = self._pending
        if pending and pending[0].head.correlation_id == correlation_id:
            return pending.popleft()
        if not any(exchange.head.correlation_id == correlation_id for exchange in pending):
            return None
        while (exchange := pending.popleft()).head.correlation_id != correlation_id:
            self._unanswered(exchange, "the broker answered a later request")
        return exchange

    def _deliver(self, exchange: Exchange, frame: bytes) -> None:
        delivered = self.client.write(frame)
        why = None if delivered else self._client_gone or "the client closed the connection"
        self._completed(exchange, frame, why)

    def _completed(self, exchange: Exchange, frame: bytes, why: str | None) -> None:
        """Write a request with the broker's answer, delivered if nothing says why not."""
        if exchange.request is not None:
            frame = exchange.true_answer or frame
            self._broker.log.completed(exchange, frame, self._named(), self._sender, why)
        elif exchange.copy or exchange.error is not None or why == _DROPPED:
            self._broker.log.hit(exchange, self._named())

    def _broker_lost(self, why: str = "the broker closed the connection") -> None:
        """Tell the client, after the answers that are under way."""
        self._broker_gone = self._broker_gone or why
        self._give_up(self._client_gone or self._broker_gone)
        self._to_client.finish(self._last)
        if self._client_gone is not None:
            self._done()

    def _end_client(self) -> None:
        self._client_gone = self._client_gone or self._broker_gone
        self.client.close()
        self._done()

    # the end

    def end(self, why: str) -> None:
        """End both sides at once, whatever the rules say."""
        self._client_gone = self._client_gone or why
        self._broker_gone = self._broker_gone or why
        self._give_up(why)
        for exchange, frame in self._to_client.discard():
            self._completed(exchange, frame, why)
        if self._connecting is not None:
            self._connecting.cancel()
        self.client.close()
        self.server.close()
        self._done()

    def drain(self) -> None:
        """Let pass what the rules let pass now."""
        self._to_broker.drain()
        self._to_client.drain()

    def _give_up(self, why: str) -> None:
        """Note the requests that get no answer now."""
        unanswered = [*self._pending, *(exchange for exchange, _ in self._to_broker.discard())]
        self._pending.clear()
        for exchange in unanswered:
            self._unanswered(exchange, why)

    def _unanswered(self, exchange: Exchange, why: str) -> None:
        if exchange.request is not None:
            self._broker.log.unanswered(exchange, self._named(), self._sender, why)

    def _done(self) -> None:
        self._broker.connections.discard(self)

    def _named(self) -> str:
        """Name the connection as the broker does, as far as there is one."""
        return self._name or f"{self._broker.address}-unconnected:0-0-{self._number}"

    def _complain(self, what: str) -> None:
        print(printable(f"broker {self._broker.id}: {what}"), file=sys.stderr, flush=True)
