"""Fenced lines: a request with another member id than that of its instance leaves one (KIP-345).

The line names no group. It names the member and the instance, which the refused request has, so an
answer FENCED_INSTANCE_ID and its line are paired by these. A JoinGroup or SyncGroup that waits when
its instance gets a new member id is fenced without a line: `static_replaced` says why. A line that
has no such answer belongs to the group in which its member id was used.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kafka_protocol.apis import HELD_APIS
from kafka_protocol.coordinator_lines import Grammar
from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.replay import EpochEvent, ObservedRequest, Stall
from reference_coordinator.replay.conditions import SEEMS_AFTER_LINE_MS
from reports.judgement.logged import HeldUp
from reports.judgement.timelines.member_lines import DOUBTFUL
from reports.judgement.timelines.said import ALIKE

Json = dict[str, Any]
Row = Mapping[str, Any]

FENCED = "fenced"
"""The template of these lines."""
MOST = 10_000
"""How many of these lines of a run are compared: each group is judged with all of them."""
LATE_MS = 15.0
"""How much later than the answer a line may seem. Measured on 58 lines: 0.5 ms; never earlier than
the request."""
UNLOGGED_MS = 2_000.0
"""How long before its end a broker may have answered what it never logged."""
OPERATIONS = {
    "JOIN_GROUP": ("join-group",),
    "SYNC_GROUP": ("sync-group",),
    "HEARTBEAT": ("heartbeat",),
    "LEAVE_GROUP": ("leave-group",),
    # Scala until 2.6 and later; Java calls every commit so
    "OFFSET_COMMIT": ("commit-offsets", "offset-commit", "txn-offset-commit"),
}
"""What lines call the APIs; seen on 2.6.0, 3.9.1 and 4.3.0."""


class FencedLine(NamedTuple):
    """A line about a member that is fenced; `holder` and `operation` are "" before 3.0 and 2.5."""

    broker: str
    line: int
    at_ms: float
    member: str
    instance: str
    holder: str
    operation: str


class Fencing(NamedTuple):
    """A member and an instance that a request was fenced with."""

    seen: ObservedRequest
    member: str
    instance: str

    def fits(self, line: FencedLine) -> bool:
        """Whether a line may be about it."""
        return (
            line.broker == self.seen.broker
            and line.member == self.member
            and ALIKE["instance"](self.instance, line.instance)
            and self.is_handled(line.at_ms)
            and (not line.operation or line.operation in OPERATIONS[self.seen.api])
        )

    def is_handled(self, at_ms: float) -> bool:
        """Whether the broker may have been at the request when it printed a line.

        The request's own line may come late, so that the request seems to have come after that.
        """
        earliest_ms = self.seen.earliest_ms - SEEMS_AFTER_LINE_MS
        return earliest_ms <= at_ms <= self.seen.answered_ms + LATE_MS


def fenced_lines(rows: Iterable[Row], grammar: Grammar) -> tuple[FencedLine, ...] | None:
    """Return the fenced lines among rows of the table `transitions`; None if they are too many."""
    found = []
    for row in rows:
        if row["template"] == FENCED:
            says = grammar.said(FENCED, row["message"])
            holder, operation = says.get("holder", ""), says.get("operation", "")
            place = row["broker"], row["line"], row["at_ms"]
            found.append(FencedLine(*place, says["member"], says["instance"], holder, operation))
    return tuple(found) if len(found) <= MOST else None


@dataclass(slots=True)
class Fencings:
    """The answers of one group that fence, beside the fenced lines of all groups, if known.

    Each of the `stalls` of brokers may have held up the line of a request.
    """

    lines: Sequence[FencedLine] | None = None
    stalls: Sequence[Stall] = ()
    _fencings: list[Fencing] = field(default_factory=list)
    _named: set[str] = field(default_factory=set)
    """Whom of those in lines (`_whom`) requests of the group name."""
    _held: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The member ids that instances of lines had."""
    _members: frozenset[str] = frozenset()
    _instances: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Note whom lines are about."""
        self._members = frozenset(map(_whom, self.lines or ()))
        self._instances = frozenset(line.instance for line in self.lines or ())

    def add(self, requests: Sequence[ObservedRequest], fenced: Iterable[tuple[Any, ...]]) -> None:
        """Take requests; `fenced` are those answered FENCED_INSTANCE_ID, as `Chunk` has them."""
        if self.lines is None:
            return
        fencing = {number for *_, number in fenced}
        if not (self._members or fencing):
            return
        if refused := [seen for seen in requests if seen.id in fencing]:
            widened = HeldUp(self.stalls).widened(refused)
            self._fencings += (one for seen in widened for one in fencings(seen))
        for seen in requests:
            for member, instance, error in _named(seen):
                if (member or instance) in self._members:
                    self._named.add(member or instance)
                if error == NO_ERROR and instance in self._instances:
                    self._held[instance].add(member)

    def rows(self, replaced: Sequence[Row] | None, brokers: Sequence[EpochEvent]) -> Iterator[Json]:
        """Compare; yield rows of `MEMBER_LINES` without the group, once all requests are in.

        `replaced` are the group's lines `static_replaced`, None where these name no group;
        `brokers` tell when brokers ended.
        """
        if self.lines is None:
            return
        left = sorted(line for line in self.lines if _whom(line) in self._named)
        count: Counter[str] = Counter()
        for fencing in sorted(self._fencings, key=lambda one: one.seen.answered_ms):
            count[fencing.member] += 1
            fitting = (line for line in left if fencing.fits(line))
            line = min(fitting, key=lambda one: one.at_ms, default=None)
            if line is not None:
                left.remove(line)
                held = self._held.get(line.instance, set()) - {line.member}
                if line.holder and line.holder not in held:
                    wrong = f"{line.member}: holder '{line.holder}'"
                    yield _row(wrong, count[fencing.member], DOUBTFUL, line)
            elif not _was_replaced(fencing, replaced):
                row = _row(fencing.member, count[fencing.member], "missing_line", None)
                yield row | {"due_ms": fencing.seen.at_ms}
        for line in left:
            if not _ended(line, brokers):
                count[line.member] += 1
                yield _row(line.member, count[line.member], "unexpected_line", line)


def _whom(line: FencedLine) -> str:
    """Return the member id of a line, or its instance if the request had no member id."""
    return line.member or line.instance


def fencings(seen: ObservedRequest) -> Iterator[Fencing]:
    """Yield the members that a request was fenced with."""
    for one in seen.response_fields.get("members", ()) if seen.api == "LEAVE_GROUP" else ():
        if one["errorCode"] == Error.FENCED_INSTANCE_ID:
            yield Fencing(seen, one["memberId"], one["groupInstanceId"] or "")
    if seen.api != "LEAVE_GROUP":
        yield Fencing(seen, seen.request["memberId"], seen.request.get("groupInstanceId") or "")


def _named(seen: ObservedRequest) -> Iterator[tuple[str, str, int | None]]:
    """Yield the member ids that a request and its answer name: instance, and error if any."""
    request, response = seen.request, seen.response_fields
    if seen.api == "LEAVE_GROUP":
        for one in request.get("members", ()):
            yield one["memberId"], one["groupInstanceId"] or "", None
        return
    error, instance = response.get("errorCode"), request.get("groupInstanceId") or ""
    yield request.get("memberId") or "", instance, error
    if seen.api == "JOIN_GROUP":
        yield response.get("memberId") or "", instance, error
        for one in response.get("members", ()):
            yield one["memberId"], one.get("groupInstanceId") or "", NO_ERROR


def _was_replaced(fencing: Fencing, replaced: Sequence[Row] | None) -> bool:
    """Whether a request may have waited when its instance got a new member id."""
    seen = fencing.seen
    if seen.api not in HELD_APIS or replaced is None:
        return seen.api in HELD_APIS
    return any(
        row["broker"] == seen.broker
        and _is_about(row, fencing)
        and fencing.is_handled(row["at_ms"])
        for row in replaced
    )


def _is_about(replaced: Row, fencing: Fencing) -> bool:
    """Whether a member was replaced that a request is of; a new process names no member id."""
    if not fencing.member:
        return ALIKE["instance"](fencing.instance, replaced["instance"])
    return bool(replaced["member"] == fencing.member)


def _ended(line: FencedLine, brokers: Sequence[EpochEvent]) -> bool:
    """Whether the broker ended so soon that it may not have logged the request."""
    return any(
        (event.kind, event.broker) == ("ended", line.broker)
        and line.at_ms <= event.at_ms <= line.at_ms + UNLOGGED_MS
        for event in brokers
    )


def _row(subject: str, nth: int, outcome: str, line: FencedLine | None) -> Json:
    return {
        "kind": FENCED,
        "subject": subject,
        "nth": nth,
        "outcome": outcome,
        "at_ms": line and line.at_ms,
        "due_ms": None,
        "broker": line and line.broker,
        "line": line and line.line,
    }
