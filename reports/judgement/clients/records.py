"""What the application saw: records lost, processed twice, out of order, after the give-up.

Members note which records they processed (`processed` in the client history), at most once a second
and always before a line about a commit or the end of an ownership. What they committed and where
they began is in their requests: OffsetCommit, and the OffsetFetch after an assignment.

*Lost* is what a member committed past and no member of the group processed, from the first offset
that the group committed, fetched or processed to the last one processed. A commit after which its
process said nothing more proves nothing: one that died may have noted less than it did. `killed`
is said by the load; the notes of a lost worker's members may not have arrived.
*Twice* is allowed from the offset on that the coordinator gave to the member as it began:
at-least-once delivery. Records before that offset are read again for no reason.
*Out of order* is what no member had processed yet: an application may seek back to try again.
Of a topic that a fault deletes nothing is judged; a commit without a member id is an operator's.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import inf
from operator import itemgetter

from kafka_protocol.errors import name_of
from reference_coordinator.replay import ObservedRequest
from reports.judgement.clients.client_answers import as_delivered
from reports.judgement.clients.client_rules.client_processes import OUT
from reports.judgement.clients.client_rules.findings import RECORD_RULES
from reports.judgement.clients.client_rules.shown import of_requests
from reports.judgement.clients.offsets import fetched, stored
from reports.judgement.clients.ranges import Range, Ranges
from reports.judgement.rows import Json
from reports.judgement.run.deliveries import InOrder
from reports.judgement.run.disturbance import of_partition
from reports.judgement.run.history import ClientEvent
from reports.judgement.run_context import RunContext
from reports.timing import NOTED_MS

RECORDS = """
    group STRING, partition STRING, member STRING, what STRING, first LONG, last LONG,
    records LONG, from_ms DOUBLE, until_ms DOUBLE
"""
"""Ranges of offsets and `what` a member did with them: `processed`, and of these `twice` (allowed),
`again` (twice and not allowed), `out_of_order`, `after_given_up` and `misnumbered`; `lost`, which
the member committed past; `unnoted`, the same of a member that never notes what it processes. The
time is the second before its note, or its commit."""
GAVE_UP = {"revoked": "gave it up", "lost": "lost it"}
"""The events by which a member gives partitions up while its process goes on, in words."""


@dataclass(slots=True)
class _Reading:
    """What a process is known to be at in a partition; times in ms."""

    given: int = 0  # the offset at which the coordinator let it begin
    is_fetched: bool = False  # whether it asked for that since it joined last
    began_ms: float = -inf
    noted_ms: float = -inf
    highest: int = -1
    gave_up: tuple[str, float] | None = None  # by which event, and when
    span: Json | None = None  # its last row


@dataclass(slots=True)
class _Process:
    """A process of a client."""

    said_ms: float = -inf  # its last event
    out: tuple[str, float] | None = None  # the answer that says so, and when it came
    poll_ms: float = inf  # the longest time between two polls
    reads: dict[str, _Reading] = field(default_factory=lambda: defaultdict(_Reading))


@dataclass(slots=True)
class _Partition:
    """What a group did with a partition."""

    done: Ranges = field(default_factory=Ranges)  # processed, by whichever member
    began: float = inf  # the first offset that was committed or fetched
    top: int = 0  # the highest offset that was committed
    last: int = 0  # the offset that was committed last
    owner: str = ""  # who was assigned it last
    passed: list[tuple[int, int, ObservedRequest, _Process]] = field(default_factory=list)
    """What commits went past, before anybody was known to have processed it."""


@dataclass(slots=True)
class Records:
    """Judges the records of one group of a run; requests and events come in order of time."""

    context: RunContext
    group: str = ""
    _in_order: InOrder = field(init=False)
    _pending: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    """What is taken once everything up to a time, in ms, is known."""
    _partitions: dict[str, _Partition] = field(default_factory=lambda: defaultdict(_Partition))
    _processes: dict[str, _Process] = field(default_factory=lambda: defaultdict(_Process))
    """The last process of each client."""
    _noting: set[str] = field(default_factory=set)  # the clients that say what they process
    _rows: dict[tuple[str, str], list[Json]] = field(default_factory=lambda: defaultdict(list))
    """By client and `what`."""
    _found: dict[tuple[str, str], Json] = field(default_factory=dict)
    """By client and `what`: how it breaks the rule for the first time."""
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
            # the wire client reads no records, and there may be thousands
            if self.context.members.get(answered.client_id) != "wire":
                take = partial(self._took, answered, seen, error)
                self._pending.append((answered.answered_ms, take))
        self._pending += ((event.at_ms, partial(self._saw, event)) for event in events)
        self._until(known_ms)

    def end(self) -> Iterator[tuple[str, Json]]:
        """Yield rows of `RECORDS` and of `CLIENT_FINDINGS`, without the group."""
        self._until(inf)
        self._lost()
        for key, rows in self._rows.items():
            yield from (("records", row) for row in rows)
            if found := self._found.get(key):
                if len(rows) > 1:
                    records = sum(row["records"] for row in rows)
                    found["what"] += f"; {len(rows)} such ranges, {records:,} in all"
                yield "client_findings", found

    def _until(self, known_ms: float) -> None:
        self._pending.sort(key=itemgetter(0))
        known = bisect_right(self._pending, known_ms, key=itemgetter(0))
        for _, take in self._pending[:known]:
            take()
        del self._pending[:known]

    def _took(self, answered: ObservedRequest, seen: ObservedRequest, error: int | None) -> None:
        """Take a request: `answered` as the broker did it, `seen` by its client."""
        process = self._processes[seen.client_id]
        if seen.api == "OFFSET_COMMIT":
            kept, error = stored(answered)
            self._committed(answered, kept)
        if seen.answered_ms == inf:
            return
        if error in OUT and seen.api != "LEAVE_GROUP":
            process.out = process.out or (f"{name_of(error)} to {seen.api}", seen.answered_ms)
        elif seen.api == "OFFSET_FETCH":
            self._fetched(process, seen)
        elif seen.api in ("JOIN_GROUP", "SYNC_GROUP") and not error:
            process.out = None
            for mine in process.reads.values():
                mine.is_fetched = False
            if seen.api == "JOIN_GROUP":
                process.poll_ms = float(seen.request.get("rebalanceTimeoutMs") or inf)

    def _committed(self, commit: ObservedRequest, kept: Iterable[tuple[str, int]]) -> None:
        process = self._processes[commit.client_id]
        for name, offset in kept:
            if of_partition(self.context.deleted, name):
                continue
            one = self._partitions[name]
            one.began, one.last = min(one.began, offset), offset
            one.passed = [of for of in one.passed if any(one.done.missing(*of[:2]))]
            if commit.request.get("memberId"):
                first = one.top
                if one.passed and offset > first and commit.client_id not in self._noting:
                    # one range, with its last commit, is enough of a process without notes
                    begin, last, _, of = one.passed[-1]
                    if of is process and last + 1 == first:
                        first = begin
                        one.passed.pop()
                missing = one.done.missing(first, offset - 1)
                one.passed += [(*passed, commit, process) for passed in missing]
            one.top = max(one.top, offset)

    def _fetched(self, process: _Process, fetch: ObservedRequest) -> None:
        for name, offset in fetched(fetch):
            one, mine = self._partitions[name], process.reads[name]
            if offset >= 0:
                one.began = min(one.began, offset)
            if not mine.is_fetched:  # later ones may be about how far it has come
                mine.is_fetched, mine.given = True, max(0, offset)
                mine.began_ms = fetch.answered_ms

    def _saw(self, event: ClientEvent) -> None:
        if event == self._last:
            return  # a file that was altered has it twice
        self._last = event
        name = event.event
        if name == "created":
            self._processes[event.client] = _Process()
        process = self._processes[event.client]
        if name == "processed":
            self._noted(process, event)
        elif name == "misnumbered":
            for of, *ends in event.ranges:
                self._row(event.client, event.at_ms, of, name, (ends[0], ends[1]))
        elif name == "assigned":
            for of in event.partitions:
                mine, one = process.reads[of], self._partitions[of]
                one.owner = event.client
                mine.began_ms, mine.gave_up = event.at_ms, None
                if not mine.is_fetched:
                    mine.given = one.last
        elif name in GAVE_UP:
            for of in event.partitions:
                process.reads[of].gave_up = name, event.at_ms
        if name != "killed":
            process.said_ms = event.at_ms

    def _noted(self, process: _Process, event: ClientEvent) -> None:
        self._noting.add(event.client)
        for name, *ends in event.ranges:
            if of_partition(self.context.deleted, name):
                continue
            one, mine, now = self._partitions[name], process.reads[name], (ends[0], ends[1])
            row = partial(self._row, event.client, event.at_ms, name)
            for first, last in one.done.within(*now):
                if last >= mine.given:
                    row("twice", (max(first, mine.given), last))
                if first < mine.given:
                    below = first, min(last, mine.given - 1)
                    again = f" again, though it began at the committed offset {mine.given:,}"
                    row("again", below, f"{again}: {below[1] - first + 1:,} twice")
            # not where it may have begun anew meanwhile; notes of one ms come in any order
            if mine.began_ms > mine.noted_ms - NOTED_MS:
                mine.highest = -1
            if mine.noted_ms < event.at_ms:
                how = f" after {mine.highest:,}, without a new assignment between"
                for late in one.done.missing(now[0], min(now[1], mine.highest)):
                    row("out_of_order", late, how)
            mine.highest = max(mine.highest, now[1])
            if since := self._given_up(process, event, name):
                row("after_given_up", now, f", though {since}")
            one.done.add(*now)
            if mine.span is not None and mine.span["last"] + 1 == now[0]:  # it goes on
                records = now[1] - mine.span["first"] + 1
                mine.span.update(last=now[1], records=records, until_ms=event.at_ms)
            else:
                mine.span = row("processed", now)
        for name, *_ in event.ranges:
            process.reads[name].noted_ms = event.at_ms

    def _given_up(self, process: _Process, event: ClientEvent, name: str) -> str:
        """Say since when a partition is not the member's; nothing if it may be."""
        if gave_up := process.reads[name].gave_up:
            return f"it {GAVE_UP[gave_up[0]]} {event.at_ms - gave_up[1]:,.0f} ms before"
        owner = self._partitions[name].owner
        if process.out is None or owner in ("", event.client):
            return ""
        answer, out_ms = process.out
        mine = (one for one in self.context.absences if one[:2] == (self.group, event.client))
        excused = any(one.from_ms < event.at_ms and out_ms < one.until_ms for one in mine)
        if excused or event.at_ms <= out_ms + process.poll_ms + NOTED_MS:
            return ""  # it learns of it as it polls
        ago = f"{(event.at_ms - out_ms) / 1000:,.1f} s"
        return f"{owner} owns it, and the answer {answer} said {ago} before that it is out"

    def _lost(self) -> None:
        for name, one in sorted(self._partitions.items()):
            if one.done.ends is None:
                continue
            low, high = min(one.began, one.done.ends[0]), one.done.ends[1]
            for first, last, commit, process in one.passed:
                client, at_ms = commit.client_id, commit.answered_ms
                notes = client in self._noting
                if notes and at_ms > process.said_ms:
                    continue
                for lost in one.done.missing(max(first, int(low)), min(last, high)):
                    how = f": {lost[1] - lost[0] + 1:,} lost"
                    self._row(
                        client, at_ms, name, "lost" if notes else "unnoted", lost, how, commit
                    )

    def _row(
        self, client: str, at_ms: float, name: str, what: str, of: Range, how: str = "",
        commit: ObservedRequest | None = None,
    ) -> Json:  # fmt: skip
        """Add a row; if it is the first that breaks its rule, also a finding, which says `how`."""
        time = {"from_ms": at_ms - NOTED_MS, "until_ms": at_ms}
        row = {
            "partition": name,
            "member": client,
            "what": what,
            "first": of[0],
            "last": of[1],
            "records": of[1] - of[0] + 1,
            **time,
        }
        self._rows[client, what].append(row)
        if what in RECORD_RULES and (client, what) not in self._found:
            did = f"processes {ranged(of)} of {name}"
            if commit:
                up_to = dict(stored(commit)[0])[name]
                did = f"commits {name} up to {up_to:,}; no member processed {ranged(of)}"
            self._found[client, what] = {
                "client_id": client,
                "rule": RECORD_RULES[what].name,
                "at_ms": at_ms,
                "what": f"{client} {did}{how}",
                **({"requests": "", "shown": None} | time),
                **(of_requests([commit], partition=name) if commit else {}),
                "on_time": RECORD_RULES[what].on_time,
            }
        return row


def ranged(of: Range) -> str:
    """Write a range of records by their offsets."""
    return f"record {of[0]:,}" if of[0] == of[1] else f"records {of[0]:,} to {of[1]:,}"
