"""The result of a replay: checked responses, expected rebalances, violations."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reference_coordinator.classic.effects import Transition
from reference_coordinator.classic.timeline import ExpectedRebalance
from reference_coordinator.frozen import frozen_dataclass
from reference_coordinator.replay.expected_lines import Says


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


Mark = tuple[int, int, int, int, int, dict[str, int]]


@dataclass(slots=True)
class Outcome:
    """A replay's result as it comes together, epoch by epoch."""

    rows: list[ExpectedRebalance] = field(default_factory=list)
    checked: list[Checked] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    expected_lines: list[ExpectedLine] = field(default_factory=list)
    bound: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    transitions: list[Transition] = field(default_factory=list)
    steps: int = 0

    def mark(self) -> Mark:
        """Remember how far it came, for `back_to`."""
        rows, checked, violations = len(self.rows), len(self.checked), len(self.violations)
        return (
            rows,
            checked,
            violations,
            len(self.expected_lines),
            len(self.transitions),
            self.bound.copy(),
        )

    def back_to(self, mark: Mark) -> None:
        """Forget what came since."""
        rows, checked, violations, expected_lines, transitions, bound = mark
        del self.rows[rows:], self.checked[checked:], self.violations[violations:]
        del self.expected_lines[expected_lines:], self.transitions[transitions:]
        self.bound = defaultdict(int, bound)

    def add(self, other: "Outcome") -> None:
        """Add the outcome of another epoch."""
        self.add_between(other, Outcome().mark(), other.mark())
        self.steps += other.steps

    def add_between(self, other: "Outcome", since: Mark, until: Mark) -> None:
        """Add what came to another outcome from one mark to the next; without the steps."""
        lists = "rows", "checked", "violations", "expected_lines", "transitions"
        for name, first, end in zip(lists, since, until, strict=False):
            getattr(self, name).extend(getattr(other, name)[first:end])
        *_, before = since
        *_, bound = until
        for kind, times in bound.items():
            if kind not in before or times > before[kind]:
                self.bound[kind] += times - before.get(kind, 0)

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
