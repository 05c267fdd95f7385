"""`broker.stop`: brokers shut down cleanly, stay away for a while, and start again."""

from typing import ClassVar, Literal

from scenarios.faults import brokers
from scenarios.faults.declaration import About, Planned

SHUT_DOWN = (
    "The port of the broker refuses connections, and its `group.log` ends with the line that a "
    "coordinator writes when it shuts down. "
)


class BrokerStop(brokers.BrokerAway):
    """Shuts the brokers down cleanly, and starts them again."""

    about: ClassVar[About] = About(
        hits="broker",
        broker="stopped",
        noun="broker stop",
        meaning="shut down cleanly, then started again",
        targets=brokers.TARGETS,
        witness=SHUT_DOWN + brokers.IN_SYNC,
        expects=brokers.MOVES + "A clean shutdown hands the group over before the process ends.",
        undo=brokers.STARTED,
    )

    fault: Literal["broker.stop"]

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned_absence("start again")
