"""What one course of events came to, group by group."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kafka_protocol.consumer_protocol import TopicPartition
from scenarios.model import Phase

COUNTED: tuple[Phase, ...] = ("impact", "recovery")
"""The phases in which what a rebalance costs is added up."""


@dataclass
class Tally:
    """What happened to one group, in one course.

    `rebalances` counts transitions into PreparingRebalance by phase and reason class. `stopped_ms`
    is how long its members were without partitions in rebalances, added up, `unowned_s` for how
    many partition-seconds nobody consumed, and `moved` how many partitions got another owner; all
    in the phases `COUNTED`.
    """

    rebalances: Counter[tuple[Phase, str]] = field(default_factory=Counter)
    stopped_ms: float = 0.0
    unowned_s: float = 0.0
    idle_ms: float = 0.0
    """The longest time for which a partition was between two owners."""
    moved: int = 0
    """How many partitions got another owner."""
    _left_ms: dict[TopicPartition, float] = field(default_factory=dict)
    _last: dict[TopicPartition, str] = field(default_factory=dict)
    _owners: Counter[TopicPartition] = field(default_factory=Counter)
    _looked_ms: float = 0.0

    def forget(self) -> None:
        """Count from now on."""
        self.rebalances.clear()
        self._left_ms.clear()
        self.stopped_ms = self.unowned_s = self.idle_ms = 0.0
        self.moved = 0

    def own(
        self, owner: str, before: Iterable[TopicPartition], after: Sequence[TopicPartition],
        now_ms: float, phase: Phase | None,
    ) -> None:  # fmt: skip
        """Note that a process of a member owns other partitions than before, from a time on."""
        for one in after:
            self.moved += phase in COUNTED and self._last.get(one, owner) != owner
            self._last[one] = owner
        for one in before:
            self._owners[one] -= 1
            if not self._owners[one]:
                del self._owners[one]
                self._left_ms[one] = now_ms
        self._owners.update(after)
        for one in after:
            self.idle_ms = max(self.idle_ms, now_ms - self._left_ms.pop(one, now_ms))

    def look(self, now_ms: float, partitions: int, phase: Phase | None) -> None:
        """Add up for how long some of so many partitions have had no owner since the last look."""
        past_ms, self._looked_ms = now_ms - self._looked_ms, now_ms
        if phase in COUNTED:
            self.unowned_s += max(0, partitions - len(self._owners)) * past_ms / 1_000

    def count(self, phase: Phase | None, reason: str | None) -> int:
        """Return how many rebalances began in a phase for a reason; None stands for any."""
        return sum(
            number
            for (one, why), number in self.rebalances.items()
            if phase in (None, one) and reason in (None, why)
        )
