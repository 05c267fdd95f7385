"""Silences: members that lived on, of which a log has nothing for too long before its end.

A member sends a heartbeat every `heartbeat.interval.ms` while it is in a group and waits for
nothing. So the log of a broker that was killed holds a request of each of its members within that
time before the kill, if the member went on elsewhere afterwards. A log that ends earlier was cut.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from kafka_protocol.errors import NO_ERROR
from reports.judgement.logged import REQUEST

SLACK_MS = 1_500.0
"""How much later than its interval a heartbeat may come: librdkafka looks once a second whether one
is due."""
GOES_ON = ("HEARTBEAT", "OFFSET_COMMIT")
"""What a member sends that is in its group."""
_AT, _BROKER, _API, _CLIENT = (
    REQUEST.index(name) for name in ("at_ms", "broker", "api", "client_id")
)
_OF_LAST = itemgetter(
    *map(REQUEST.index, ("broker", "api", "client_id", "answered_ms", "error_code", "line"))
)


@dataclass(slots=True)
class Silences:
    """Follows the members of a group; requests come about in the order of time.

    `kills` are (broker id, ms) of all brokers, `heartbeat_ms` the intervals by client id.
    """

    kills: Sequence[tuple[str, float]]
    heartbeat_ms: Mapping[str, float]
    _last: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """The last request of each client."""
    _found: list[dict[str, Any]] = field(default_factory=list)

    def add(self, requests: Iterable[tuple[Any, ...]]) -> None:
        """Take requests with the columns `REQUEST`, readable or not."""
        if not self.kills:
            return
        last = self._last
        for row in requests:
            client = row[_CLIENT]
            before = last.get(client)
            if before is not None and before[_BROKER] != row[_BROKER]:
                self._compare(before, row)
            last[client] = row

    def _compare(self, before: tuple[Any, ...], row: tuple[Any, ...]) -> None:
        """Compare a client's last request of one broker with its first of another."""
        broker, api, client, answered_ms, error, line = _OF_LAST(before)
        at_ms, goes_on = row[_AT], row[_API] in GOES_ON
        every_ms = self.heartbeat_ms.get(client)
        lived = (api, error) == ("HEARTBEAT", NO_ERROR) and goes_on
        if not lived or every_ms is None or None in (answered_ms, at_ms):
            return
        for killed, killed_ms in self.kills:
            silent_ms = killed_ms - answered_ms
            if killed == broker and silent_ms > every_ms + SLACK_MS and killed_ms < at_ms:
                what = f"nothing of {client} for {silent_ms:.0f} ms before the broker was killed"
                self._found.append(
                    {"broker": broker, "line": line, "at_ms": answered_ms, "what": what}
                )

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield what was found, as rows of `group.UNLOGGED`."""
        yield from self._found
