"""Silences: members that lived on, of which a log has nothing for too long before its end.

A member sends a heartbeat every `heartbeat.interval.ms` while it is in a group and waits for
nothing. So the log of a broker that was killed holds a request of each of its members within that
time before the kill, if the member went on elsewhere afterwards. A log that ends earlier was cut.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka_protocol.errors import NO_ERROR
from reports.judgement.logged import REQUEST

SLACK_MS = 1_500.0
"""How much later than its interval a heartbeat may come: librdkafka looks once a second whether one
is due."""
GOES_ON = ("HEARTBEAT", "OFFSET_COMMIT")
"""What a member sends that is in its group."""
_PLACES = tuple(
    map(REQUEST.index, ("at_ms", "broker", "api", "client_id", "answered_ms", "error_code", "line"))
)


@dataclass(slots=True)
class Silences:
    """Follows the members of a group; requests come about in the order of time.

    `kills` are (broker id, ms) of all brokers, `heartbeat_ms` the intervals by client id.
    """

    kills: Sequence[tuple[str, float]]
    heartbeat_ms: Mapping[str, float]
    _last: dict[str, tuple[str, float, int, bool]] = field(default_factory=dict)
    _found: list[dict[str, Any]] = field(default_factory=list)

    def add(self, requests: Iterable[tuple[Any, ...]]) -> None:
        """Take requests with the columns `REQUEST`, readable or not."""
        if not self.kills:
            return
        for row in requests:
            at_ms, broker, api, client, answered_ms, error, line = [row[i] for i in _PLACES]
            if at_ms is None or client not in self.heartbeat_ms:
                continue
            before = self._last.get(client)
            if before is not None and before[0] != broker and before[3] and api in GOES_ON:
                self._compare(client, before, at_ms)
            lives = api == "HEARTBEAT" and error == NO_ERROR
            self._last[client] = broker, answered_ms or at_ms, line, lives

    def _compare(self, client: str, before: tuple[str, float, int, bool], at_ms: float) -> None:
        broker, last_ms, line, _ = before
        most_ms = self.heartbeat_ms[client] + SLACK_MS
        for killed, killed_ms in self.kills:
            silent_ms = killed_ms - last_ms
            if killed == broker and last_ms + most_ms < killed_ms < at_ms:
                what = f"nothing of {client} for {silent_ms:.0f} ms before the broker was killed"
                self._found.append({"broker": broker, "line": line, "at_ms": last_ms, "what": what})

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield what was found, as rows of `group.UNLOGGED`."""
        yield from self._found
