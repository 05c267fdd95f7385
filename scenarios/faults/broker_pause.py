"""`broker.pause`: brokers freeze; their sockets stay open, and nothing answers."""

from typing import ClassVar, Literal

from scenarios.faults import brokers
from scenarios.faults.declaration import About, Planned


class BrokerPause(brokers.BrokerAway):
    """Freezes the brokers: their sockets stay open, nothing answers."""

    about: ClassVar[About] = About(
        hits="broker",
        broker="paused",
        noun="broker pause",
        meaning="frozen: its sockets stayed open and nothing answered",
        targets=brokers.TARGETS,
        witness=(
            "The broker takes the connection of an ApiVersions request and does not answer it for "
            "as long as the fault lasts. " + brokers.IN_SYNC
        ),
        expects=(
            "A pause longer than the broker's lease moves its groups to other brokers. "
            + brokers.MOVES
            + "The oracle knows when the broker was frozen, and accepts answers and timers that "
            "are late for that reason."
        ),
        undo=(
            "Lets the broker go on (SIGCONT, or unpause). From the journal alone nothing is left "
            "to undo: `groupquake heal` ends all brokers of the run."
        ),
    )

    fault: Literal["broker.pause"]

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned_absence("resume")
