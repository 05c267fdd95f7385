"""What was said on the wire as an event file, `groupquake-events/1`: JSON lines.

A header, then one line a request in the order of sending, then the end. Times are the client's, in
ms since the log was opened: the coordinator acted somewhere between sent and answered.
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
    """One sequence: what several connections say to one group's coordinator."""

    exchanges: list["Exchange"] = field(default_factory=list)
    ended_ms: float | None = None
    _origin_s: float = field(default_factory=time.monotonic)

    def now_ms(self) -> float:
        """Return the time of this log."""
        return (time.monotonic() - self._origin_s) * 1000

    def add(self, exchange: "Exchange") -> None:
        """Take an exchange in, at the moment of sending."""
        self.exchanges.append(exchange)

    def end(self) -> None:
        """Stop the clock: nothing is heard of any more."""
        self.ended_ms = self.now_ms()

    def write(self, out: TextIO, header: Mapping[str, Any]) -> None:
        """Write it down; `header` holds `kafka`, `coordinator`, `config`, `group` and the like."""
        ended_ms = self.now_ms() if self.ended_ms is None else self.ended_ms
        lines = [{"format": FORMAT, **header}]
        lines += [_line(number, said) for number, said in enumerate(self.exchanges, 1)]
        lines.append({"at_ms": round(ended_ms, 3), "end": True})
        out.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def _line(number: int, said: "Exchange") -> dict[str, Any]:
    line: dict[str, Any] = {
        "at_ms": round(said.sent_ms, 3),
        "id": f"e{number}",
        "connection": said.connection,
        "api": said.api,
        "api_version": said.api_version,
        "client_id": said.client_id,
        "client_host": CLIENT_HOST,
        "request": said.request,
    }
    if said.response is not None:
        line |= {"answered_at_ms": round(said.answered_ms, 3), "response": said.response}
    return line
