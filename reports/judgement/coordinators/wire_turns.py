"""Turns at level `wire`: a broker takes up one request of a connection after the other.

A request may be forwarded while one before it still waits, as a Heartbeat behind a JoinGroup. The
broker reads it once it has answered that one.
"""

from collections.abc import Iterable
from dataclasses import replace

from reference_coordinator.replay import ObservedRequest, Tolerance
from reports.judgement.log.parsing import HANDLING_DELAY_MS

TOLERANCE = Tolerance(search=30_000)
"""More orders are tried where no line tells which came first."""
COPY = "-copy"
"""The end of the name of a connection that stands for the second of a request sent twice."""


def in_turn(requests: Iterable[ObservedRequest]) -> list[ObservedRequest]:
    """Return requests, which are in the order of their connections, with the windows of turns.

    The earliest instant stays: the tap has an answer a little after its broker sent it.
    """
    free_ms: dict[str, float] = {}
    found = []
    for seen in requests:
        connection = seen.connection.removesuffix(COPY)
        since_ms = free_ms.get(connection, seen.at_ms)
        free_ms[connection] = max(since_ms, seen.answered_ms)
        if seen.at_ms < since_ms <= seen.answered_ms:
            latest_ms = min(seen.answered_ms, since_ms + 2 * HANDLING_DELAY_MS)
            seen = replace(seen, at_ms=since_ms, latest_ms=latest_ms)  # noqa: PLW2901
        found.append(seen)
    return found
