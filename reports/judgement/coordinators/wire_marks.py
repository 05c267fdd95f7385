"""The requests of a group at level `wire` that show where epochs end: few of many.

Nearly all answers show that a coordinator goes on. What counts are those near an answer that shows
that a broker does not coordinate the group, those before and after another broker's, and those
around a restart.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from kafka_protocol.apis import GROUP_APIS
from reports.judgement.coordinators.wire_epochs import ABSENT, LOADS, Restart, says_of

Row = Mapping[str, Any]
NEAR_MS = 5_000
"""How near: further than the windows of two requests reach."""


def telling(requests: Iterable[Row], restarts: Sequence[Restart]) -> Iterator[Row]:
    """Yield those of a group's requests, rows of that table, that show where epochs end."""
    said = [
        (row, says)
        for row in requests
        if row["readable"] and row["api"] in GROUP_APIS and (says := says_of(row)) is not None
    ]
    said.sort(key=lambda one: (one[0]["at_ms"], one[0]["line"]))
    away: dict[str, list[float]] = defaultdict(list)
    for row, says in said:
        if says in (LOADS, ABSENT):
            away[row["broker"]].append(row["at_ms"])
    rows = list(map(itemgetter(0), said))
    stops_ms = [at_ms for _, at_ms in restarts]
    for before, row, after in zip([None, *rows], rows, [*rows[1:], None], strict=False):
        if before is None or after is None or _is_near(away[row["broker"]], row["at_ms"]):
            yield row
        elif not before["broker"] == row["broker"] == after["broker"]:
            yield row
        elif any(before["at_ms"] <= at_ms <= after["at_ms"] for at_ms in stops_ms):
            yield row


def _is_near(times: Sequence[float], at_ms: float) -> bool:
    place = bisect_left(times, at_ms - NEAR_MS)
    return place < len(times) and times[place] <= at_ms + NEAR_MS
