"""Coordinator epochs by answers alone: which broker coordinated a group where no line tells it.

A broker coordinates a group while it answers for it, and does not while it answers NOT_COORDINATOR
or COORDINATOR_LOAD_IN_PROGRESS. When it loaded the group lies between the last answer that shows
that it had not and the first that shows that it had; so each event has a window. A broker that was
restarted has loaded the group again, too, and so has one that answers again after another did.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby, pairwise
from math import inf
from operator import attrgetter
from typing import NamedTuple

from kafka_protocol.errors import Error
from reference_coordinator.replay import EpochEvent, ObservedRequest
from reference_coordinator.replay.outside_errors import OF_BROKER
from reports.judgement.coordinators.coordinator_epochs import last_finished

SERVES, LOADS, ABSENT, THERE, OPEN = "serves", "loads", "absent", "there", "open"
"""What an answer says of its broker. A Heartbeat without an error only says that it is `THERE`: a
coordinator that still loads the group answers so, too (`GroupCoordinator.doHeartbeat`,
`GroupCoordinatorService.heartbeat`). A request without an answer leaves it `OPEN`."""
LOADS_MS = 5_000.0
"""How long before an answer that a broker loads the group such a Heartbeat may have been answered
by the same load, if nothing else is answered in between."""
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
FIRST_MS = 1_000.0
"""How long before its first request a group is taken to be loaded, where nothing tells when."""
APART_MS = 0.001
"""How far from the request that shows it an event is placed."""
DECIDED_MS = 1_000.0
"""How long before an answer that waited its coordinator may have decided it (`Tolerance.reply`)."""
Restart = tuple[str, float]
"""A broker (id) that a fault stopped or killed, and when, in ms."""


class Seen(NamedTuple):
    """An answer that says something of its broker (id); its times, in ms, are those of a request.

    In order of time.
    """

    at_ms: float
    broker: str
    says: str
    earliest_ms: float
    latest_ms: float
    answered_ms: float


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
        """Put requests that were served where their brokers coordinate the group."""
        return [self.placed(seen) for seen in requests] if self.events else requests

    def placed(self, seen: ObservedRequest) -> ObservedRequest:
        """Put a request that was served where its broker coordinates the group, if it may be."""
        for from_ms, until_ms in self.absent.get(seen.broker, ()):
            if from_ms < seen.at_ms < until_ms <= seen.latest_ms and _is_served(seen):
                return replace(seen, at_ms=min(until_ms + APART_MS, seen.latest_ms))
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


def _is_served(seen: ObservedRequest) -> bool:
    """Tell whether a coordinator that has loaded the group answered."""
    code = seen.response_fields.get("errorCode")
    if seen.api == "OFFSET_COMMIT":
        topics = seen.response_fields.get("topics", ())
        errors = (one["errorCode"] for topic in topics for one in topic["partitions"])
        code = next(errors, None)
    return code is not None and code not in SAYS and code not in SAYS_NOTHING


@dataclass(slots=True)
class _Serving:
    """Marks of one broker that serves, with those before and after that show that it did not."""

    marks: list[Mark]
    before: Sequence[Mark] = ()
    after: Mark | None = None
    not_before_ms: float = field(default=-inf)
    """When the broker was restarted, if it was."""

    @property
    def first(self) -> Mark:
        """The first mark."""
        return self.marks[0]

    @property
    def last(self) -> Mark:
        """The last mark."""
        return self.marks[-1]


def says_of(api: str, error_code: int | None, response: str | None) -> str | None:
    """Return what an answer says of its broker; None if it says nothing of it."""
    if response is None:
        return OPEN
    code = error_code
    if code is None:  # a commit has an error for each partition
        found = FIRST_ERROR.search(response)
        code = Error.NONE if found is None else int(found[1])
    if (api, code) == ("HEARTBEAT", Error.NONE):
        return THERE
    return None if code in SAYS_NOTHING else SAYS.get(code, SERVES)


def marks_of(seen: Seen) -> Iterator[Mark]:
    """Yield what an answer shows: a request that waited is accepted at once, and answered later."""
    mark, answered_ms = Mark(*seen[:-1]), seen.answered_ms
    if seen.says not in (SERVES, THERE, OPEN):
        yield mark._replace(at_ms=answered_ms, latest_ms=answered_ms)
        return
    yield mark
    if seen.says != OPEN and answered_ms > seen.latest_ms:
        yield Mark(answered_ms, seen.broker, seen.says, answered_ms - DECIDED_MS, answered_ms)


def wire_epochs(marks: Iterable[Mark], restarts: Iterable[Restart] = ()) -> WireEpochs:
    """Derive the epochs of a group; nothing where one broker served it all the time."""
    marks = list(_with_open(sorted(marks)))[::-1]
    found: list[_Serving] = []
    for broker in sorted({mark.broker for mark in marks}):
        mine = [mark for mark in marks if mark.broker == broker]
        times = sorted(at_ms for name, at_ms in restarts if name == broker)
        found += _servings(_steadied([*_with_loads(mine, times)][::-1]), times)
    found = _apart(found)
    found.sort(key=lambda one: (one.first.at_ms, one.first.broker))
    if len(found) < 2 and all(mark.says in (SERVES, THERE) for mark in marks):
        return NO_EPOCHS
    events = [event for one in found for event in _events(one, found)]
    events.sort(key=attrgetter("at_ms"))
    return WireEpochs(events, _absences(events))


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


def _with_open(marks: Sequence[Mark]) -> Iterator[Mark]:
    """Say of marks that are open what the next one says, if it is of their broker; latest first.

    So a coordinator may have served a request without an answer, and then loaded the group before,
    but that it did so is no more certain than by its next answer.
    """
    following: Mark | None = None
    for mark in reversed(marks):
        if mark.says != OPEN:
            following = mark
            yield mark
        elif following is not None and following.broker == mark.broker:
            yield mark._replace(says=following.says, latest_ms=following.latest_ms)


def _with_loads(marks: Sequence[Mark], restarts: Sequence[float]) -> Iterator[Mark]:
    """Say of marks that only tell that their broker is there whether it loads; latest first."""
    loads_ms = inf
    for mark in reversed(marks):
        if mark.says == THERE:
            loads = loads_ms <= mark.at_ms + LOADS_MS and not any(
                mark.at_ms < at_ms < loads_ms for at_ms in restarts
            )
            yield mark._replace(says=LOADS if loads else SERVES)
        else:
            loads_ms = mark.at_ms if mark.says == LOADS else inf
            yield mark


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


def _servings(marks: Sequence[Mark], restarts: Sequence[float]) -> Iterator[_Serving]:
    """Yield when a broker serves: from one change, or restart, to the next."""
    runs = [list(run) for _, run in groupby(marks, key=lambda mark: mark.says == SERVES)]
    for before, run, after in zip([[], *runs], runs, [*runs[1:], []], strict=False):
        if run[0].says != SERVES:
            continue
        parts: list[list[Mark]] = [[run[0]]]
        since = [-inf]
        for one, other in pairwise(run):
            restarted = [at for at in restarts if one.at_ms < at < other.at_ms]
            if restarted:
                parts.append([])
                since.append(max(restarted))
            parts[-1].append(other)
        for place, (part, since_ms) in enumerate(zip(parts, since, strict=True)):
            last = after[0] if after and place == len(parts) - 1 else None
            yield _Serving(part, () if place else before, last, since_ms)


def _apart(servings: Sequence[_Serving]) -> list[_Serving]:
    """Part a serving in which another broker served: it has loaded the group again."""
    found = list(servings)
    place = 0
    while place < len(found):
        one = found[place]
        for other in servings:
            if other.first.broker == one.first.broker:
                continue
            between = (other.first.at_ms, other.last.at_ms)
            count = sum(mark.at_ms < between[0] for mark in one.marks)
            later = [mark for mark in one.marks if mark.at_ms >= between[0]]
            if count and later and later[0].at_ms > between[1]:
                found[place] = replace(one, marks=one.marks[:count], after=None)
                found.append(_Serving(later, (), one.after, other.last.earliest_ms))
                one = found[place]
        place += 1
    return found


def _events(one: _Serving, servings: Iterable[_Serving]) -> Iterator[EpochEvent]:
    """Yield that a broker loads the group, has loaded it, and gives it up."""
    first, broker = one.first, one.first.broker
    absent = [mark for mark in one.before if mark.says == ABSENT]
    loads = [mark for mark in one.before if mark.says == LOADS]
    ended = (other.last for other in servings if other.last.at_ms < first.at_ms)
    since = [one.not_before_ms, *(mark.earliest_ms for mark in (*absent[-1:], *ended))]
    since_ms, begins = max(since), (loads[0] if loads else first)
    if since_ms == -inf:
        since_ms = begins.earliest_ms - FIRST_MS
    since_ms = min(since_ms, begins.latest_ms)
    begun_ms = max(since_ms, begins.at_ms - 2 * APART_MS)
    yield EpochEvent(begun_ms, broker, "loading", None, since_ms, max(begins.latest_ms, begun_ms))
    loaded_ms = first.at_ms - APART_MS
    from_ms = max(since_ms, loads[-1].earliest_ms) if loads else since_ms
    yield EpochEvent(loaded_ms, broker, "loaded", None, min(from_ms, loaded_ms), first.latest_ms)
    if one.after is not None:
        last, gone = one.last, one.after
        at_ms = last.at_ms + APART_MS
        until_ms = max(gone.latest_ms, at_ms)
        yield EpochEvent(at_ms, broker, "unloaded", None, last.earliest_ms, until_ms)
