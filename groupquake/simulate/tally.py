"""What one course of events came to, group by group."""

from collections import Counter
from dataclasses import dataclass, field

from scenarios.model import Phase


@dataclass
class Tally:
    """What happened to one group, in one course.

    `rebalances` counts transitions into PreparingRebalance by phase and reason class. `stopped_ms`
    is how long its members were without partitions in rebalances, added up, and `unowned_s` for how
    many partition-seconds nobody consumed; both from the impact phase to the end of recovery.
    """

    rebalances: Counter[tuple[Phase, str]] = field(default_factory=Counter)
    stopped_ms: float = 0.0
    unowned_s: float = 0.0

    def count(self, phase: Phase | None, reason: str | None) -> int:
        """Return how many rebalances began in a phase for a reason; None stands for any."""
        return sum(
            number
            for (one, why), number in self.rebalances.items()
            if phase in (None, one) and reason in (None, why)
        )
