"""What the application saw: records lost, processed twice, out of order, after the give-up.

Members note which records they processed (`processed` in the client history), at most once a second
and always before a line about a commit or the end of an ownership. What they committed and where
they began is in their requests: OffsetCommit, and the OffsetFetch after an assignment.

*Lost* is what a member committed past and no member of the group processed, from the first offset
that the group committed, fetched or processed to the last one processed. A commit after which its
client said nothing more proves nothing: a process that died may have noted less than it did.
*Twice* is allowed from the offset on that the coordinator gave to the member as it began:
at-least-once delivery. Records before that offset are read again for no reason.
Of a topic that a fault deletes nothing is judged; a commit without a member id is an operator's.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any

from kafka_protocol.errors import Error, name_of
from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.client_answers import as_delivered
from reports.judgement.clients.client_rules.client_processes import Rule
from reports.judgement.clients.offsets import fetched, stored
from reports.judgement.clients.ranges import Range, Ranges
from reports.judgement.clients.record_rules import (
    BEGINS_AT_ITS_COMMIT,
    KEEPS_ORDER,
    LOSES_NO_RECORD,
    NUMBERS_GO_ON,
    STOPS_WHEN_GIVEN_UP,
)
from reports.judgement.run.deliveries import InOrder
from reports.judgement.run.disturbance import of_partition
from reports.judgement.run.history import ClientEvent
from reports.judgement.run_context import RunContext
from reports.timing import NOTED_MS

Json = dict[str, Any]

RECORDS = """
    group STRING, partition STRING, member STRING, what STRING, first LONG, last LONG,
    records LONG, from_ms DOUBLE, until_ms DOUBLE
"""
"""Ranges of offsets and `what` a member did with them: `processed`, and of these `twice` (allowed),
`again` (twice and not allowed), `out_of_order`, `after_given_up` and `misnumbered`; `lost`, which
the member committed past; `unnoted`, the same of a member that never notes what it processes. The
time is the second before its note, or its commit."""
UNNOTED = "unnoted"
GAVE_UP = {"revoked": "gave it up", "lost": "lost it"}
"""The events by which a member gives partitions up while its process goes on, in words."""
OUT = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID)
"""The answers that say to a client that it is no member any more."""


@dataclass(slots=True)
class _Partition:
    """What a group did with a partition."""

    done: Ranges = field(default_factory=Ranges)  # processed, by whichever member
    began: float = inf  # the first offset that was committed or fetched
    top: int = 0  # the highest offset that was committed
    last: int = 0  # the offset that was committed last
    owner: str = ""  # who was assigned it last
    passed: list[tuple[int, int, ObservedRequest]] = field(default_factory=list)
    """What commits went past, before anybody was known to have processed it."""


@dataclass(slots=True)
class _Client:
    """What a client of the group is known to be at."""

    notes: bool = False  # whether it ever said what it processed
    said_ms: float = -inf  # its last event
    created_ms: float = -inf
    noted_ms: dict[str, float] = field(default_factory=dict)
    highest: dict[str, int] = field(default_factory=dict)
    began_ms: dict[str, float] = field(default_factory=dict)
    given: dict[str, int] = field(default_factory=dict)
    """By partition: the offset at which the coordinator let it begin."""
    fetched: set[str] = field(default_factory=set)  # the partitions, since it joined last
    gave_up: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By partition: the event by which it gave that up, and when."""
    out: tuple[str, float] | None = None  # the answer that says so, and when it came
    poll_ms: float = inf  # the longest time between two polls
    spans: dict[str, Json] = field(default_factory=dict)  # its last row of each partition


@dataclass(slots=True)
class _Finding:
    """A rule that a client breaks: how for the first time, and how often in all."""

    at_ms: float
    what: str
    requests: str
    times: int = 0
    records: int = 0


@dataclass(slots=True)
class Records:
    """Judges the records of one group of a run; requests and events come in order of time."""

    context: RunContext
    group: str = ""
    _in_order: InOrder = field(init=False)
    _pending: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    """A heap of what is taken once everything up to a time, in ms, is known; and a number."""
    _numbers: Iterator[int] = field(default_factory=count)
    _partitions: dict[str, _Partition] = field(default_factory=lambda: defaultdict(_Partition))
    _clients: dict[str, _Client] = field(default_factory=lambda: defaultdict(_Client))
    _rows: list[Json] = field(default_factory=list)
    _found: dict[tuple[str, Rule], _Finding] = field(default_factory=dict)
    _last: ClientEvent | None = None

    def __post_init__(self) -> None:
        self._in_order = InOrder(self.context.deliveries)

    def add(
        self,
        requests: Iterable[tuple[ObservedRequest, int | None]],
        events: Iterable[ClientEvent],
        known_ms: float,
    ) -> None:
        """Take requests with their errors, and events; what comes later is after `known_ms`."""
        for answered, error in requests:
            seen = as_delivered(answered, self._in_order.of(answered))
            if take := self._taker(answered, seen, error):
                self._push(answered.answered_ms, take)
        for event in events:
            self._push(event.at_ms, partial(self._saw, event))
        self._until(known_ms)

    def end(self) -> Iterator[tuple[str, Json]]:
        """Yield rows of `RECORDS` and of `CLIENT_FINDINGS`, without the group."""
        self._until(inf)
        for name in self._clients:
            self._forget(name)
        self._lost()
        yield from (("records", row) for row in self._rows)
        for (client, rule), one in self._found.items():
            more = f"; {one.times} such ranges, {counted(one.records)} in all"
            yield (
                "client_findings",
                {
                    "client_id": client,
                    "rule": rule.name,
                    "at_ms": one.at_ms,
                    "what": one.what + (more if one.times > 1 else ""),
                    "requests": one.requests,
                    "shown": None,
                    "from_ms": one.at_ms - NOTED_MS,
                    "until_ms": one.at_ms,
                    "on_time": rule.on_time,
                },
            )

    def _push(self, at_ms: float, take: Callable[[], None]) -> None:
        heappush(self._pending, (at_ms, next(self._numbers), take))

    def _until(self, known_ms: float) -> None:
        while self._pending and self._pending[0][0] <= known_ms:
            heappop(self._pending)[-1]()

    # requests

    def _taker(
        self, answered: ObservedRequest, seen: ObservedRequest, error: int | None
    ) -> Callable[[], None] | None:
        """Return what takes a request: `answered` as the broker did it, `seen` by its client."""
        if self.context.members.get(answered.client_id) == "wire":
            return None  # it reads no records, and there may be thousands
        heard = seen.answered_ms < inf
        if answered.api == "OFFSET_COMMIT":
            kept, refused = stored(answered)
            if kept:
                return partial(self._committed, answered, kept)
            error = refused
        if heard and error in OUT and answered.api != "LEAVE_GROUP":
            return partial(self._put_out, seen, error or 0)
        if heard and answered.api == "OFFSET_FETCH":
            return partial(self._fetched, seen)
        if heard and answered.api in ("JOIN_GROUP", "SYNC_GROUP") and not error:
            return partial(self._joined, seen)
        return None

    def _committed(self, commit: ObservedRequest, kept: Iterable[tuple[str, int]]) -> None:
        for name, offset in kept:
            if of_partition(self.context.deleted, name):
                continue
            one = self._partitions[name]
            one.began, one.last = min(one.began, offset), offset
            one.passed = [left for left in one.passed if any(one.done.missing(*left[:2]))]
            if commit.request.get("memberId"):
                missing = one.done.missing(one.top, offset - 1)
                one.passed += [(*passed, commit) for passed in missing]
            one.top = max(one.top, offset)

    def _fetched(self, fetch: ObservedRequest) -> None:
        client = self._clients[fetch.client_id]
        for name, offset in fetched(fetch):
            if offset >= 0:
                one = self._partitions[name]
                one.began = min(one.began, offset)
            if name not in client.fetched:  # later ones may be about how far it has come
                client.fetched.add(name)
                client.given[name] = max(0, offset)
                client.began_ms[name] = fetch.answered_ms

    def _joined(self, seen: ObservedRequest) -> None:
        client = self._clients[seen.client_id]
        client.out = None
        client.fetched.clear()
        if seen.api == "JOIN_GROUP":
            client.poll_ms = float(seen.request.get("rebalanceTimeoutMs") or inf)

    def _put_out(self, seen: ObservedRequest, error: int) -> None:
        client = self._clients[seen.client_id]
        client.out = client.out or (f"{name_of(error)} to {seen.api}", seen.answered_ms)

    # events

    def _saw(self, event: ClientEvent) -> None:
        if event == self._last:
            return  # a file that was altered has it twice
        self._last = event
        client, name = self._clients[event.client], event.event
        if name == "created":
            self._forget(event.client)
            client.created_ms, client.out = event.at_ms, None
            client.gave_up.clear()
        elif name == "processed":
            self._noted(client, event)
        elif name == "misnumbered":
            self._misnumbered(event)
        elif name == "assigned":
            for of in event.partitions:
                one = self._partitions[of]
                one.owner = event.client
                client.began_ms[of] = event.at_ms
                client.gave_up.pop(of, None)
                if of not in client.fetched:
                    client.given[of] = one.last
        elif name in GAVE_UP:
            client.gave_up |= dict.fromkeys(event.partitions, (name, event.at_ms))
        client.said_ms = event.at_ms

    def _forget(self, name: str) -> None:
        """Drop what a process committed after it had said something for the last time."""
        said_ms = self._clients[name].said_ms
        for one in self._partitions.values():
            one.passed = [
                left
                for left in one.passed
                if left[2].client_id != name
                or left[2].answered_ms <= said_ms
                or not self._clients[name].notes
            ]

    def _noted(self, client: _Client, event: ClientEvent) -> None:
        client.notes = True
        for name, first, last in event.ranges:
            if of_partition(self.context.deleted, name):
                continue
            one, now = self._partitions[name], (first, last)
            for again in one.done.within(first, last):
                self._twice(client, event, name, again)
            self._ordered(client, event, name, now)
            self._kept_off(client, event, name, now)
            one.done.add(first, last)
            self._processed(client, event, name, now)
        client.noted_ms |= dict.fromkeys((name for name, *_ in event.ranges), event.at_ms)

    def _processed(self, client: _Client, event: ClientEvent, name: str, now: Range) -> None:
        """Add a row, or make the last one longer where the client goes on."""
        span = client.spans.get(name)
        if span is None or span["last"] + 1 != now[0]:
            client.spans[name] = self._row("processed", event, name, now)
            return
        span["last"] = now[1]
        span["records"], span["until_ms"] = span["last"] - span["first"] + 1, event.at_ms

    def _twice(self, client: _Client, event: ClientEvent, name: str, again: Range) -> None:
        given = client.given.get(name, 0)
        if again[1] >= given:
            self._row("twice", event, name, (max(again[0], given), again[1]))
        if again[0] < given:
            below = again[0], min(again[1], given - 1)
            self._row("again", event, name, below)
            what = (
                f"{event.client} processes {ranged(below)} of {name} again, though it began at the"
                f" committed offset {given:,}: {counted(below[1] - below[0] + 1)} twice"
            )
            self._breaks(BEGINS_AT_ITS_COMMIT, event.client, event.at_ms, what, below)

    def _ordered(self, client: _Client, event: ClientEvent, name: str, now: Range) -> None:
        """Judge the order, but not where the member may have begun anew meanwhile."""
        highest = client.highest.get(name, -1)
        began_ms = max(client.began_ms.get(name, -inf), client.created_ms)
        if began_ms > client.noted_ms.get(name, -inf) - NOTED_MS:
            highest = -1
        if now[0] <= highest:
            back = now[0], min(now[1], highest)
            self._row("out_of_order", event, name, back)
            what = (
                f"{event.client} processes {ranged(back)} of {name} after {highest:,}, without a"
                " new assignment between"
            )
            self._breaks(KEEPS_ORDER, event.client, event.at_ms, what, back)
        client.highest[name] = max(highest, now[1])

    def _kept_off(self, client: _Client, event: ClientEvent, name: str, now: Range) -> None:
        """Judge whether a partition is still the member's."""
        owner, since = self._partitions[name].owner, ""
        if gave_up := client.gave_up.get(name):
            since = f"it {GAVE_UP[gave_up[0]]} {event.at_ms - gave_up[1]:,.0f} ms before"
        elif client.out and owner not in ("", event.client):
            answer, out_ms = client.out
            knows_ms = out_ms + client.poll_ms + NOTED_MS  # it learns of it as it polls
            if event.at_ms > knows_ms and not self._is_excused(event.client, out_ms, event.at_ms):
                ago = f"{(event.at_ms - out_ms) / 1000:,.1f} s"
                since = f"{owner} owns it, and the answer {answer} said {ago} before that it is out"
        if since:
            self._row("after_given_up", event, name, now)
            what = f"{event.client} processes {ranged(now)} of {name}, though {since}"
            self._breaks(STOPS_WHEN_GIVEN_UP, event.client, event.at_ms, what, now)

    def _is_excused(self, client: str, from_ms: float, until_ms: float) -> bool:
        mine = (one for one in self.context.absences if one[:2] == (self.group, client))
        return any(one.from_ms < until_ms and from_ms < one.until_ms for one in mine)

    def _misnumbered(self, event: ClientEvent) -> None:
        if event.misnumbered is not None:
            ((name, *at),), (producer, due, found) = event.ranges, event.misnumbered
            self._row("misnumbered", event, name, (at[0], at[1]))
            what = (
                f"{producer} numbers its record at {name}, offset {at[0]:,}, with {found:,}:"
                f" {due:,} was due; {event.client} read it"
            )
            self._breaks(NUMBERS_GO_ON, producer, event.at_ms, what, (at[0], at[1]))

    # findings

    def _lost(self) -> None:
        for name, one in sorted(self._partitions.items()):
            if one.done.ends is None:
                continue
            low, high = min(one.began, one.done.ends[0]), one.done.ends[1]
            for first, last, commit in one.passed:
                for lost in one.done.missing(max(first, int(low)), min(last, high)):
                    client, at_ms = commit.client_id, commit.answered_ms
                    event = ClientEvent(at_ms, 0, client)
                    if not self._clients[client].notes:
                        self._row(UNNOTED, event, name, lost)
                        continue
                    self._row("lost", event, name, lost)
                    up_to = dict(stored(commit)[0])[name]
                    number = counted(lost[1] - lost[0] + 1)
                    what = (
                        f"{client} commits {name} up to {up_to:,}; no member processed"
                        f" {ranged(lost)}: {number} lost"
                    )
                    self._breaks(LOSES_NO_RECORD, client, at_ms, what, lost, commit.id)

    def _row(self, what: str, event: ClientEvent, name: str, of: Range) -> Json:
        row = {
            "partition": name,
            "member": event.client,
            "what": what,
            "first": of[0],
            "last": of[1],
            "records": of[1] - of[0] + 1,
            "from_ms": event.at_ms - NOTED_MS,
            "until_ms": event.at_ms,
        }
        self._rows.append(row)
        return row

    def _breaks(
        self, rule: Rule, client: str, at_ms: float, what: str, of: Range, request: str = ""
    ) -> None:
        one = self._found.setdefault((client, rule), _Finding(at_ms, what, request))
        one.times += 1
        one.records += of[1] - of[0] + 1


def counted(records: int) -> str:
    """Write a number of records."""
    return f"{records:,} record{'' if records == 1 else 's'}"


def ranged(of: Range) -> str:
    """Write a range of records by their offsets."""
    return f"record {of[0]:,}" if of[0] == of[1] else f"records {of[0]:,} to {of[1]:,}"
