"""The load of one run: clients, their history, and what a page may show of them."""

from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gevent

from loadtest import hub_lag
from loadtest.client_pool import Fleet
from loadtest.history import History, now_ms
from loadtest.roster import Roster

SEEN = ("assigned", "revoked", "lost", "fenced")
SHOWN = 200
"""How many of the latest things that clients saw are kept."""

Row = dict[str, str]


class Load:
    """A fleet that is ready to be carried by users, until it is closed.

    `events` are those of Locust's environment. Raises LoadtestError if there cannot be a history.
    """

    def __init__(self, roster: Roster, bootstrap: str, history: Path | None, events: Any) -> None:
        self._history = _WatchedHistory(history)
        self.fleet = Fleet(roster, bootstrap, self._history, events)
        self._lag = gevent.spawn(hub_lag.watch, self._history)

    def close(self) -> None:
        """Close what is open still; Locust, told twice to end, does not wait for its users."""
        self.fleet.close()
        self._lag.kill()
        self._history.close()

    def seen(self) -> list[Row]:
        """Return a row for each thing that a client saw of rebalances, the latest first."""
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
            for row in self.fleet.members()
        ]


class _WatchedHistory(History):
    """A history that remembers the latest of what matters to a page."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path)
        self.seen: deque[Row] = deque(maxlen=SHOWN)

    def write(self, event: str, *, at_ms: float | None = None, **fields: Any) -> None:
        super().write(event, at_ms=at_ms, **fields)
        if event in SEEN:
            partitions = ", ".join(fields.get("partitions", ())) or "nothing"
            self.seen.append(
                {
                    "at": _clock(now_ms() if at_ms is None else at_ms),
                    "group": fields.get("group") or "",
                    "reason": f"seen by client {fields['member']}: {event} {partitions}",
                }
            )


def _clock(at_ms: float) -> str:
    """Return the time of day, in UTC to the millisecond."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
