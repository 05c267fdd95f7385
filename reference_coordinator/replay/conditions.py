"""What stays the same for all hypotheses about one coordinator epoch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reference_coordinator.classic import CLASSIC, ClassicProtocol
from reference_coordinator.classic.effects import Effect, Response
from reference_coordinator.classic.events import Event
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Group
from reference_coordinator.protocol import Body
from reference_coordinator.replay.evidence import Outage, Tolerance
from reference_coordinator.replay.lateness import NEVER_LATE, Lateness


@dataclass(frozen=True)
class Conditions:
    """The rules of the replay, and what is known of the broker in this epoch.

    The `step` of `protocol` is the coordinator that the broker is compared with. `stored_record` is
    the group record that the broker loads; `loads_closed` says that it loads before it takes
    requests. What every event needs of the bundle is bound once.
    """

    profile: Profile
    tolerance: Tolerance
    stored_record: GroupRecord | None = None
    incarnation: int = 0
    lateness: Lateness = NEVER_LATE
    """What holds up this broker, and so its timers."""
    answer_lateness: Lateness = NEVER_LATE
    """What holds up any broker, and so answers: they wait for writes, and these for replicas."""
    outages: tuple[Outage, ...] = ()
    loads_closed: bool = False
    protocol: ClassicProtocol = CLASSIC
    step: Callable[[Group, Event, Profile], tuple[Group, tuple[Effect, ...]]] = field(init=False)
    bodies: Mapping[str, Body[Event, Response]] = field(init=False)
    as_sent: Callable[[Response, int], Response] = field(init=False)

    def __post_init__(self) -> None:
        """Bind what every event needs of the bundle."""
        for name in ("step", "bodies", "as_sent"):
            object.__setattr__(self, name, getattr(self.protocol, name))

    def latest_expiry(self, due_ms: float) -> float:
        """Return until when a timer that is due at `due_ms` may expire."""
        return self.lateness.latest(due_ms, self.tolerance.timer)

    def latest_answer(self, due_ms: float) -> float:
        """Return until when an answer that is due at `due_ms` may be sent."""
        return self.answer_lateness.latest(due_ms, self.tolerance.reply)
