"""Both witnesses of a group side by side: its brokers' requests are paired with those of the tap.

A request has the number that its client gave it (correlation id), on a connection that brokers and
tap name by the same two addresses. Behind a NAT, as of containers or a load balancer, they do not:
there the client alone counts. Requests with the same key, as those that a rule sent twice, are
paired in the order of their answers. A later connection may have the addresses of one that has
ended.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from operator import itemgetter
from typing import Any, NamedTuple

from reports.judgement.log.log_places import LogPlaces
from reports.judgement.logged import REQUEST
from reports.judgement.witnesses import Doubt, Kill, Row, compared_apis, differs, judged

Json = dict[str, Any]
Key = tuple[str, str, str, str, int]
"""Which request it is: broker, what both tell of the connection, client, API, number."""
Numbers = dict[tuple[str, str], set[int]]
"""By the connections of broker and tap, the numbers of the requests that are done with."""

WITNESSES = "group STRING, name STRING, count LONG"
"""What was compared of a group.

`compared` requests both have (`compared_by_number` where a NAT hides which connection is which),
`tap_alone` and `broker_alone` one of them, `not_through_tap` the broker's alone on connections that
the tap does not have."""
ADDRESSES = re.compile(r"(.*:\d+-.*:\d+)-\d")
"""The two addresses in the name of a connection."""
SIDE = (
    "readable", "broker", "connection", "client_id", "correlation_id", "api", "line",
    "answered_ms", "request", "response",
)  # fmt: skip
_SIDE: Callable[[tuple[Any, ...]], tuple[Any, ...]] = itemgetter(*map(REQUEST.index, SIDE))


class Connection(NamedTuple):
    """A connection that a witness saw: the broker (id), both addresses, the client."""

    broker: str
    addresses: str
    client: str

    @classmethod
    def of(cls, broker: str, connection: str | None, client_id: str | None) -> "Connection":
        """Return that of a request, of its columns of the table `requests`."""
        found = ADDRESSES.match(connection or "")
        return cls(broker, found[1] if found else "", client_id or "")


def hidden_by_nat(logged: Iterable[Connection], seen: Iterable[Connection]) -> frozenset[str]:
    """Return the brokers whose logs have requests, but none at an address of the tap's."""
    ours, theirs = ({(one.broker, one.addresses) for one in of} for of in (logged, seen))
    brokers = lambda of: {broker for broker, _ in of}
    return frozenset((brokers(ours) & brokers(theirs)) - brokers(ours & theirs))


@dataclass(frozen=True)
class Tap:
    """What is known of the tap over a whole run.

    `connections` are those that it saw requests to `compared_apis` on, `hidden` the brokers behind
    a NAT (`hidden_by_nat`). `places` are those of the brokers' lines and of the tap's; `ended_ms`
    is when it wrote its last line about each broker (id); `whole` tells whether none of its `lines`
    is missing.
    """

    connections: frozenset[Connection]
    hidden: frozenset[str] = frozenset()
    places: tuple[LogPlaces, LogPlaces] = (LogPlaces(), LogPlaces(folder="tap"))
    kills: Sequence[Kill] = ()
    ended_ms: Mapping[str, float] = field(default_factory=dict)
    whole: bool = True
    tells_bytes: bool = True
    lines: int = 0


class Pairs:
    """The pairs of one group; `counts` are those of `WITNESSES`."""

    def __init__(self, tap: Tap) -> None:
        """Begin with no request."""
        self.counts = Counter[str]()
        self._tap = tap
        self._apis = compared_apis(tells_bytes=tap.tells_bytes)
        self._known = {self._ends(one) for one in tap.connections}
        self._open: dict[Key, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
        self._done: dict[tuple[str, ...], Numbers] = defaultdict(lambda: defaultdict(set))
        """By what keys have beside their numbers."""

    def add(self, logged: Iterable[tuple[Any, ...]], seen: Iterable[tuple[Any, ...]]) -> None:
        """Take the next requests of both witnesses, in order of time, with the columns `REQUEST`.

        Of what both have, answered, and say alike the number alone stays: there are millions.
        """
        added: dict[Key, None] = {}
        for place, rows in enumerate((logged, seen)):
            for row in rows:
                readable, broker, connection, client, number, api, *_ = side = _SIDE(row)
                if not readable or api not in self._apis:
                    continue
                ends = self._ends(Connection.of(broker, connection, client))
                if ends not in self._known:
                    self.counts["not_through_tap"] += 1
                    continue
                key = (*ends, client or "", api, -1 if number is None else number)
                self._open[key][place].append(dict(zip(SIDE, side, strict=True)))
                added[key] = None
        for key in added:
            ours, theirs = self._in_order(key)
            answered = all(seen["response"] for seen in theirs)
            if answered and len(ours) == len(theirs) and all(map(self._are_alike, ours, theirs)):
                for names in zip(*map(_connections, (ours, theirs)), strict=True):
                    self._done[key[:-1]][names].add(key[-1])
                self.counts[self._kind(ours[0], theirs[0])] += len(ours)
                del self._open[key]

    def end(self) -> Iterator[Json]:
        """Yield the rows of `BREACHES` that the rest shows, in order."""
        tap, differing = self._tap, list[Json]()
        for key in sorted(self._open):
            doubt = self._doubt(key)
            for broker, seen in zip_longest(*self._in_order(key)):
                self.counts[self._kind(broker, seen)] += 1
                if not self._are_alike(broker, seen):
                    pair = {"broker": key[0], "doubt": doubt, "of_broker": broker, "of_tap": seen}
                    differing.append(pair)
        yield from judged(
            differing, tap.places, tap.kills, tap.ended_ms,
            whole=tap.whole, tells_bytes=tap.tells_bytes,
        )  # fmt: skip

    def _ends(self, connection: Connection) -> tuple[str, str]:
        """Return what both witnesses tell of a connection."""
        hidden = connection.broker in self._tap.hidden
        return connection.broker, connection.client if hidden else connection.addresses

    def _in_order(self, key: Key) -> tuple[list[Row], list[Row]]:
        """Return what brokers and tap have of a key, in the order of the answers."""
        for side in self._open[key]:
            side.sort(key=_answered)
        return self._open[key]

    def _are_alike(self, broker: Row | None, seen: Row | None) -> bool:
        return not differs(broker, seen, tells_bytes=self._tap.tells_bytes)

    def _kind(self, broker: Row | None, seen: Row | None) -> str:
        if broker is None:
            return "tap_alone"
        if seen is None:
            return "broker_alone"
        return "compared_by_number" if broker["broker"] in self._tap.hidden else "compared"

    def _doubt(self, key: Key) -> Doubt | None:
        """Return why a number may belong to either of several connections, if it may."""
        done = [names for names, numbers in self._done[key[:-1]].items() if key[-1] in numbers]
        counts = {len(side) + len(done) for side in self._open[key]}
        if key[0] in self._tap.hidden and counts != {1}:
            return Doubt.NAT
        for place, side in enumerate(self._open[key]):
            if len({*_connections(side), *(names[place] for names in done)}) > 1:
                return Doubt.AGAIN
        return None


def _connections(side: Iterable[Row]) -> Iterator[str]:
    return (one["connection"] for one in side)


def _answered(side: Row) -> tuple[bool, float, int]:
    at_ms = side["answered_ms"]
    return at_ms is None, at_ms or 0.0, side["line"]
