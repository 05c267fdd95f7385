"""The output of a stretch: rows of the expected timeline, expected lines, checked responses.

It forks with its hypothesis, so an order that is given up leaves no trace in the outcome.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from reference_coordinator.classic.effects import AssignmentReceived, Transition
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import State
from reference_coordinator.classic.timeline import ExpectedRebalance
from reference_coordinator.frozen import replace_fields
from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.replay.failed_writes import LOGGED, TIMED_OUT
from reference_coordinator.replay.result import ExpectedLine


class Stored(NamedTuple):
    """The write of a record for a request, if for any; or that it failed, and is in no log."""

    at_ms: float
    record: GroupRecord | None
    request: str | None = None
    failed: bool = False


@dataclass(slots=True)
class Output:
    """What came of events so far; `row` is the rebalance under way, `bound` counts by kind."""

    row: ExpectedRebalance | None = None
    rows: list[ExpectedRebalance] = field(default_factory=list)
    expected_lines: list[ExpectedLine] = field(default_factory=list)
    stored: list[Stored] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    bound: dict[str, int] = field(default_factory=dict)
    transitions: list[Transition] = field(default_factory=list)

    def fork(self) -> "Output":
        """Copy it."""
        return Output(
            self.row,
            self.rows[:],
            self.expected_lines[:],
            self.stored[:],
            self.answered[:],
            self.bound.copy(),
            self.transitions[:],
        )

    def bind(self, kind: str, times: int = 1) -> None:
        """Count what was bound from observation."""
        self.bound[kind] = self.bound.get(kind, 0) + times

    def fail_empty_write(self) -> None:
        """Count a write of a group without members that no request waits for, and that failed."""
        self.bind("failed_write")
        self.bind(LOGGED)

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
