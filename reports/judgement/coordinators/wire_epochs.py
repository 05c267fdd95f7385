"""Level `wire`: which broker coordinated a group, and when it took up requests, by answers alone.

A broker coordinates a group while it answers for it, and does not while it answers NOT_COORDINATOR
or COORDINATOR_LOAD_IN_PROGRESS. When it loaded the group lies between the last answer that shows
that it had not and the first that shows that it had; so each event has a window. A broker that was
restarted has loaded the group again, too, and so has one that answers again after another did.

Nearly all answers show that a coordinator goes on, and are not kept. What tells are those near an
answer that shows that a broker does not coordinate the group, those before and after another
broker's, and those around a restart. Requests without an answer are few: all are kept, with those
beside them.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby, pairwise
from math import inf
from operator import attrgetter
from typing import NamedTuple

from kafka_protocol.apis import GROUP_APIS
from kafka_protocol.errors import Error
from reference_coordinator.replay import EpochEvent, ObservedRequest, Tolerance
from reference_coordinator.replay.outside_errors import OF_BROKER
from reports.judgement.coordinators.coordinator_epochs import last_finished
from reports.judgement.logged import Chunk, columns
from reports.judgement.run.deliveries import COPY
from reports.timing import (
    DECIDED_MS,
    EVENT_APART_MS,
    HANDLING_DELAY_MS,
    LOADED_BEFORE_MS,
    LOADS_MS,
    MARKS_NEAR_MS,
)

SERVES, LOADS, ABSENT, THERE, OPEN = "serves", "loads", "absent", "there", "open"
"""What an answer says of its broker. A Heartbeat without an error only says that it is `THERE`: a
coordinator that still loads the group answers so, too (`GroupCoordinator.doHeartbeat`,
`GroupCoordinatorService.heartbeat`). A request without an answer leaves it `OPEN`."""
SAYS: Mapping[int, str] = {Error.COORDINATOR_LOAD_IN_PROGRESS: LOADS, Error.NOT_COORDINATOR: ABSENT}
SAYS_NOTHING = frozenset(
    {
        *OF_BROKER,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.INVALID_GROUP_ID,
        Error.INVALID_SESSION_TIMEOUT,
        Error.UNSUPPORTED_VERSION,
    }
)
"""Errors that a broker answers with whether or not it coordinates the group; and 15, which a failed
write has, too."""
FIRST_ERROR = re.compile(r'"errorCode":(-?\d+)')
TOLERANCE = Tolerance(search=30_000)
"""More orders are tried where no line tells which came first."""
Restart = tuple[str, float]
"""A broker (id) that a fault stopped or killed, and when, in ms."""
_ASKED = columns("readable", "api", "error_code", "response")
_PLACED = columns("at_ms", "broker", "earliest_ms", "latest_ms", "answered_ms")


class Mark(NamedTuple):
    """What an answer says of its broker (id), at an instant within a window, in ms."""

    at_ms: float
    broker: str
    says: str
    earliest_ms: float
    latest_ms: float


@dataclass(frozen=True, slots=True)
class WireEpochs:
    """The epoch events of a group, and its loads, in order of time."""

    events: Sequence[EpochEvent] = ()
    absent: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    """Between when a broker (id) did not coordinate the group, up to a load, in ms."""

    def all_placed(self, requests: Sequence[ObservedRequest]) -> Sequence[ObservedRequest]:
        """Put requests that were served where their brokers coordinate the group, if possible."""
        return [self._placed(seen) for seen in requests] if self.events else requests

    def _placed(self, seen: ObservedRequest) -> ObservedRequest:
        for from_ms, until_ms in self.absent.get(seen.broker, ()):
            if from_ms < seen.at_ms < until_ms <= seen.latest_ms and _is_served(seen):
                return replace(seen, at_ms=min(until_ms + EVENT_APART_MS, seen.latest_ms))
        return seen

    @property
    def loads(self) -> list[EpochEvent]:
        """When brokers had loaded the group, in order of time."""
        loaded = (event for event in self.events if event.kind == "loaded")
        return sorted(loaded, key=attrgetter("at_ms", "broker"))

    def incarnation(self, broker: str, at_ms: float) -> int:
        """Return the number of the load that a broker last finished before a time, or 0."""
        return last_finished(self.loads, broker, at_ms)


NO_EPOCHS = WireEpochs()


def epochs_of(chunks: Iterable[Chunk], restarts: Iterable[Restart]) -> WireEpochs:
    """Derive the epochs of a group of its requests, chunk by chunk; few of them are kept."""
    restarts = list(restarts)
    at_ms = sorted(at_ms for _, at_ms in restarts)
    found: list[Mark] = []
    for chunk in chunks:
        known_ms = chunk.known_ms if chunk.known_ms > -inf else inf
        found = list(telling(sorted([*found, *_marks_in(chunk)]), at_ms, known_ms))
    return wire_epochs(found, restarts)


def _marks_in(chunk: Chunk) -> Iterator[Mark]:
    for row in chunk.requests:
        readable, api, error_code, response = _ASKED(row)
        if readable and api in GROUP_APIS:
            says = _says_of(api, error_code, response)
            if says is not None:
                at_ms, broker, *times = _PLACED(row)
                yield from marks_of(at_ms, broker, says, *times)


def _says_of(api: str, error_code: int | None, response: str | None) -> str | None:
    """Return what an answer says of its broker; None if it says nothing of it."""
    if response is None:
        return OPEN
    code = error_code
    if code is None:  # a commit has an error for each partition
        found = FIRST_ERROR.search(response)
        code = Error.NONE if found is None else int(found[1])
    return THERE if (api, code) == ("HEARTBEAT", Error.NONE) else _says(code)


def _says(code: int) -> str | None:
    return None if code in SAYS_NOTHING else SAYS.get(code, SERVES)


def _is_served(seen: ObservedRequest) -> bool:
    """Tell whether a coordinator that has loaded the group answered."""
    code = seen.response_fields.get("errorCode")
    if seen.api == "OFFSET_COMMIT":
        topics = seen.response_fields.get("topics", ())
        errors = (one["errorCode"] for topic in topics for one in topic["partitions"])
        code = next(errors, None)
    return code is not None and _says(code) == SERVES


def marks_of(
    at_ms: float, broker: str, says: str, earliest_ms: float, latest_ms: float, answered_ms: float
) -> Iterator[Mark]:
    """Yield what an answer shows: a request that waited is accepted at once, and answered later."""
    if says in (LOADS, ABSENT):
        yield Mark(answered_ms, broker, says, earliest_ms, answered_ms)
        return
    yield Mark(at_ms, broker, says, earliest_ms, latest_ms)
    if says != OPEN and answered_ms > latest_ms:
        yield Mark(answered_ms, broker, says, answered_ms - DECIDED_MS, answered_ms)


def telling(
    marks: Sequence[Mark], restarts_ms: Sequence[float], known_ms: float = inf
) -> Iterator[Mark]:
    """Yield the marks that may show where an epoch ends.

    All is in order of time. What comes later happens after `known_ms`: a mark that may still get a
    telling neighbour is yielded, too. So nothing is lost where its result is taken with what
    follows, and sifted again.
    """
    away_ms: dict[str, list[float]] = defaultdict(list)
    for one in marks:
        if one.says in (LOADS, ABSENT):
            away_ms[one.broker].append(one.at_ms)
    for place, one in enumerate(marks):
        before, after = marks[max(place - 1, 0)], marks[min(place + 1, len(marks) - 1)]
        if (
            OPEN in (before.says, one.says, after.says)
            or before is one
            or after is one
            or not before.broker == one.broker == after.broker
            or one.at_ms > known_ms - MARKS_NEAR_MS
            or _are_any(away_ms[one.broker], one.at_ms - MARKS_NEAR_MS, one.at_ms + MARKS_NEAR_MS)
            or _are_any(restarts_ms, before.at_ms, after.at_ms)
        ):
            yield one


def _are_any(times: Sequence[float], from_ms: float, until_ms: float) -> bool:
    return bisect_left(times, from_ms) < bisect_right(times, until_ms)


@dataclass(slots=True)
class _Serving:
    """Marks of one broker that serves, with those before and after that show that it did not."""

    marks: list[Mark]
    before: Sequence[Mark] = ()
    after: Mark | None = None
    not_before_ms: float = field(default=-inf)
    """When the broker was restarted, or another one served, if that was so."""

    @property
    def first(self) -> Mark:
        """The first mark."""
        return self.marks[0]

    @property
    def last(self) -> Mark:
        """The last mark."""
        return self.marks[-1]

    def parted(self, breaks: Sequence[tuple[float, float, float]]) -> Iterator["_Serving"]:
        """Part it where a break lies between two marks: the broker has loaded the group again.

        A break has its begin and its end, and since when on the group may have been loaded.
        """
        part = _Serving(self.marks[:1], self.before, None, self.not_before_ms)
        for one, other in pairwise(self.marks):
            since = [ms for begin, end, ms in breaks if one.at_ms < begin and end < other.at_ms]
            if since:
                yield part
                part = _Serving([], not_before_ms=max(since))
            part.marks.append(other)
        part.after = self.after
        yield part


def wire_epochs(marks: Iterable[Mark], restarts: Iterable[Restart] = ()) -> WireEpochs:
    """Derive the epochs of a group; nothing where one broker served it all the time."""
    known = _decided(marks, restarts := list(restarts))
    alone: list[_Serving] = []
    for broker, mine in sorted(known.items()):
        breaks = [(at_ms, at_ms, at_ms) for name, at_ms in restarts if name == broker]
        for one in _servings(_steadied(mine)):
            alone += one.parted(breaks)
    others = [
        (other.first.broker, (other.first.at_ms, other.last.at_ms, other.last.earliest_ms))
        for other in alone
    ]
    found: list[_Serving] = []
    for one in alone:
        found += one.parted([times for broker, times in others if broker != one.first.broker])
    found.sort(key=lambda one: (one.first.at_ms, one.first.broker))
    if len(found) < 2 and all(mark.says == SERVES for mine in known.values() for mark in mine):
        return NO_EPOCHS
    events = [event for one in found for event in _events(one, found)]
    events.sort(key=attrgetter("at_ms"))
    return WireEpochs(events, _absences(events))


def _decided(marks: Iterable[Mark], restarts: Sequence[Restart]) -> Mapping[str, Sequence[Mark]]:
    """Say of each mark whether its broker serves, loads or is absent; by broker, in order of time.

    One that is open says what the next one says, if it is of its broker. So a coordinator may have
    served a request without an answer, and then loaded the group before, but that it did so is no
    more certain than by its next answer. One that only tells that its broker is there was answered
    by a load that is under way soon after, unless the broker was restarted in between.
    """
    found: dict[str, list[Mark]] = defaultdict(list)
    loads_ms: dict[str, float] = defaultdict(lambda: inf)
    following: Mark | None = None
    for mark in sorted(marks, reverse=True):
        says, broker, latest_ms = mark.says, mark.broker, mark.latest_ms
        if says != OPEN:
            following = mark
        elif following is None or following.broker != broker:
            continue
        else:
            says, latest_ms = following.says, following.latest_ms
        if says != THERE:
            loads_ms[broker] = mark.at_ms if says == LOADS else inf
        else:
            load_ms = loads_ms[broker]
            again = any(name == broker and mark.at_ms < ms < load_ms for name, ms in restarts)
            says = LOADS if load_ms <= mark.at_ms + LOADS_MS and not again else SERVES
        found[broker].append(mark._replace(says=says, latest_ms=latest_ms))
    return {broker: mine[::-1] for broker, mine in found.items()}


def _steadied(marks: Sequence[Mark]) -> list[Mark]:
    """Order the marks of a broker so that it changes as seldom as their windows allow.

    A mark that is put after another comes no earlier than that.
    """
    by_ms = min(mark.latest_ms for mark in marks)
    begins = dict.fromkeys(mark.says for mark in marks if mark.earliest_ms <= by_ms)
    orders = [_in_order_from(says, marks) for says in begins]
    steady = min(orders, key=lambda order: len(list(groupby(order, key=attrgetter("says")))))
    times = accumulate((mark.at_ms for mark in steady), max)
    return [mark._replace(at_ms=at_ms) for mark, at_ms in zip(steady, times, strict=True)]


def _in_order_from(says: str, marks: Sequence[Mark]) -> list[Mark]:
    """Order marks so that those that say the same follow each other, those that say this first."""
    left, found = list(marks), list[Mark]()
    while left:
        most_urgent = min(left, key=attrgetter("latest_ms"))
        open_now = [mark for mark in left if mark.earliest_ms <= most_urgent.latest_ms]
        following = next((mark for mark in open_now if mark.says == says), most_urgent)
        left.remove(following)
        found.append(following)
        says = following.says
    return found


def _servings(marks: Sequence[Mark]) -> Iterator[_Serving]:
    """Yield when a broker serves: from one change to the next."""
    runs = [list(run) for _, run in groupby(marks, key=lambda mark: mark.says == SERVES)]
    for before, run, after in zip([[], *runs], runs, [*runs[1:], []], strict=False):
        if run[0].says == SERVES:
            yield _Serving(run, before, after[0] if after else None)


def _events(one: _Serving, servings: Iterable[_Serving]) -> Iterator[EpochEvent]:
    """Yield that a broker loads the group, has loaded it, and gives it up."""
    first, broker = one.first, one.first.broker
    absent = [mark for mark in one.before if mark.says == ABSENT]
    loads = [mark for mark in one.before if mark.says == LOADS]
    ended = (other.last for other in servings if other.last.at_ms < first.at_ms)
    since = [one.not_before_ms, *(mark.earliest_ms for mark in (*absent[-1:], *ended))]
    since_ms, begins = max(since), (loads[0] if loads else first)
    if since_ms == -inf:
        since_ms = begins.earliest_ms - LOADED_BEFORE_MS
    since_ms = min(since_ms, begins.latest_ms)
    begun_ms = max(since_ms, begins.at_ms - 2 * EVENT_APART_MS)
    yield EpochEvent(begun_ms, broker, "loading", None, since_ms, max(begins.latest_ms, begun_ms))
    loaded_ms = first.at_ms - EVENT_APART_MS
    from_ms = max(since_ms, loads[-1].earliest_ms) if loads else since_ms
    yield EpochEvent(loaded_ms, broker, "loaded", None, min(from_ms, loaded_ms), first.latest_ms)
    if one.after is not None:
        last, gone = one.last, one.after
        at_ms = last.at_ms + EVENT_APART_MS
        until_ms = max(gone.latest_ms, at_ms)
        yield EpochEvent(at_ms, broker, "unloaded", None, last.earliest_ms, until_ms)


def _absences(events: Iterable[EpochEvent]) -> Mapping[str, Sequence[tuple[float, float]]]:
    """Return between when each broker did not coordinate the group, up to a load."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    gone_ms: dict[str, float] = defaultdict(lambda: -inf)
    for event in events:
        if event.kind == "loaded":
            found[event.broker].append((gone_ms[event.broker], event.at_ms))
            gone_ms[event.broker] = inf
        elif event.kind in ("unloaded", "loading"):
            gone_ms[event.broker] = min(gone_ms[event.broker], event.at_ms)
    return found


def in_turn(requests: Iterable[ObservedRequest]) -> list[ObservedRequest]:
    """Return requests, which are in the order of their connections, with the windows of turns.

    A broker takes up one request of a connection after the other: one may be forwarded while one
    before it still waits, as a Heartbeat behind a JoinGroup. The earliest instant stays: the tap
    has an answer a little after its broker sent it.
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
