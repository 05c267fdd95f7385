"""The load of one run: clients, their history, and the latest events that the page shows."""

import time
from collections import deque
from typing import TYPE_CHECKING, Any, NoReturn

import gevent

from loadtest.history import History
from loadtest.timing import LAG_CHECK_S

if TYPE_CHECKING:
    from loadtest.pool import ClientPool
    from loadtest.workers.master import LoadMaster

CHECKS_PER_LINE = 20
SHOWN_EVENTS = ("assigned", "revoked", "lost", "fenced")
SHOWN = 200
"""How many of the latest client events are kept."""

Row = dict[str, Any]


class Load:
    """Clients with their history, until it is closed: those of this process, or of all workers."""

    def __init__(self, history: History, clients: "ClientPool | LoadMaster") -> None:
        self._history = history
        self.clients = clients
        self._seen: deque[Row] = deque(maxlen=SHOWN)
        history.watchers.append(self._see)
        self._lag = gevent.spawn(_watch_hub_lag, history)

    def close(self) -> None:
        """Close every open client, and the history; Locust may not wait for its users."""
        self.clients.close()
        self._lag.kill()
        self._history.close()

    def seen(self) -> list[Row]:
        """Return the latest client events about rebalances, the latest first."""
        return list(reversed(self._seen))

    def _see(self, line: dict[str, Any]) -> None:
        if line["event"] in SHOWN_EVENTS:
            partitions = ", ".join(line.get("partitions", ())) or "nothing"
            self._seen.append(
                {
                    "at_ms": line["at_ms"],
                    "group": line.get("group") or "",
                    "reason": f"seen by client {line['member']}: {line['event']} {partitions}",
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
