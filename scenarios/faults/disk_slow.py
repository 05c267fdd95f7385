"""`disk.slow`: writes to the data of brokers take long."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from scenarios.durations import PositiveMs, format_ms
from scenarios.faults import brokers
from scenarios.faults.declaration import About, Planned, seconds
from scenarios.faults.disk_full import NEEDS
from scenarios.problems import Path, Problem

if TYPE_CHECKING:
    from scenarios.experiment import Experiment


class DiskSlow(brokers.BrokerFault):
    """Makes writes of the brokers wait, again and again, as an overloaded disk does."""

    about: ClassVar[About] = About(
        hits="broker",
        needs_volume=True,
        noun="slow disk",
        meaning="writes to its disk waited, again and again",
        targets=brokers.TARGETS + NEEDS,
        witness=(
            "A write of ours to the same file system waits for at least half of `stall`. "
            "Afterwards one does not. " + brokers.IN_SYNC
        ),
        expects=(
            "A coordinator waits for its own write and for those of its replicas, so answers take "
            "up to `stall` longer, and so may a timer that expires meanwhile. Nobody is removed "
            "as long as `stall` is well below the session timeout. A write that its replicas do "
            "not confirm within 5 s fails."
        ),
        undo=(
            "Lets writes go on. From the journal alone nothing is left to undo: `groupquake heal` "
            "lets them go on, ends all brokers of the run and unmounts their file systems."
        ),
    )

    fault: Literal["disk.slow"]
    lasts_ms: PositiveMs
    """How long the disk is slow."""
    stall_ms: PositiveMs = 400
    """How long writes wait each time."""
    period_ms: PositiveMs = 500
    """From the start of one wait to the start of the next."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check the targets, and that writes get on in between."""
        yield from super().checks(experiment, path)
        if self.period_ms <= self.stall_ms:
            yield Problem(
                (*path, "period"),
                f"{format_ms(self.period_ms)} is not longer than a stall; write more than "
                f"{format_ms(self.stall_ms)}",
            )

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned(
            f"let writes go on after {seconds(self.lasts_ms)}",
            lasts_ms=self.lasts_ms,
            stall_ms=self.stall_ms,
            period_ms=self.period_ms,
        )
