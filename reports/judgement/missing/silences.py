"""Silences: groups of which a log has nothing for too long before its broker was killed.

A member sends a heartbeat every `heartbeat.interval.ms` while it is in a group and waits for
nothing. So the log of a broker that was killed holds a request of a group within that time before
the kill, if one of its members went on afterwards. A log that ends earlier was cut, or the members
were silent: the numbers of their requests tell which, as librdkafka goes on with them when it
connects to another coordinator. Where the machine stopped for 9 s they skipped 3 numbers, measured.
Java numbers the requests of all its connections together, so of its members nothing is known. What
comes while a broker stands still is in no log.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from kafka_protocol.errors import NO_ERROR
from reference_coordinator.replay import Stall
from reference_coordinator.replay.lateness import Lateness
from reports.judgement.logged import REQUEST
from reports.judgement.missing.unlogged import unlogged_row

SLACK_MS = 1_500.0
"""How much later than its interval a heartbeat may come: librdkafka looks once a second whether one
is due."""
LATE_MS = 500.0
"""How much longer than the interval heartbeats are apart on the average: measured, 300."""
IN_GROUP = ("HEARTBEAT", "OFFSET_COMMIT", "OFFSET_FETCH", "SYNC_GROUP")
"""What a member sent last that was in its group and waits for nothing."""
GOES_ON = ("HEARTBEAT", "OFFSET_COMMIT")
"""What a member sends that is in its group."""
_AT, _API, _CLIENT, _BROKER, _ANSWERED, _ERROR, _LINE, _NUMBER = map(
    REQUEST.index,
    ("at_ms", "api", "client_id", "broker", "answered_ms", "error_code", "line", "correlation_id"),
)

Kill = tuple[str, float, float]
"""A broker (id) that was killed, and between when, in ms: the journal's intent, and its note."""


@dataclass(slots=True)
class Silences:
    """Follows the members of a group; requests come about in the order of time.

    `heartbeat_ms` are the intervals of librdkafka's members, by client id.
    """

    kills: Sequence[Kill]
    heartbeat_ms: Mapping[str, float]
    stalls: Sequence[Stall] = ()
    _last: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """The last request of each client."""
    _latest: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """The last request of the group on each broker."""
    _before: dict[Kill, tuple[Any, ...] | None] = field(default_factory=dict)
    """The last request of the group on a broker before it was killed."""
    _lived_on: dict[Kill, tuple[int, str]] = field(default_factory=dict)
    """How many numbers a client skipped that was silent before a kill, and in the group after it:
    of the one that skipped most."""

    def add(self, requests: Iterable[tuple[Any, ...]]) -> None:
        """Take requests with the columns `REQUEST`, readable or not."""
        if not self.kills:
            return
        last, latest = self._last, self._latest
        quiet_ms = min(self.heartbeat_ms.values(), default=0.0) + SLACK_MS
        next_ms = self._next_ms
        for row in requests:
            at_ms = row[_AT] or 0.0
            if at_ms > next_ms:
                self._pass(at_ms)
                next_ms = self._next_ms
            before = last.get(row[_CLIENT])
            if before is not None and at_ms - (before[_AT] or 0.0) > quiet_ms:
                self._compare(before, row)
            last[row[_CLIENT]] = latest[row[_BROKER]] = row

    @property
    def _next_ms(self) -> float:
        """When the next broker was killed."""
        return min((kill[2] for kill in self.kills if kill not in self._before), default=inf)

    def _pass(self, at_ms: float) -> None:
        """Note with which requests the logs end of brokers that were killed by now."""
        for kill in self.kills:
            if kill[2] < at_ms and kill not in self._before:
                self._before[kill] = self._latest.get(kill[0])

    def _compare(self, before: tuple[Any, ...], row: tuple[Any, ...]) -> None:
        """Take a client's last request before a silence, and its first one after it."""
        client = row[_CLIENT]
        refused = before[_ERROR] not in (NO_ERROR, None) or before[_API] not in IN_GROUP
        if refused or row[_API] not in GOES_ON or client not in self.heartbeat_ms:
            return
        for kill in self._before:
            if kill[0] == before[_BROKER] and (before[_AT] or 0.0) < kill[1] < (row[_AT] or 0.0):
                skipped = (row[_NUMBER] or 0) - (before[_NUMBER] or 0) - 1
                self._lived_on[kill] = max(self._lived_on.get(kill, (0, "")), (skipped, client))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield what was found, as rows of `group.UNLOGGED`."""
        for kill, (skipped, client) in self._lived_on.items():
            broker, killed_ms, _ = kill
            last = self._before[kill]
            if last is None or last[_ANSWERED] is None:
                continue
            every_ms = self.heartbeat_ms.get(client, inf)
            still = Lateness.of(s for s in self.stalls if s.proven and s.broker == broker)
            silent_ms = killed_ms - last[_ANSWERED] - still.stalled_ms(last[_ANSWERED], killed_ms)
            sent = skipped >= silent_ms / (every_ms + LATE_MS) - 1
            if silent_ms > every_ms + SLACK_MS and sent:
                what = (
                    f"no request for {silent_ms:.0f} ms before the broker was killed, though"
                    f" {client} was in its group"
                )
                yield unlogged_row(broker, last[_LINE], last[_ANSWERED], kill[2], what)
