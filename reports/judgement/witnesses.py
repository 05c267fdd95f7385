"""Two witnesses of each request: the line of its broker, and what the tap saw on the wire.

Where a run has both, they must say the same. Which of them is wrong, neither tells: a finding names
both places.

A request has the number that its client gave it (correlation id), on a connection that brokers and
tap name by the same two addresses. Behind a NAT, as of containers or a load balancer, they do not:
there the client alone counts. Requests with the same key, as those that a rule sent twice, are
paired in the order of their answers. A later connection may have the addresses of one that has
ended.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

from kafka_protocol.apis import GROUP_APIS, LOGGED_APIS
from kafka_protocol.bodies import FORMER_NAMES
from reports.judgement.breaches import Breach, breach
from reports.judgement.log.log_places import LogPlaces
from reports.judgement.logged import columns
from reports.judgement.rows import Json, Row
from reports.judgement.run.disturbance import Kill
from reports.timing import TAP_ENDS_MS, UNLOGGED_MS

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
_SIDE = columns(*SIDE)
NOT_COMPARED = "throttleTimeMs"  # a client waits for this time; the tap does not


class Doubt(StrEnum):
    """Why two sides may not be of one request."""

    NAT = "by its number alone: the broker logs other addresses than the tap"
    AGAIN = "by its number and addresses alone: two connections of the client had the same"


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

    def is_killed(self, broker: str, answered_ms: float) -> bool:
        """Tell whether a broker may have had no time to log what it answered at a time."""
        return any(
            killed == broker and from_ms - UNLOGGED_MS <= answered_ms <= until_ms
            for killed, from_ms, until_ms in self.kills
        )


class Pairs:
    """The pairs of one group; `counts` are those of `WITNESSES`."""

    def __init__(self, tap: Tap) -> None:
        self.counts = Counter[str]()
        self._tap = tap
        self._apis = compared_apis(tells_bytes=tap.tells_bytes)
        self._differ = partial(differs, tells_bytes=tap.tells_bytes)
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
            if answered and len(ours) == len(theirs) and not any(map(self._differ, ours, theirs)):
                for names in zip(*map(_connections, (ours, theirs)), strict=True):
                    self._done[key[:-1]][names].add(key[-1])
                self.counts[self._kind(ours[0], theirs[0])] += len(ours)
                del self._open[key]

    def end(self) -> Iterator[Json]:
        """Yield the rows of `BREACHES` that the rest shows, in order."""
        for key in sorted(self._open):
            doubt = self._doubt(key)
            for logged, seen in zip_longest(*self._in_order(key)):
                self.counts[self._kind(logged, seen)] += 1
                if self._differ(logged, seen):
                    yield from judged(key[0], logged, seen, doubt, self._tap)

    def _ends(self, connection: Connection) -> tuple[str, str]:
        """Return what both witnesses tell of a connection."""
        hidden = connection.broker in self._tap.hidden
        return connection.broker, connection.client if hidden else connection.addresses

    def _in_order(self, key: Key) -> tuple[list[Row], list[Row]]:
        """Return what brokers and tap have of a key, in the order of the answers."""
        for side in self._open[key]:
            side.sort(key=_answered)
        return self._open[key]

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


def compared_apis(*, tells_bytes: bool) -> tuple[str, ...]:
    """Return the APIs that both witnesses have: logs before 2.8 hold no OffsetFetch."""
    return LOGGED_APIS if tells_bytes else GROUP_APIS


def differs(broker: Row | None, tap: Row | None, *, tells_bytes: bool = True) -> bool:
    """Tell whether two sides of a request differ, or one is missing that has to be there."""
    if broker is None or tap is None:
        return True
    return any(True for _ in _differences(broker, tap, tells_bytes=tells_bytes))


def judged(
    broker: str, logged: Row | None, seen: Row | None, doubt: Doubt | None, tap: Tap
) -> Iterator[Json]:
    """Yield the breach that a broker's (id) and the tap's side of a request show, if they do.

    With a `doubt` these may not be one request: what they show is not proven then.
    """
    of_broker, of_tap = tap.places
    side: Row = seen if logged is None else logged  # type: ignore[assignment]
    about = f"{side['api']} of {side['client_id']}, number {side['correlation_id']}"
    if doubt:
        about += f" ({doubt})"
    at_broker = "" if logged is None else of_broker.written(broker, logged["line"])
    at_tap = "" if seen is None else of_tap.written(broker, seen["line"])
    proven = doubt is None
    if logged is not None and seen is not None:
        words = _differences(logged, seen, tells_bytes=tap.tells_bytes)
        ours, theirs = (", ".join(each) for each in zip(*words, strict=True))
        expected, observed = f"{about}: {ours} in {at_broker}", f"{theirs} in {at_tap}"
    elif seen is None:
        expected, observed = f"{about}: a line of the tap", f"none, and a line in {at_broker}"
        proven &= tap.whole and side["answered_ms"] < tap.ended_ms.get(broker, 0.0) - TAP_ENDS_MS
    elif seen["response"] is None or tap.is_killed(broker, seen["answered_ms"]):
        return
    else:
        expected = f"{about}: a line of broker {broker}"
        observed = f"none, and an answer in {at_tap}"
    at_ms = side["answered_ms"]
    row = breach(Breach.BROKER_AND_WIRE, at_ms, expected, observed, proven=proven)
    yield {**row, "broker": broker, "line": 0 if logged is None else logged["line"]}


def _connections(side: Iterable[Row]) -> Iterator[str]:
    return (one["connection"] for one in side)


def _answered(side: Row) -> tuple[bool, float, int]:
    at_ms = side["answered_ms"]
    return at_ms is None, at_ms or 0.0, side["line"]


def _differences(broker: Row, tap: Row, *, tells_bytes: bool) -> Iterator[tuple[str, str]]:
    """Yield what the broker's line says of a field, and what the tap's says."""
    for body in ("request", "response") if tells_bytes else ("response",):
        if tap[body] is None or broker[body] == tap[body]:
            continue
        ours, theirs = (_plain(json.loads(side[body])) for side in (broker, tap))
        if not tells_bytes:
            ours, theirs = ({"errorCode": one.get("errorCode")} for one in (ours, theirs))
        for name in sorted({*ours, *theirs}):
            if ours.get(name) != theirs.get(name):
                yield tuple(f"{body} {name}={_shown(one.get(name))}" for one in (ours, theirs))  # type: ignore[misc]


def _plain(value: Any) -> Any:
    """Leave out what is null or not compared, and name fields as all releases may.

    The tap names them as the newest release does, and a broker as its own.
    """
    if isinstance(value, dict):
        named = {FORMER_NAMES.get(key, key): one for key, one in value.items()}
        found = {key: _plain(one) for key, one in named.items() if key != NOT_COMPARED}
        return {key: one for key, one in found.items() if one is not None}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= 80 else f"{text[:77]}..."
