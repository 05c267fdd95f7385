"""The load of one run: clients, their history, and the rows that Locust's page shows of them."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn, Protocol

import gevent

from loadtest.history import History, clock, now_ms

LAG_CHECK_S = 0.05
CHECKS_PER_LINE = 20

SHOWN_EVENTS = ("assigned", "revoked", "lost", "fenced")
SHOWN = 200
"""How many of the latest client events are kept."""

Row = dict[str, str]
Seen = Callable[[str, float, dict[str, Any]], None]
"""Takes the event of a line, its time (UTC epoch milliseconds) and its other fields."""


class Clients(Protocol):
    """What a load has."""

    def members(self) -> list[dict[str, Any]]:
        """Return a row for each member."""

    def close(self) -> None:
        """Close every client that is open."""


class Load:
    """Clients with their history, until it is closed: those of this process, or of all workers.

    `make` returns them, given the history; `seen` takes each event of it. Raises LoadtestError for
    a bad history.
    """

    def __init__(
        self, make: Callable[[History], Clients], history: Path | None, seen: Seen | None
    ) -> None:
        self._history = _WatchedHistory(history, seen)
        self._clients = make(self._history)
        self._lag = gevent.spawn(_watch_hub_lag, self._history)

    def close_clients(self) -> None:
        """Close every open client; after a second Ctrl-C Locust does not wait for its users."""
        self._clients.close()

    def close(self) -> None:
        """Close every open client, and the history."""
        self.close_clients()
        self._lag.kill()
        self._history.close()

    def seen(self) -> list[Row]:
        """Return a row for each client event about rebalances, the latest first."""
        return list(reversed(self._history.seen))

    def members(self) -> list[Row]:
        """Return a row for each member."""
        return [
            {
                "name": row["name"],
                "group": row["group"],
                "kind": row["kind"],
                "state": row["state"],
                "partitions": ", ".join(row["partitions"]),
            }
            for row in self._clients.members()
        ]


class _WatchedHistory(History):
    """A history that keeps the latest events for the page."""

    def __init__(self, path: Path | None, seen: Seen | None) -> None:
        super().__init__(path)
        self.seen: deque[Row] = deque(maxlen=SHOWN)
        self._on_event = seen

    def write(self, event: str, *, at_ms: float | None = None, **fields: Any) -> None:
        super().write(event, at_ms=at_ms, **fields)
        self._see(event, now_ms() if at_ms is None else at_ms, fields)

    def add(self, lines: Iterable[str]) -> None:
        lines = list(lines)
        super().add(lines)
        for line in lines:
            fields = json.loads(line)
            self._see(fields.pop("event"), fields.pop("at_ms"), fields)

    def _see(self, event: str, at_ms: float, fields: dict[str, Any]) -> None:
        if self._on_event:
            self._on_event(event, at_ms, fields)
        if event in SHOWN_EVENTS:
            partitions = ", ".join(fields.get("partitions", ())) or "nothing"
            self.seen.append(
                {
                    "at": clock(at_ms),
                    "group": fields.get("group") or "",
                    "reason": f"seen by client {fields['member']}: {event} {partitions}",
                }
            )


def _watch_hub_lag(history: History) -> NoReturn:
    """Write the event `hub_lag` about once a second.

    `max_ms` is the longest delay, since the last line, with which gevent's hub ran a greenlet that
    was due: the durations measured in this process may contain it.
    """
    while True:
        longest_s = 0.0
        for _ in range(CHECKS_PER_LINE):
            due_s = time.perf_counter() + LAG_CHECK_S
            gevent.sleep(LAG_CHECK_S)
            longest_s = max(longest_s, time.perf_counter() - due_s)
        history.write("hub_lag", max_ms=round(longest_s * 1000, 1))
