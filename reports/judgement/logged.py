"""Logged rows of a group, chunk by chunk: requests column by column, with their bodies decoded.

Rows come from the tables `requests` and `transitions`. Requests are many, so each is a plain tuple
until the oracle's `ObservedRequest` is made of it; lines are few, and stay mappings.
"""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from operator import itemgetter
from tempfile import TemporaryFile
from typing import IO, Any

import msgspec

from kafka_protocol.apis import CONFIGURE, GROUP_APIS, OFFSET_FETCH
from kafka_protocol.errors import Error
from reference_coordinator.replay import ObservedRequest, Stall
from reference_coordinator.replay.lateness import NEVER_LATE, Lateness
from reports.judgement.rows import Json
from reports.judgement.run.history import ClientEvent
from reports.timing import HANDLING_DELAY_MS, LOGGED_WITHIN_MS

LoggedRow = Mapping[str, Any]
"""A row of the table `requests` or, where it has a `template`, of `transitions`."""

REQUEST = (
    "at_ms", "id", "broker", "api", "api_version", "client_id", "connection", "earliest_ms",
    "latest_ms", "answered_ms", "request", "response", "correlation_id", "error_code",
    "arrived_ms", "file", "line", "readable",
)  # fmt: skip
"""The columns of a request in their order, which is that of time."""
in_order = itemgetter("at_ms", "line", "broker")
"""Orders lines, those of several brokers at the same time too."""
_READABLE, _API = REQUEST.index("readable"), REQUEST.index("api")
_RESPONSE = REQUEST.index("response")
FENCED = re.compile(rf'"errorCode":{Error.FENCED_INSTANCE_ID}[,}}]')
"""FENCED_INSTANCE_ID (KIP-345) of a response, or of one of its members or partitions."""
_REQUEST_OF: Callable[[LoggedRow], tuple[Any, ...]] = itemgetter(*REQUEST)


def columns(*names: str) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return a function that takes two or more columns of a request's tuple (`REQUEST`)."""
    return itemgetter(*map(REQUEST.index, names))


_OF_RESPONSE = columns("response", "answered_ms", "client_id", "api", "id")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of one group: requests as tuples of the columns `REQUEST`, and coordinator lines.

    The lines are rows of the table `transitions`. Whatever comes in later chunks happens after
    `known_ms`. `events` are those of clients, `tapped` the requests that the tap saw, where it is
    a second witness.
    """

    requests: Sequence[tuple[Any, ...]]
    lines: Sequence[LoggedRow]
    known_ms: float = float("-inf")
    events: Sequence[ClientEvent] = ()
    tapped: Sequence[tuple[Any, ...]] = ()

    @classmethod
    def of(cls, rows: Iterable[LoggedRow]) -> "Chunk":
        """Take all rows of a group."""
        requests, lines = [], []
        for row in rows:
            if row["template"] is None:
                requests.append(_REQUEST_OF(row))
            else:
                lines.append(row)
        requests.sort(key=lambda row: (0.0 if row[0] is None else row[0], row[1]))
        return cls(requests, sorted(lines, key=in_order))

    @property
    def fenced(self) -> Iterator[tuple[Any, ...]]:
        """The requests whose response fences a client: when, which client, the API, the id."""
        for row in self.requests:
            if row[_READABLE] and row[_RESPONSE] is not None:
                response, at_ms, client_id, api, number = _OF_RESPONSE(row)
                if FENCED.search(response):
                    yield at_ms, client_id, api, number

    @property
    def fetches(self) -> "Requests":
        """The readable requests for committed offsets."""
        return Requests.decoded([row for row in self.answered if row[_API] == OFFSET_FETCH])

    @property
    def unanswered(self) -> "Requests":
        """The requests of members that have no answer: they are answered at infinity.

        The row has when the tap gave the request up, which tells nothing of its broker.
        """
        of_members = (row for row in self.requests if row[_READABLE] and row[_API] in GROUP_APIS)
        found = Requests.decoded([row for row in of_members if row[_RESPONSE] is None])
        never = [replace(seen, answered_ms=inf) for seen in found.observed]
        return replace(found, observed=never)

    @property
    def answered(self) -> Iterator[tuple[Any, ...]]:
        """The readable requests that were answered."""
        return (row for row in self.requests if row[_READABLE] and row[_RESPONSE] is not None)

    @property
    def apis(self) -> set[str]:
        """The APIs of all requests, readable or not."""
        return {row[_API] for row in self.requests}


@dataclass(frozen=True, slots=True)
class Requests:
    """The readable requests of a chunk about groups, column by column, in order of time.

    Bodies with the same text are one object, so nothing may change them.
    """

    observed: Sequence[ObservedRequest] = ()
    """What the oracle sees of them, before stalls."""
    error_codes: Sequence[int | None] = ()
    arrived_ms: Sequence[float] = ()

    @classmethod
    def of(cls, chunk: Chunk) -> "Requests":
        """Decode the requests of a chunk."""
        return cls.decoded([row for row in chunk.answered if row[_API] in (*GROUP_APIS, CONFIGURE)])

    @classmethod
    def decoded(cls, rows: Sequence[tuple[Any, ...]]) -> "Requests":
        """Decode requests with the columns `REQUEST`."""
        if not rows:
            return cls()
        (at, ids, brokers, apis, versions, clients, connections, earliest, latest, answered,
         requests, responses, serials, errors, arrived, *_) = zip(*rows, strict=True)  # fmt: skip
        bodies = {text: None if text is None else _decode(text) for text in {*requests, *responses}}
        body = bodies.__getitem__
        observed = map(
            ObservedRequest, ids, brokers, apis, versions, clients, connections, earliest, at,
            latest, answered, map(body, requests), map(body, responses), serials,
        )  # fmt: skip
        return cls(list(observed), errors, arrived)


def _decode(body: str) -> Json:
    try:
        found: Json = msgspec.json.decode(body)
    except msgspec.DecodeError:  # `json` also takes NaN and lone surrogates
        found = json.loads(body)
    return found


class HeldUp:
    """Widens the windows of requests by what stalls of their brokers explain."""

    def __init__(self, stalls: Sequence[Stall]) -> None:
        self.lateness: dict[str, Lateness] = {}
        """What may hold up each broker that stood still."""
        self._ends: dict[str, list[tuple[float, float]]] = {}
        for broker in {stall.broker for stall in stalls}:
            mine = Lateness.of(stall for stall in stalls if stall.broker == broker)
            self.lateness[broker] = mine
            self._ends[broker] = sorted((one.until_ms, one.from_ms) for one in mine.proven)
        lengths = (stall.until_ms - stall.from_ms for stall in stalls if stall.proven)
        self.most_ms = max((ms for ms in lengths if ms < inf), default=0.0)
        """How much earlier than logged a request may have come at most."""

    def widened(self, requests: Sequence[ObservedRequest]) -> Sequence[ObservedRequest]:
        """Return requests as the oracle sees them, acted on as late as stalls allow.

        And as early: where the broker stood still between reading the clock and writing the line,
        the whole request seems to have come so much too late.
        """
        return [self._widened(seen) for seen in requests] if self.lateness else requests

    def _widened(self, seen: ObservedRequest) -> ObservedRequest:
        earliest_ms, latest_ms = seen.earliest_ms, seen.latest_ms
        if latest_ms < seen.answered_ms:  # it may have waited for its turn, see `parsing`
            done_ms = latest_ms - HANDLING_DELAY_MS
            lateness = self.lateness.get(seen.broker, NEVER_LATE)
            latest_ms = min(seen.answered_ms, lateness.latest(done_ms, HANDLING_DELAY_MS))
        ends = self._ends.get(seen.broker, [])
        first = bisect_left(ends, (seen.answered_ms - LOGGED_WITHIN_MS, -inf))
        last = bisect_right(ends, (seen.answered_ms + LOGGED_WITHIN_MS, inf))
        for until_ms, from_ms in ends[first:last]:
            earliest_ms = min(earliest_ms, seen.earliest_ms - (until_ms - from_ms))
        if (earliest_ms, latest_ms) == (seen.earliest_ms, seen.latest_ms):
            return seen
        taken_ms = seen.started_ms
        return replace(seen, earliest_ms=earliest_ms, latest_ms=latest_ms, taken_ms=taken_ms)


def earlier(seen: ObservedRequest, by_ms: float) -> ObservedRequest:
    """Return a request whose line may have been written so late."""
    return replace(seen, earliest_ms=seen.earliest_ms - by_ms, taken_ms=seen.started_ms)


_unpacked: Callable[[bytes], Chunk] = msgspec.msgpack.Decoder(Chunk).decode


@dataclass(slots=True)
class KeptChunks:
    """Chunks in the order in which they came."""

    _first: list[Chunk] = field(default_factory=list)
    _file: IO[bytes] | None = None
    _sizes: list[int] = field(default_factory=list)

    def add(self, chunk: Chunk) -> None:
        """Keep one more: the first in memory, the others in the file."""
        if not self._first:
            self._first.append(chunk)
            return
        if self._file is None:
            self._file = TemporaryFile()  # noqa: SIM115, `close` closes it
        self._sizes.append(self._file.write(msgspec.msgpack.encode(chunk)))

    def passing(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Keep chunks, and pass them on."""
        for chunk in chunks:
            self.add(chunk)
            yield chunk

    def __len__(self) -> int:
        return len(self._first) + len(self._sizes)

    def __iter__(self) -> Iterator[Chunk]:
        yield from self._first
        if self._file is not None:
            self._file.seek(0)
            for size in self._sizes:
                yield _unpacked(self._file.read(size))

    def close(self) -> None:
        """Delete the temporary file, if there is one."""
        if self._file is not None:
            self._file.close()
