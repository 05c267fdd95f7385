"""`disk.full`: no byte is left for the data of brokers, and they end."""

from typing import ClassVar, Literal

from scenarios.faults import brokers
from scenarios.faults.declaration import About, Planned

NEEDS = (
    " The data of each broker is on a file system of its own in the run folder (ext4 on a loop "
    "device), which needs root; without it the run ends before anything is started."
)


class DiskFull(brokers.BrokerAway):
    """Leaves no free byte on the disk of the brokers; each ends at its next write.

    Afterwards the space is free again, and the brokers start.
    """

    about: ClassVar[About] = About(
        hits="broker",
        broker="killed",
        needs_volume=True,
        noun="full disk",
        meaning="its disk was full, so that it ended; then space was freed and it was started",
        targets=brokers.TARGETS + NEEDS,
        witness=(
            "The `server.log` of the broker says `No space left on device`, and its port refuses "
            "connections. " + brokers.IN_SYNC
        ),
        expects=(
            "Kafka gives up a log directory that it cannot write to, and ends if it has no other. "
            + brokers.MOVES
            + "Requests that wait for a write that fails are answered NOT_COORDINATOR or "
            "COORDINATOR_NOT_AVAILABLE, if at all."
        ),
        undo=(
            "Frees the space and starts the broker on the same ports and data. From the journal "
            "alone nothing is left to undo: `groupquake heal` ends all brokers of the run and "
            "unmounts their file systems."
        ),
    )

    fault: Literal["disk.full"]

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned_absence("free the disk, start again")
