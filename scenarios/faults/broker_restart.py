"""`broker.restart`: brokers shut down cleanly, and start again at once."""

from typing import ClassVar, Literal

from scenarios.faults import brokers
from scenarios.faults.broker_stop import SHUT_DOWN
from scenarios.faults.declaration import About, Planned


class BrokerRestart(brokers.BrokerFault):
    """Shuts the brokers down cleanly, and starts them again at once."""

    about: ClassVar[About] = About(
        hits="broker",
        broker="stopped",
        noun="broker restart",
        meaning="shut down cleanly and started again at once",
        targets=brokers.TARGETS,
        witness=SHUT_DOWN + brokers.IN_SYNC,
        expects=brokers.MOVES + "The group may come back to the broker once it leads again.",
        undo=brokers.STARTED,
    )

    fault: Literal["broker.restart"]

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned("start again at once")
