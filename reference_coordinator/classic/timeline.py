"""The expected timeline of a group: a row for each rebalance, built from the effects of `step`."""

from reference_coordinator.classic.effects import AssignmentReceived, Transition
from reference_coordinator.classic.state import COMPLETING_REBALANCE, EMPTY
from reference_coordinator.frozen import frozen_dataclass, replace_fields

ROW_KEY = ("incarnation", "old_generation")
"""The columns that name a rebalance in its group."""


@frozen_dataclass(frozen=True)  # without slots, for `replace_fields`
class ExpectedRebalance:
    """One expected rebalance, from PreparingRebalance to its end; times in ms, -1: never.

    The columns are those of the observed timeline. `ended_as` is `assigned`, `empty`, `superseded`
    (by the next rebalance), or `open`.
    """

    incarnation: int
    old_generation: int
    started_ms: float
    earliest_ms: float
    latest_ms: float
    reason: str
    member_id: str
    joined_ms: float = -1.0
    generation: int = -1
    members: int = -1
    leader: str = ""
    assigned_ms: float = -1.0
    assigned_members: int = -1
    static_members: int = -1
    ended_as: str = "open"
    ended_ms: float = -1.0

    def after(self, transition: Transition, now_ms: float) -> "ExpectedRebalance":
        """Return the row after the transition that completes the join phase."""
        if transition.after is COMPLETING_REBALANCE:
            return replace_fields(
                self,
                joined_ms=now_ms,
                generation=transition.generation,
                members=transition.members,
            )
        if transition.after is EMPTY:
            return replace_fields(
                self,
                joined_ms=now_ms,
                generation=transition.generation,
                members=0,
                ended_as="empty",
                ended_ms=now_ms,
            )
        return self

    def assigned(self, received: AssignmentReceived, now_ms: float) -> "ExpectedRebalance":
        """Return the row after the coordinator accepted the leader's assignment."""
        return replace_fields(
            self,
            leader=received.leader,
            assigned_ms=now_ms,
            assigned_members=received.members,
            static_members=received.static_members,
            ended_as="assigned",
            ended_ms=now_ms,
        )
