"""Exchanges on the wire as an event file, `groupquake-events/1`: JSON lines.

A header, one line for each request in the order of sending, and an end line. Times are the
client's, in ms since the log was opened; the coordinator acted between sending and response.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from loadtest.wire.connection import Exchange

FORMAT = "groupquake-events/1"
CLIENT_HOST = "/127.0.0.1"


@dataclass(slots=True)
class EventLog:
    """One sequence: the exchanges of several connections with one group's coordinator."""

    exchanges: list["Exchange"] = field(default_factory=list)
    ended_ms: float | None = None
    _origin_s: float = field(default_factory=time.monotonic)

    def now_ms(self) -> float:
        """Return the ms since the log was opened."""
        return (time.monotonic() - self._origin_s) * 1000

    def add(self, exchange: "Exchange") -> None:
        """Add an exchange when its request is sent."""
        self.exchanges.append(exchange)

    def end(self) -> None:
        """Stop the clock: no further response is received."""
        self.ended_ms = self.now_ms()

    def write(self, out: TextIO, header: Mapping[str, Any]) -> None:
        """Write the event file; `header` has `kafka`, `coordinator`, `config`, `group` and more."""
        ended_ms = self.now_ms() if self.ended_ms is None else self.ended_ms
        lines = [{"format": FORMAT, **header}]
        lines += [_line(number, exchange) for number, exchange in enumerate(self.exchanges, 1)]
        lines.append({"at_ms": round(ended_ms, 3), "end": True})
        out.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def _line(number: int, exchange: "Exchange") -> dict[str, Any]:
    line: dict[str, Any] = {
        "at_ms": round(exchange.sent_ms, 3),
        "id": f"e{number}",
        "connection": exchange.connection,
        "api": exchange.api,
        "api_version": exchange.api_version,
        "client_id": exchange.client_id,
        "client_host": CLIENT_HOST,
        "request": exchange.request,
    }
    if exchange.response is not None:
        line |= {"answered_at_ms": round(exchange.answered_ms, 3), "response": exchange.response}
    return line
