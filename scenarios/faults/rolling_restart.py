"""`broker.rolling-restart`: all brokers restart, one after the other."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from scenarios.durations import PositiveMs
from scenarios.faults import brokers
from scenarios.faults.broker_restart import BrokerRestart
from scenarios.faults.broker_stop import BrokerStop
from scenarios.faults.declaration import About, FaultPart
from scenarios.fields import PositiveCount
from scenarios.problems import Path, Problem
from scenarios.targets import Brokers

if TYPE_CHECKING:
    from scenarios.experiment import Experiment


class RollingRestart(FaultPart):
    """Restarts every broker, one after the other, as the deployment of a new release does.

    The next one follows when the one before is in sync again, however long that takes.
    """

    about: ClassVar[About] = About(
        hits="broker",
        noun="rolling restart",
        meaning="restarted one after the other",
        targets="All brokers. The seed of the run decides the order.",
        witness="As `broker.stop`, for each broker.",
        expects=brokers.MOVES + "A group moves each time when its coordinator stops, and maybe "
        "back to the broker when it leads again.",
        undo=brokers.STARTED,
    )

    fault: Literal["broker.rolling-restart"]
    every_ms: PositiveMs
    """From the start of one broker's restart to the start of the next, at least."""
    repeat: PositiveCount | None = None
    """How many rounds through all brokers there are; one by default."""
    down_for_ms: PositiveMs | None = None
    """How long each broker stays away; by default it starts again at once."""

    @property
    def is_series(self) -> bool:
        """Whether it becomes several faults of the plan: it does."""
        return True

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check that there are other brokers."""
        if experiment.cluster.brokers == 1:
            yield Problem(
                (*path, "fault"), "there is one broker; write broker.restart, or more brokers"
            )

    def restart(self, number: int, broker: int) -> BrokerRestart | BrokerStop:
        """Return the restart of that number, from 0, which is of this broker."""
        at_ms = self.at_ms + number * self.every_ms
        target = Brokers(brokers=(broker,))
        if self.down_for_ms is None:
            return BrokerRestart.model_construct(fault="broker.restart", at_ms=at_ms, target=target)
        return BrokerStop.model_construct(
            fault="broker.stop", at_ms=at_ms, target=target, down_for_ms=self.down_for_ms
        )
