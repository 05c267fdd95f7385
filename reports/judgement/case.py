"""One group's case: its logged rows as they come in, and its replays by some rules."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf
from operator import attrgetter
from typing import Any

from kafka_protocol.apis import KIP_848_APIS
from kafka_protocol.coordinator_lines import Grammar
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.timeline import ExpectedRebalance
from reference_coordinator.replay import (
    Evidence,
    GroupReplay,
    Hint,
    ObservedRequest,
    Outage,
    Stall,
    Tolerance,
    Violation,
)
from reports.judgement.collector import collector_paused
from reports.judgement.coordinators.coordinator_epochs import CoordinatorEpochs, Unsure
from reports.judgement.coordinators.wire_epochs import (
    NO_EPOCHS,
    TOLERANCE,
    WireEpochs,
    in_turn,
)
from reports.judgement.kept_chunks import KeptChunks
from reports.judgement.logged import Chunk, HeldUp, LoggedRow, Requests
from reports.judgement.members import Members
from reports.judgement.timelines import compare, member_lines, timeline, wire_timeline
from reports.judgement.timelines.compare import Compared
from reports.judgement.timelines.wire_timeline import Generations

Json = dict[str, Any]
Named = tuple[str, Json]
NEVER_MS = 1e15
"""Stands for the time of what never comes: infinity, which neither JSON nor SQL has."""


@dataclass(frozen=True, slots=True)
class Part:
    """A chunk of a group's rows, and what the oracle sees of it: requests in `seen`, and hints."""

    chunk: Chunk
    requests: Requests
    seen: Sequence[ObservedRequest]
    hints: Sequence[Hint]
    known_ms: float
    unanswered: Requests = field(default_factory=Requests)
    """Requests that the tap saw no answer of; the oracle sees them, too."""

    @property
    def replayed(self) -> Sequence[ObservedRequest]:
        """All that the oracle sees, in order of time."""
        both = [*self.seen, *self.unanswered.observed]
        return sorted(both, key=attrgetter("at_ms")) if self.unanswered.observed else self.seen


@dataclass
class Case:
    """What is known of a group; `stalls` and `outages` are those of all brokers.

    Chunks come in order of time. One is kept; more than one are written to a temporary file if
    another replay may ask for them (`keeps`).
    """

    group: str
    grammar: Grammar
    epochs: CoordinatorEpochs
    stalls: tuple[Stall, ...]
    outages: tuple[Outage, ...]
    held_up: HeldUp
    keeps: bool
    wire: WireEpochs | None = None
    """At level `wire` the coordinator epochs, by answers alone; else None."""
    members: Members = field(default_factory=Members)
    lines: list[LoggedRow] = field(default_factory=list)  # about the group
    requests: int = 0
    """How many readable requests there are."""
    join_timer_ms: float = 0.0
    """The longest that a join phase may last, by the timeouts that members ask for."""
    generations: Generations = field(init=False)
    is_wrong: bool = False
    """Whether the replay found a difference."""
    _has_part: bool = False
    _has_requests: bool = False
    _kip_848: bool = False
    _brokers: set[str] = field(default_factory=set)
    _first_ms: float | None = None
    _last_ms: float | None = None
    _only: Part | None = None
    _kept: KeptChunks = field(default_factory=KeptChunks)

    def __post_init__(self) -> None:
        """Begin with no row."""
        incarnation = NO_EPOCHS.incarnation if self.wire is None else self.wire.incarnation
        self.generations = Generations(self.group, incarnation)

    def add(self, chunk: Chunk) -> Part:
        """Take the next rows."""
        part = self._part(chunk)
        self._only = None if self._has_part else part
        self._has_part = True
        if self.keeps:
            self._kept.add(replace(chunk, events=(), tapped=()))  # another replay reads neither
        self.lines += chunk.lines
        self._has_requests |= bool(chunk.requests)
        self._kip_848 |= not chunk.apis.isdisjoint(KIP_848_APIS)
        seen = part.requests.observed
        self.generations.add_unanswered(part.unanswered.observed)
        if seen:
            self.requests += len(seen)
            if self.wire is not None:
                self.generations.add(seen)
            self._brokers |= {one.broker for one in seen}
            joins = (_join_timer_ms(one.request) for one in seen if one.api == "JOIN_GROUP")
            self.join_timer_ms = max(self.join_timer_ms, *joins, 0.0)
            first_ms, last_ms = min(part.requests.arrived_ms), max(one.answered_ms for one in seen)
            self._first_ms = first_ms if self._first_ms is None else min(self._first_ms, first_ms)
            self._last_ms = last_ms if self._last_ms is None else max(self._last_ms, last_ms)
        return part

    def in_the_end(self, explained: int, record_bytes: int | None) -> Iterator[Named]:
        """Yield the rows of tables about all requests; so many of them are explained.

        The group's record had `record_bytes`, if one was written.
        """
        named = {line["partition"] for line in self.lines if line["partition"] is not None}
        yield (
            "groups",
            {
                "requests": self.requests,
                "explained": explained,
                "first_ms": self._first_ms,
                "last_ms": self._last_ms,
                "max_rebalance_timeout_ms": self.members.max_rebalance_timeout_ms,
                "max_session_timeout_ms": self.members.max_session_timeout_ms,
                "brokers": ",".join(sorted(self._brokers)),
                "partitions": len(named),
                "ran_ms": self.members.pace.kept_ms,
                "kip_848": self._kip_848,
                "record_bytes": record_bytes,
            },
        )
        yield from (("heard", row) for row in self.members.heard())

    @property
    def partition(self) -> int | None:
        """The partition of `__consumer_offsets` that the group's own lines name."""
        named = (line["partition"] for line in self.lines if line["partition"] is not None)
        return min(named, default=None)

    @property
    def replaced(self) -> Sequence[LoggedRow] | None:
        """The lines about instances that got a new member id; None if they name no group."""
        name = "static_replaced"
        if self.grammar.lines_instead.get(name, name) is None:
            return None
        return [line for line in self.lines if line["template"] == name]

    @property
    def home(self) -> int | None:
        """The group's partition of `__consumer_offsets`, if anything is known of the group."""
        known = self.partition
        if known is None and self._has_requests:
            known = self.epochs.partition_of(self.group)
        return known

    @property
    def beforehand(self) -> Evidence:
        """The evidence without requests and lines, once the first chunk is in."""
        known = self.home
        events = self.epochs.events_of(known, self.group) if self.wire is None else self.wire.events
        events = sorted(events, key=lambda event: (event.at_ms, event.broker, event.kind))
        return Evidence(
            self.group,
            (),
            (),
            tuple(events),
            self.stalls,
            self.outages,
            tuple(self.epochs.loading),
            self.epochs.reconnects_ms,
            self.epochs.partings,
        )

    @cached_property
    def unsure(self) -> Unsure:
        """What the coordinators may have left undone, once all lines are in."""
        return Unsure.of(self.epochs, self.partition)

    @cached_property
    def observed(self) -> list[Json]:
        """The observed rebalances, once all chunks are in: each replay is compared with them."""
        if self.wire is not None:
            return list(self.generations.rows())
        incarnation = partial(self.epochs.incarnation, self.partition)
        return timeline.observed(self.group, self.lines, self.grammar, incarnation)

    @property
    def parts(self) -> Iterator[Part]:
        """All that came in, part by part."""
        if self._only is not None:
            yield self._only
        else:
            yield from map(self._part, self._kept)

    def close(self) -> None:
        """Delete the temporary file, if there is one."""
        self._kept.close()

    def _part(self, chunk: Chunk) -> Part:
        requests = Requests.of(chunk)
        hints = timeline.hints(chunk.lines, self.grammar)
        hints.sort(key=lambda hint: (hint.at_ms, hint.kind, hint.subject, hint.broker))
        seen = requests.observed if self.wire is None else in_turn(requests.observed)
        seen = self.held_up.widened(seen)
        if self.wire is not None:
            seen = self.wire.all_placed(seen)
        known = chunk.known_ms - self.held_up.most_ms
        return Part(chunk, requests, seen, hints, known, chunk.unanswered)


@dataclass
class Judgement:
    """A case judged by some rules; its parts come in, then it is compared with what was observed.

    `explained` counts the responses that the rules explain, so far.
    """

    case: Case
    profile: Profile
    first_alone: bool = False
    first: GroupReplay | None = None
    """That by other rules, if it noted what it read of those that differ, see `GroupReplay`."""
    explained: int = 0
    _waiting: list[Requests] = field(default_factory=list)
    _places: dict[str, Json] = field(default_factory=dict)

    @cached_property
    def replay(self) -> GroupReplay:
        """Its replay."""
        case = self.case
        return GroupReplay(
            case.beforehand,
            self.profile,
            Tolerance() if case.wire is None else TOLERANCE,
            first_alone=self.first_alone,
            first=self.first,
        )

    def add(self, part: Part) -> None:
        """Replay one more part, as far as that is possible."""
        with collector_paused():
            self.replay.add(part.replayed, part.hints, part.known_ms)
        self._waiting += [part.requests, part.unanswered]
        if part.known_ms > float("-inf"):
            self.explained += sum(checked.explained for checked in self.replay.checked())
            self._locate(self.replay.violations)
            waiting = {seen.id for seen in self.replay.waiting}
            left = lambda each: any(seen.id in waiting for seen in each.observed)
            self._waiting = [each for each in self._waiting if left(each)]

    @property
    def record_bytes(self) -> int | None:
        """The size of the group's record with the most members, as the rules have it."""
        record = self.replay.fullest_record
        name, hosts = self.case.group, self.case.members.hosts
        return None if record is None else record.batch_bytes(name, hosts)

    def _locate(self, violations: Iterable[Violation]) -> None:
        """Note where the requests stand in the log that are answered wrongly."""
        ids = {found.request for found in violations} - self._places.keys()
        if ids:
            for requests in self._waiting:
                self._places.update(requests.about(ids))

    def compared(self) -> "Compared":
        """Replay the rest, and compare rebalances and lines with those observed."""
        with collector_paused():
            result = self.replay.finish()
        self.explained += sum(checked.explained for checked in result.checked)
        self._locate(result.violations)
        case = self.case
        instead, unsure = case.grammar.reasons_instead, case.unsure
        expected = [{"group": case.group} | _expected(row, instead) for row in result.rows]
        observed = case.observed
        violations = [
            {**self._places[found.request], **_fields(found)} for found in result.violations
        ]
        if case.wire is not None:
            if unseen := case.generations.unseen_members:
                result = replace(result, bound={**result.bound, "unseen_member": unseen})
            certain = not violations and not result.bound.get("census")
            expected = case.generations.forced(expected)
            observed = wire_timeline.new(observed, expected)
            rows = compare.compare_generations(observed, expected, certain=certain)
            return Compared(self.explained, result.bound, observed, expected, rows, [], violations)
        compared = compare.compare(observed, expected, case.stalls)
        return Compared(
            *(self.explained, result.bound, observed, expected),
            unsure.without(result.rows, compared),
            member_lines.compare(
                case.lines,
                result.expected_lines,
                case.grammar,
                case.outages,
                case.stalls,
                case.join_timer_ms,
                unsure.may_be_missing,
            ),
            violations,
        )

    @property
    def is_wrong(self) -> bool:
        """Whether a violation was found, so far."""
        return any(True for _ in self.replay.violations)


def _join_timer_ms(join: Mapping[str, Any]) -> float:
    """Return the rebalance timeout of a JoinGroup; before v1 it is the session's (KIP-62)."""
    return float(max(join.get(name) or 0 for name in ("rebalanceTimeoutMs", "sessionTimeoutMs")))


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
