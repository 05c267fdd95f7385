"""Correlation ids: requests of a connection that no log has, where all of its client's are known.

A client numbers its requests, so a number that is missing between two logged requests is a request
that the log holds not. Wire members send what is logged, and nothing else after ApiVersions.
librdkafka asks beside it, on the connection to its coordinator, for the topics' metadata before it
assigns partitions as the leader, and for offsets once it has got its own (older logs lack that):
one number each (measured in 71 runs with 2.16.0); and for metadata again every
`topic.metadata.refresh.interval.ms`. Java's consumer numbers all its connections together, so a
hole in one of them shows nothing.

A coordinator keeps one JoinGroup of a member waiting. When the next one arrives, the first is never
answered (`updateMemberAndRebalance`, in Scala and Java), and is in no log. A librdkafka client goes
on counting on its next connection to the same broker, whose first request is ApiVersions. So a
JoinGroup that comes next there has a number higher by two; where one more was sent, by three at
least. That one was overtaken may be so, and is not `sure`. Seen on 2.6.0: librdkafka gave up a
connection 18 ms after it had sent a JoinGroup.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kafka_protocol.apis import OFFSET_FETCH
from reports.judgement.logged import REQUEST, columns
from reports.judgement.missing.gaps import unlogged_row
from reports.judgement.run.deliveries import COPY
from reports.judgement.run_context import RunContext

EARLY = 0.9  # how soon metadata may be asked for again, as a share of the interval
RECONNECTED = 2
"""How much higher the number of a group's first request on a new connection is."""
_NUMBERED = columns("connection", "correlation_id", "api")
_PLACE = columns("at_ms", "client_id", "broker", "line")
_LAST = columns("connection", "broker", "correlation_id", "answered_ms")
_AT, _CLIENT, _REQUEST = map(REQUEST.index, ("at_ms", "client_id", "request"))
_OF_NO_MEMBER = '"memberId":""'


class Hole(msgspec.Struct):
    """Numbers that were missing; `explained` of them the client used for something else.

    A number may be anything up to 2 ** 31, so only those that `came` since are kept one by one.
    """

    numbers: range
    explained: int
    before: tuple[str, int, float, str]
    """Broker, line, time and client of the request behind it."""
    from_ms: float  # the time of the request before it
    came: set[int] = msgspec.field(default_factory=set)

    @property
    def unexplained(self) -> int:
        """How many numbers nothing explains."""
        return len(self.numbers) - len(self.came) - self.explained


@dataclass(slots=True)
class Connection:
    """What was seen of a connection: its highest number, when that came; how its client goes on."""

    highest: int
    at_ms: float
    api: str
    may_fetch: bool  # whether the client may still ask for offsets
    holes: list[Hole] = field(default_factory=list)


@dataclass(slots=True)
class CorrelationIds:
    """Follows the connections of a group; requests come about in the order of time."""

    group: str
    context: RunContext
    _connections: dict[str, Connection] = field(default_factory=dict)
    _refreshed_ms: dict[str, float] = field(default_factory=dict)
    """When each client began, or last asked for something that is not logged."""
    _last: dict[str, tuple[str, str, int, float]] = field(default_factory=dict)
    """The connection, broker, number and answer's time of each client's last request."""
    _overtaken: list[dict[str, Any]] = field(default_factory=list)
    _fetches: bool = False  # whether the log holds requests for offsets

    def add(self, requests: Iterable[tuple[Any, ...]]) -> None:
        """Take requests with the columns `REQUEST`, readable or not."""
        of_wire, librdkafka = self.group in self.context.scripted, self.context.metadata_age_ms
        if not of_wire and not librdkafka:
            return
        connections = self._connections
        for row in requests:
            connection, number, api = _NUMBERED(row)
            if connection is not None and connection.endswith(COPY):
                continue  # a client numbers what it sends, and the tap sent it again
            if not of_wire and number is not None and row[_CLIENT] in librdkafka:
                self._reconnect(row)
            known = connections.get(connection)
            if known is not None and number == known.highest + 1:
                known.highest, known.at_ms, known.api = number, row[_AT] or 0.0, api
                if api == "SYNC_GROUP":
                    known.may_fetch = True
                elif api == OFFSET_FETCH:
                    self._fetches = True
            elif number is not None and (of_wire or row[_CLIENT] in librdkafka):
                self._jump(known, row, of_wire=of_wire)

    def _reconnect(self, row: tuple[Any, ...]) -> None:
        """Look whether a client came back on a new connection, with a JoinGroup sent before."""
        connection, number, api = _NUMBERED(row)
        at_ms, client, broker, line = _PLACE(row)
        last, self._last[client] = self._last.get(client), _LAST(row)
        if last is None or api != "JOIN_GROUP" or at_ms is None or last[3] is None:
            return
        returned = connection not in self._connections and connection != last[0]
        if returned and last[1] == broker and number > last[2] + RECONNECTED and last[3] < at_ms:
            if row[_REQUEST] is None or _OF_NO_MEMBER in row[_REQUEST]:
                return
            what = (
                f"a JoinGroup of {client} may have been overtaken by its next one, on a new"
                " connection: such a JoinGroup is never answered"
            )
            self._overtaken.append(unlogged_row(broker, line, last[3], at_ms, what, sure=False))

    def _jump(self, known: Connection | None, row: tuple[Any, ...], *, of_wire: bool) -> None:
        """Take the first request of a connection, or one that does not follow the last."""
        connection, number, api = _NUMBERED(row)
        at_ms, client, broker, line = _PLACE(row)
        self._refreshed_ms.setdefault(client, at_ms or 0.0)
        if known is None:
            self._connections[connection] = Connection(number, at_ms or 0.0, api, may_fetch=True)
            return
        if number > known.highest:
            explained = 0 if of_wire else self._explained(known, api, client, at_ms or 0.0)
            skipped = range(known.highest + 1, number)
            if len(skipped) > explained:
                known.holes.append(
                    Hole(skipped, explained, (broker, line, at_ms, client), known.at_ms)
                )
            known.highest, known.at_ms = number, at_ms or known.at_ms
        else:
            for hole in known.holes:
                if number in hole.numbers:
                    hole.came.add(number)
        known.api = api
        self._fetches |= api == OFFSET_FETCH
        known.may_fetch |= api == "SYNC_GROUP"

    def _explained(self, known: Connection, api: str, client: str, at_ms: float) -> int:
        """Return how many of the numbers that a client of librdkafka skips it has used itself."""
        if (known.api, api) == ("JOIN_GROUP", "SYNC_GROUP"):
            return 1
        if known.may_fetch and not self._fetches:
            known.may_fetch = False
            return 1
        if at_ms - self._refreshed_ms[client] < EARLY * self.context.metadata_age_ms[client]:
            return 0
        self._refreshed_ms[client] = at_ms
        return 1

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield holes as rows of `gaps.UNLOGGED`, once all requests are in."""
        for known in self._connections.values():
            for hole in known.holes:
                if (count := hole.unexplained) > 0:
                    broker, line, at_ms, client = hole.before
                    what = f"{count} requests of {client} missing, by their correlation ids"
                    yield unlogged_row(broker, line, hole.from_ms, at_ms, what)
        yield from self._overtaken
