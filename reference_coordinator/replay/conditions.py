"""What stays the same for all hypotheses about one coordinator epoch."""

from dataclasses import dataclass

from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.step import Step, step
from reference_coordinator.replay.evidence import Outage, Stall, Tolerance


@dataclass(frozen=True)
class Conditions:
    """The rules of the replay, and what is known of the broker in this epoch.

    `step` is the coordinator that the broker is compared with. `stored_record` is the group record
    that the broker loads; `loads_closed` says that it loads before it takes requests.
    """

    profile: Profile
    tolerance: Tolerance
    stored_record: GroupRecord | None = None
    incarnation: int = 0
    stalls: tuple[Stall, ...] = ()
    outages: tuple[Outage, ...] = ()
    loads_closed: bool = False
    step: Step = step

    def latest(self, due_ms: float, slack_ms: float) -> float:
        """Return until when something due may happen: later if the broker stands still then."""
        limit = due_ms + slack_ms
        if not self.stalls:
            return limit
        for stall in sorted(self.stalls, key=lambda stall: stall.from_ms):
            if stall.from_ms <= limit and stall.until_ms >= due_ms:
                limit = max(limit, stall.until_ms + slack_ms)
        return limit
