"""The evidence: a `group.log` per broker, in the form that the brokers of 4.0 and later write.

Each request of a group is a line of the request log, written when its answer was delivered, or when
it is certain that none will be. Its total time counts from when the broker was sent it; the time
at the broker is the remote time, and the time that the tap held the answer is that in the response
queue. `connection` has the broker's and the tap's address, as the broker's own log has them. Where
a rule or the end of a connection acted, the key `tap` says so.

Requests without an answer, those that kio cannot read, and those of other APIs that a rule chose,
have lines of their own. The last line says that the tap ended: a log without it is cut off.
"""

import time
from dataclasses import dataclass
from typing import Any

from chaos.tap.exchange import Exchange
from kafka_protocol import request_log
from kafka_protocol.frames import BodyError, request_of, response_of
from kafka_protocol.kio_bodies import to_body
from kafka_protocol.log_file import NumberedLog
from kafka_protocol.tap_lines import ENDED, HIT, LOGGER, UNANSWERED, UNREADABLE

Json = dict[str, Any]


@dataclass(slots=True)
class Sender:
    """What a line says of the connection beside its name: protocol, principal, client software.

    It `is_anonymous` if the tap shows the broker no certificate, which has a name.
    """

    security: str
    is_anonymous: bool
    software: tuple[str, str] = ("unknown", "unknown")

    @property
    def described(self) -> Json:
        """The last keys of a line; who a client logs in as is nothing that the tap may know."""
        nameless = self.is_anonymous and "SASL" not in self.security
        principal = request_log.ANONYMOUS if nameless else None
        return request_log.sender(*self.software, self.security, principal)


class GroupLog(NumberedLog):
    """Writes the lines of one broker."""

    def completed(
        self, exchange: Exchange, answer: bytes, connection: str, sender: Sender, why: str | None
    ) -> None:
        """Write a request with its answer; `why` says why it was not delivered, if it was not."""
        head, done_ns = exchange.head, time.monotonic_ns()
        try:
            response = to_body(response_of(answer, head.api_key, head.version)[1])
            request = self._request(exchange)
        except BodyError as error:
            self._note(UNREADABLE, exchange, connection, {"error": str(error)})
            return
        assert exchange.forwarded_ns is not None
        assert exchange.answered_ns is not None
        undelivered = {} if why is None else {"delivered": False, "why": why}
        at_broker = _ms(exchange.answered_ns - exchange.forwarded_ns)
        parts_ms = (0.0, 0.0, at_broker, _ms(done_ns - exchange.answered_ns), 0.0)
        total_ms = _ms(done_ns - exchange.forwarded_ns)
        content = request_log.completed(
            _header(exchange), request, response, connection, total_ms, parts_ms
        )
        content |= sender.described | _tap(exchange, undelivered)
        self._write(request_log.LOGGER, request_log.printed(content), done_ns)

    def unanswered(self, exchange: Exchange, connection: str, sender: Sender, why: str) -> None:
        """Write a request that gets no answer; it may not even have been forwarded."""
        done_ns = time.monotonic_ns()
        try:
            request = self._request(exchange)
        except BodyError as error:
            self._note(UNREADABLE, exchange, connection, {"error": str(error)})
            return
        content = {
            "isForwarded": False,
            "requestHeader": _header(exchange),
            "request": request,
            "connection": connection,
            "totalTimeMs": _ms(done_ns - exchange.received_ns),
            **sender.described,
            **_tap(exchange, {"forwarded": exchange.forwarded_ns is not None, "why": why}),
        }
        self._write(LOGGER, UNANSWERED + request_log.as_json(content), done_ns)

    def hit(self, exchange: Exchange, connection: str) -> None:
        """Write that a rule hit a request whose API is no evidence."""
        self._note(HIT, exchange, connection, _tap(exchange, {}))

    def _request(self, exchange: Exchange) -> Json:
        assert exchange.request is not None
        head = exchange.head
        return to_body(request_of(exchange.request, head.api_key, head.version))

    def _note(self, what: str, exchange: Exchange, connection: str, more: Json) -> None:
        content = {"requestHeader": _header(exchange), "connection": connection, **more}
        self._write(LOGGER, what + request_log.as_json(content), time.monotonic_ns())

    def _write(self, logger: str, body: str, at_ns: int) -> None:
        self.write(f"tap DEBUG {body} ({logger})", at_ns)

    def close(self) -> None:
        """Write the rest and the last line, and close the file."""
        self._write(LOGGER, ENDED, time.monotonic_ns())
        super().close()


def _header(exchange: Exchange) -> Json:
    head = exchange.head
    return request_log.header(exchange.api, head.version, head.correlation_id, head.client_id)


def _tap(exchange: Exchange, more: Json) -> Json:
    """Return the key `tap`, if there is anything to tell."""
    acted = dict(more)
    if exchange.rules:
        acted["rules"] = exchange.rules
    if exchange.forwarded_ns is not None and (exchange.rules or exchange.waited):
        acted["requestHeldMs"] = _ms(exchange.forwarded_ns - exchange.received_ns)
    if exchange.error is not None:
        acted["errorCode"] = exchange.error
    if exchange.copy:
        acted["copy"] = True
    return {"tap": acted} if acted else {}


def _ms(duration_ns: int) -> float:
    return round(duration_ns / 1e6, 3)
