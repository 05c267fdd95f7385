"""What a replay gives: every answer checked, every rebalance expected, every violation."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing the protocol does not explain.

    `until_ms` is where the replay was sure of the group again: what lies between is a consequence.
    """

    at_ms: float
    until_ms: float
    request: str
    rule: str
    expected: str
    observed: str
    searched: bool
    """Whether all orders were tried; if not, the search ran out of budget."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One response: explained, a violation, or a consequence of one before."""

    request: str
    explained: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One expected rebalance, from PreparingRebalance to what ended it; times in ms, -1: never.

    The columns are those of the observed timeline.
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


@dataclass(frozen=True, slots=True)
class Said:
    """A line that the coordinator must have printed of a member, and when; see `said`."""

    line: str
    subject: str
    at_ms: float
    earliest_ms: float
    latest_ms: float


@dataclass(frozen=True, slots=True)
class Replay:
    """The outcome for one group. `bound` counts what was bound from observation, by kind."""

    rows: tuple[Row, ...]
    checked: tuple[Checked, ...]
    violations: tuple[Violation, ...]
    said: tuple[Said, ...] = ()
    bound: Mapping[str, int] = field(default_factory=dict)
