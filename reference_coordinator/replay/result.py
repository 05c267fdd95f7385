"""The result of a replay, and how it comes together: stretch by stretch, epoch by epoch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import NamedTuple

from reference_coordinator.classic.effects import AssignmentReceived, Transition
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import State
from reference_coordinator.classic.timeline import ExpectedRebalance
from reference_coordinator.frozen import frozen_dataclass, replace_fields
from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.replay.expected_lines import Says
from reference_coordinator.replay.failed_writes import LOGGED, TIMED_OUT


@frozen_dataclass(frozen=True, slots=True)
class Violation:
    """One thing the protocol does not explain.

    From `until_ms` on the replay knows the group's state again; what lies between is a consequence.
    """

    at_ms: float
    until_ms: float
    request: str
    rule: str
    expected: str
    observed: str
    searched: bool
    """Whether all orders were tried; if not, the budget of the search ended."""
    otherwise: tuple[str, ...] = ()
    """What else would have been expected, had the events before come in another order."""


class Checked(NamedTuple):
    """One response: explained, a violation, or a consequence of one before."""

    request: str
    explained: bool


_EXPLAINED = partial(tuple.__new__, Checked)  # `Checked(request, True)` takes three times as long


@frozen_dataclass(frozen=True, slots=True)
class ExpectedLine:
    """A line that the coordinator must have printed, when, and its fields; see `expected_lines`.

    With `failed_writes.TIMED_OUT` as `line` it is any about a write that failed, and may be
    missing: an answer shows that a write of the broker that it names timed out then.
    """

    line: str
    subject: str
    at_ms: float
    earliest_ms: float
    latest_ms: float
    says: Says = ()
    incarnation: int = 0
    """The load of the coordinator that prints it, as in `CoordinatorEpoch`."""


@frozen_dataclass(frozen=True, slots=True)
class Replay:
    """The outcome for one group. `bound` counts what was bound from observation, by kind.

    `transitions` are the transitions of the group, in their order; `steps` is what searching took.
    """

    rows: tuple[ExpectedRebalance, ...]
    checked: tuple[Checked, ...]
    violations: tuple[Violation, ...]
    expected_lines: tuple[ExpectedLine, ...] = ()
    bound: Mapping[str, int] = field(default_factory=dict)
    transitions: tuple[Transition, ...] = ()
    steps: int = 0

    @property
    def proven(self) -> bool:
        """Whether a violation is; where there are others alone, they are doubts."""
        return any(violation.searched for violation in self.violations)


class Stored(NamedTuple):
    """The write of a record for a request, if for any; or that it failed, and is in no log."""

    at_ms: float
    record: GroupRecord | None
    request: str | None = None
    failed: bool = False


Mark = tuple[tuple[int, ...], dict[str, int]]
_LISTS = "rows", "checked", "violations", "expected_lines", "transitions"


@dataclass(slots=True)
class Output:
    """What came of events so far: of the last ones in a hypothesis, of an epoch, of a group.

    It forks with its hypothesis, so an order that is given up leaves no trace. `row` is the
    rebalance under way. The fields that `Replay` has, too, are as there.
    """

    row: ExpectedRebalance | None = None
    rows: list[ExpectedRebalance] = field(default_factory=list)
    checked: list[Checked] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    expected_lines: list[ExpectedLine] = field(default_factory=list)
    bound: dict[str, int] = field(default_factory=dict)
    transitions: list[Transition] = field(default_factory=list)
    stored: list[Stored] = field(default_factory=list)
    steps: int = 0

    def fork(self) -> "Output":
        """Copy that of a hypothesis, which has no violations."""
        return Output(
            self.row,
            self.rows[:],
            self.checked[:],
            [],
            self.expected_lines[:],
            self.bound.copy(),
            self.transitions[:],
            self.stored[:],
        )

    def bind(self, kind: str, times: int = 1) -> None:
        """Count what was bound from observation."""
        self.bound[kind] = self.bound.get(kind, 0) + times

    def explain(self, *requests: str) -> None:
        """Note that the responses of some requests are explained."""
        self.checked += map(_EXPLAINED, zip(requests, repeat(True)))

    def fail_write(
        self, why: str, seen: ObservedRequest, times_out_ms: float, now_ms: float = 0.0
    ) -> None:
        """Count a write that failed. If it timed out, a line may say so, at that time or later.

        Its request may have been answered before `now_ms`, when it fails. A record that could not
        be appended is in no log. One that too few replicas have is in theirs. One that timed out
        may be, and so may one whose broker gave the partition up.
        """
        self.bind("failed_write")
        self.bind(why)
        if why == LOGGED:
            self.stored.append(Stored(now_ms, None, seen.id, failed=True))
        if why == TIMED_OUT:
            by_ms, said = max(seen.answered_ms, now_ms), (("broker", seen.broker),)
            self.expected_lines.append(ExpectedLine(why, "", by_ms, times_out_ms, by_ms, said))

    def follow(
        self, transition: Transition, cause: Candidate, now_ms: float, incarnation: int
    ) -> None:
        """Write a transition into the timeline: a rebalance that begins, or its join phase's end.

        A rebalance that begins supersedes one that is under way.
        """
        self.transitions.append(transition)
        if transition.after is State.PREPARING_REBALANCE:
            self.close("superseded", now_ms)
            self.row = ExpectedRebalance(
                incarnation=incarnation,
                old_generation=transition.generation,
                started_ms=now_ms,
                earliest_ms=cause.earliest_ms,
                latest_ms=cause.latest_ms,
                reason=str(transition.reason),
                member_id=transition.member_id,
            )
        elif self.row is not None:
            self.row = self.row.after(transition, now_ms)

    def assigned(self, received: AssignmentReceived, now_ms: float) -> None:
        """Write the leader's assignment into the timeline."""
        if self.row is not None:
            self.row = self.row.assigned(received, now_ms)

    def close(self, ended_as: str, now_ms: float) -> None:
        """Put the row under way, if any, on the timeline; `ended_as` if it has not ended yet."""
        if self.row is None:
            return
        if self.row.ended_as == "open":
            self.row = replace_fields(self.row, ended_as=ended_as, ended_ms=now_ms)
        self.rows.append(self.row)
        self.row = None

    def mark(self) -> Mark:
        """Remember how far it came, for `back_to`."""
        return tuple(len(getattr(self, name)) for name in _LISTS), self.bound.copy()

    def back_to(self, mark: Mark) -> None:
        """Forget what came since."""
        counts, bound = mark
        for name, count in zip(_LISTS, counts, strict=True):
            del getattr(self, name)[count:]
        self.bound = bound.copy()

    def add(self, other: "Output") -> None:
        """Add what came of later events."""
        for name in _LISTS:
            getattr(self, name).extend(getattr(other, name))
        for kind, times in other.bound.items():
            self.bind(kind, times)
        self.steps += other.steps

    def add_between(self, other: "Output", since: Mark, until: Mark) -> None:
        """Add what came to another one from one mark to the next; without the steps."""
        (begins, before), (ends, bound) = since, until
        for name, begin, end in zip(_LISTS, begins, ends, strict=True):
            getattr(self, name).extend(getattr(other, name)[begin:end])
        for kind, times in bound.items():
            if kind not in before or times > before[kind]:
                self.bind(kind, times - before.get(kind, 0))

    def result(self) -> Replay:
        """Freeze it."""
        return Replay(
            tuple(self.rows),
            tuple(self.checked),
            tuple(self.violations),
            tuple(self.expected_lines),
            dict(self.bound),
            tuple(self.transitions),
            self.steps,
        )
