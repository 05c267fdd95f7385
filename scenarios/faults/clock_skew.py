"""`clock.skew`: the wall clocks of brokers are wrong for a while."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from scenarios.durations import PositiveMs, SignedMs, format_ms
from scenarios.faults import brokers
from scenarios.faults.declaration import About, Planned, seconds
from scenarios.problems import Path, Problem

if TYPE_CHECKING:
    from scenarios.experiment import Experiment

LEAST_MS = 500
"""Less may be a line that its broker wrote late."""
SHORTEST_MS = 2_000
"""A broker notices within a second, and then its clock is read."""


class ClockSkew(brokers.BrokerFault):
    """Sets the wall clocks of the brokers forward or back, as a wrong time server does.

    At the end they jump back. The monotonic clock is left as it is.
    """

    about: ClassVar[About] = About(
        hits="broker",
        needs_clock=True,
        noun="clock skew",
        meaning="its wall clock was set off, then set right",
        targets=brokers.TARGETS
        + (
            " In containers alone (`--cluster docker`), of an image with Debian's `libfaketime`: "
            "`groupquake dev image build` makes it."
        ),
        witness=(
            "A request of ours that is too long lets the broker write a line to its `server.log`. "
            "The time in it is off by `by`, compared with a line from before the fault. Afterwards "
            "it is not. " + brokers.IN_SYNC
        ),
        expects=(
            "Nothing changes for a group. Sessions, rebalances and purgatories run on the "
            "monotonic clock (`System.nanoTime`), in the Scala and in the Java coordinator. The "
            "quorum of the controllers times its elections by the wall clock: where that jumps "
            "ahead by two seconds, they elect again. From 4.0 on each line of a broker also has "
            "its monotonic time, which places it. Before, a line has the wrong time alone: the "
            "verdict is `unknown`, and faults on members meanwhile are not verified."
        ),
        undo=(
            "Sets the clock right. From the journal alone nothing is left to undo: "
            "`groupquake heal` ends all brokers of the run."
        ),
    )

    fault: Literal["clock.skew"]
    by_ms: SignedMs
    """How far the clock is ahead, or behind with a minus; 500 ms at least."""
    lasts_ms: PositiveMs
    """How long it is wrong."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check the targets, and that it can be seen."""
        yield from super().checks(experiment, path)
        if abs(self.by_ms) < LEAST_MS:
            yield Problem(
                (*path, "by"), f"is too little to be seen; write {format_ms(LEAST_MS)} or more"
            )
        if self.lasts_ms < SHORTEST_MS:
            yield Problem(
                (*path, "lasts"),
                f"is too short for a broker to notice; write {format_ms(SHORTEST_MS)} or more",
            )

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned(
            f"set right after {seconds(self.lasts_ms)}", by_ms=self.by_ms, lasts_ms=self.lasts_ms
        )
