"""`broker.kill`: brokers end with SIGKILL, and start again."""

from typing import ClassVar, Literal

from scenarios.faults import brokers
from scenarios.faults.declaration import About, Planned


class BrokerKill(brokers.BrokerAway):
    """Ends the brokers with SIGKILL, and starts them again."""

    about: ClassVar[About] = About(
        hits="broker",
        broker="killed",
        noun="broker kill",
        meaning="ended with SIGKILL, then started again",
        targets=brokers.TARGETS,
        witness=(
            "The port of the broker refuses connections, and its `group.log` lacks the line that a "
            "coordinator writes when it shuts down. " + brokers.IN_SYNC
        ),
        expects=(
            brokers.MOVES + "Only what was written to the log survives: a member id that the "
            "coordinator gave out and did not write is unknown to the next one."
        ),
        undo=brokers.STARTED,
    )

    fault: Literal["broker.kill"]

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned_absence("start again")
