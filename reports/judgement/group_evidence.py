"""One group's evidence: its logged rows as they come in, and its replays by some rules."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import inf
from operator import attrgetter, itemgetter

from kafka_protocol.apis import KIP_848_APIS
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.timeline import ExpectedRebalance
from reference_coordinator.replay import (
    Evidence,
    GroupReplay,
    Hint,
    ObservedRequest,
    Outage,
    Replay,
    Tolerance,
    Violation,
)
from reports.judgement.collector import collector_paused
from reports.judgement.coordinators.coordinator_epochs import Unsure
from reports.judgement.coordinators.elections import of_shutdown
from reports.judgement.coordinators.wire_epochs import NO_EPOCHS, TOLERANCE, WireEpochs, in_turn
from reports.judgement.logged import (
    REQUEST,
    Chunk,
    HeldUp,
    KeptChunks,
    LoggedRow,
    Requests,
    columns,
    earlier,
)
from reports.judgement.members import Members, Pace
from reports.judgement.rows import Json
from reports.judgement.run_context import RunContext
from reports.judgement.timelines import compare, member_lines, timeline
from reports.judgement.timelines.timeline import Generations
from reports.timing import NEVER_MS

Named = tuple[str, Json]  # a row of a table, behind the table's name
Tables = Mapping[str, Sequence[Json]]
"""What rules expect of a group beside what was observed: rows without the group, by table."""
PLACE = ("broker", "file", "line", "api", "client_id", "arrived_ms")
"""The columns of the table `violations` that tell of the request."""
_ID = REQUEST.index("id")
_PLACE = columns(*PLACE)


@dataclass(frozen=True, slots=True)
class Batch:
    """A chunk of a group's rows, and what the oracle sees of it: requests in `seen`, and hints."""

    chunk: Chunk
    requests: Requests
    unanswered: Requests
    """Requests that the tap saw no answer of; the oracle sees them, too."""
    seen: Sequence[ObservedRequest]
    hints: Sequence[Hint]
    known_ms: float

    @property
    def replayed(self) -> Sequence[ObservedRequest]:
        """All that the oracle sees, in order of time."""
        both = [*self.seen, *self.unanswered.observed]
        return sorted(both, key=attrgetter("at_ms")) if self.unanswered.observed else self.seen


@dataclass
class GroupEvidence:
    """What is known of a group of a run; chunks of its rows come in order of time.

    Other replays read them again, as they are `kept`.
    """

    context: RunContext
    group: str
    wire: WireEpochs | None = None
    """At level `wire` the coordinator epochs, by answers alone; else None."""
    kept: KeptChunks = field(default_factory=KeptChunks)
    members: Members = field(init=False)
    generations: Generations = field(init=False)
    held_up: HeldUp = field(init=False)
    outages: tuple[Outage, ...] = field(init=False)  # when writes may have failed
    lines: list[LoggedRow] = field(default_factory=list)  # those about the group
    is_wrong: bool = False  # whether the replay found a difference
    _partitions: set[int] = field(default_factory=set)
    """Those of `__consumer_offsets` that its lines name."""
    _has_requests: bool = False
    _kip_848: bool = False
    _last: Batch | None = None

    def __post_init__(self) -> None:
        context, epochs = self.context, self.context.epochs
        incarnation = NO_EPOCHS.incarnation if self.wire is None else self.wire.incarnation
        self.generations = Generations(self.group, incarnation)
        self.members = Members(pace=Pace(*context.grown_ms))
        self.held_up = HeldUp(context.stalls)
        partition, end_ms = epochs.partition_of(self.group), context.grown_ms[1]
        shutdown = of_shutdown(epochs, partition, context.stalls, end_ms)
        self.outages = (*context.outages, *shutdown)

    def add(self, chunk: Chunk) -> Batch:
        """Take the next rows."""
        self._last = batch = self._batch(chunk)
        self.lines += chunk.lines
        self._partitions |= {line["partition"] for line in chunk.lines} - {None}
        self._has_requests |= bool(chunk.requests)
        self._kip_848 |= not chunk.apis.isdisjoint(KIP_848_APIS)
        if self.wire is not None:
            self.generations.add_unanswered(batch.unanswered.observed)
            self.generations.add(batch.requests.observed)
        return batch

    def final_rows(self, explained: int, record_bytes: int | None) -> Iterator[Named]:
        """Yield the rows of tables about all requests; so many of them are explained.

        The group's record had `record_bytes`, if one was written.
        """
        yield (
            "groups",
            {
                **self.members.counts(),
                "explained": explained,
                "partitions": len(self._partitions),
                "kip_848": self._kip_848,
                "record_bytes": record_bytes,
            },
        )
        yield from (("heard", row) for row in self.members.heard())

    @property
    def partition(self) -> int | None:
        """The partition of `__consumer_offsets` that the group's own lines name."""
        return min(self._partitions, default=None)

    @property
    def replaced(self) -> Sequence[LoggedRow] | None:
        """The lines about instances that got a new member id; None if they name no group."""
        name = "static_replaced"
        if self.context.grammar.lines_instead.get(name, name) is None:
            return None
        return [line for line in self.lines if line["template"] == name]

    def last_line(self, at_ms: float) -> Json:
        """Return broker and number of the group's last line up to a time; nothing without one."""
        place = bisect_right(self.lines, at_ms, key=itemgetter("at_ms"))
        last = self.lines[place - 1 : place]
        return {name: line[name] for line in last for name in ("broker", "line")}

    @property
    def home(self) -> int | None:
        """The group's partition of `__consumer_offsets`, if anything is known of the group."""
        known = self.partition
        if known is None and self._has_requests:
            known = self.context.epochs.partition_of(self.group)
        return known

    @property
    def beforehand(self) -> Evidence:
        """The evidence without requests and lines, once the first chunk is in."""
        epochs = self.context.epochs
        known = self.home
        events = epochs.events_of(known, self.group) if self.wire is None else self.wire.events
        return Evidence(
            self.group,
            (),
            (),
            tuple(sorted(events, key=attrgetter("at_ms", "broker", "kind"))),
            self.context.stalls,
            self.outages,
            tuple(epochs.loading),
            epochs.reconnects_ms,
            epochs.partings,
        )

    @cached_property
    def unsure(self) -> Unsure:
        """What the coordinators may have left undone, once all lines are in."""
        return Unsure.of(self.context.epochs, self.partition)

    @cached_property
    def observed(self) -> list[Json]:
        """The observed rebalances, once all chunks are in: each replay is compared with them."""
        if self.wire is not None:
            return list(self.generations.rows())
        incarnation = partial(self.context.epochs.incarnation, self.partition)
        return timeline.observed(self.group, self.lines, self.context.grammar, incarnation)

    @property
    def batches(self) -> Iterable[Batch]:
        """All that came in, batch by batch; the only one is not decoded again."""
        if len(self.kept) == 1 and self._last is not None:
            return (self._last,)
        return map(self._batch, self.kept)

    def placed(self, violations: Sequence[Violation]) -> list[Json]:
        """Return rows of the table `violations`, without the group."""
        ids = {found.request for found in violations}
        chunks = self.kept if ids else ()
        rows = {row[_ID]: row for chunk in chunks for row in chunk.requests if row[_ID] in ids}
        places = {name: dict(zip(PLACE, _PLACE(row), strict=True)) for name, row in rows.items()}
        return [{**places[found.request], **_fields(found)} for found in violations]

    def _batch(self, chunk: Chunk) -> Batch:
        requests = Requests.of(chunk)
        hints = timeline.hints(chunk.lines, self.context.grammar)
        hints.sort(key=attrgetter("at_ms", "kind", "subject", "broker"))
        seen = requests.observed if self.wire is None else in_turn(requests.observed)
        seen = self.held_up.widened(seen)
        if self.wire is not None:
            seen = self.wire.all_placed(seen)
        known_ms = chunk.known_ms - self.held_up.most_ms
        return Batch(chunk, requests, chunk.unanswered, seen, hints, known_ms)


@dataclass
class GroupCheck:
    """A group judged by some rules: batches come in, then it is compared with what was observed.

    `first_alone` ends the replay at the first wrong response. `explained` counts the responses that
    the rules explain, so far.
    """

    evidence: GroupEvidence
    profile: Profile
    first_alone: bool = False
    first: GroupReplay | None = None
    """That by other rules, if it noted what it read of those that differ, see `GroupReplay`."""
    late_ms: float = 0.0  # so much later than otherwise anything may happen, and be logged
    explained: int = 0

    @cached_property
    def replay(self) -> GroupReplay:
        """Its replay."""
        tolerance = Tolerance() if self.evidence.wire is None else TOLERANCE
        return GroupReplay(
            self.evidence.beforehand,
            self.profile,
            tolerance.wider(self.late_ms),
            first_alone=self.first_alone,
            first=self.first,
        )

    def add(self, batch: Batch) -> None:
        """Replay one more batch, as far as that is possible."""
        with collector_paused():
            seen, known_ms = batch.replayed, batch.known_ms - self.late_ms
            if self.late_ms:
                seen = [earlier(one, self.late_ms) for one in seen]
            self.replay.add(seen, batch.hints, known_ms)
        if batch.known_ms > -inf:
            self.explained += sum(checked.explained for checked in self.replay.checked())

    @property
    def record_bytes(self) -> int | None:
        """The size of the group's record with the most members, as the rules have it."""
        record = self.replay.fullest_record
        name, hosts = self.evidence.group, self.evidence.members.hosts
        return None if record is None else record.batch_bytes(name, hosts)

    def finish(self) -> Replay:
        """Replay the rest."""
        with collector_paused():
            result = self.replay.finish()
        self.explained += sum(checked.explained for checked in result.checked)
        return result

    def compared(self) -> Tables:
        """Replay the rest, and compare rebalances and lines with those observed."""
        result, evidence = self.finish(), self.evidence
        instead = evidence.context.grammar.reasons_instead
        expected = [{"group": evidence.group} | _expected(row, instead) for row in result.rows]
        observed, violations = evidence.observed, evidence.placed(result.violations)
        bound, lines = dict(result.bound), list[Json]()
        if evidence.wire is not None:
            if unseen := evidence.generations.unseen_members:
                bound["unseen_member"] = unseen
            certain = not violations and not bound.get("census")
            expected = evidence.generations.forced(expected)
            observed = timeline.new(observed, expected)
            comparison = compare.compare_generations(observed, expected, certain=certain)
        else:
            compared = compare.compare(observed, expected, evidence.context.stalls)
            comparison = [*evidence.unsure.without(result.rows, compared)]
            lines = member_lines.compare(
                evidence.lines,
                result.expected_lines,
                evidence.context.grammar,
                evidence.outages,
                evidence.context.stalls,
                evidence.members.join_timer_ms,
                evidence.unsure.may_be_missing,
            )
        return {
            "bound": [{"name": name, "count": bound[name]} for name in sorted(bound)],
            "observed": observed,
            "expected": expected,
            "comparison": comparison,
            "member_lines": lines,
            "violations": violations,
        }

    @property
    def is_wrong(self) -> bool:
        """Whether a violation was found, so far."""
        return any(True for _ in self.replay.violations)


def is_explained(tables: Tables) -> bool:
    """Whether some rules explain every response, every rebalance and every line."""
    matches = all(row["outcome"] == "match" for row in tables["comparison"])
    return matches and not tables["violations"] and not tables["member_lines"]


def _fields(item: Violation | ExpectedRebalance) -> Json:
    """Return its fields; NEVER_MS stands for infinity."""
    found = {name: getattr(item, name) for name in item.__dataclass_fields__}
    return {name: NEVER_MS if value == inf else value for name, value in found.items()}


def _expected(row: ExpectedRebalance, reasons_instead: Mapping[str, str]) -> Json:
    """Return a row of `EXPECTED`, without its group: None stands for what never happened."""
    found = _fields(row)
    found["reason"] = reasons_instead.get(row.reason, row.reason)
    for name in ("joined_ms", "generation", "members", "assigned_members", "static_members",
                 "assigned_ms"):  # fmt: skip
        found[name] = found[name] if found[name] >= 0 else None
    found["leader"] = row.leader or None
    found["duration_ms"] = row.ended_ms - row.started_ms if row.ended_ms >= 0 else None
    return found
