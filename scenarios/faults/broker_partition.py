"""`broker.partition`: nothing passes between a broker and the others; clients reach them all."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from scenarios.durations import PositiveMs
from scenarios.faults import brokers
from scenarios.faults.declaration import About, Planned, seconds
from scenarios.problems import Path, Problem

if TYPE_CHECKING:
    from scenarios.experiment import Experiment

NEEDS = (
    " The brokers run in containers (`--cluster docker`, which is the default with this fault), "
    "with the capability NET_ADMIN; an image or a kernel that cannot do it ends the run before the "
    "load is started."
)


class BetweenBrokers(brokers.BrokerFault):
    """What the faults of the network between brokers have in common."""

    for_ms: PositiveMs
    """How long it lasts."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check the targets, and that there is another broker."""
        yield from super().checks(experiment, path)
        if experiment.cluster.brokers == 1:
            yield Problem((*path, "fault"), "is between brokers, and there is one; have more")


class BrokerPartition(BetweenBrokers):
    """Parts each broker from all others, data and metadata quorum; clients still reach it."""

    about: ClassVar[About] = About(
        hits="broker",
        network="part",
        noun="broker partition",
        meaning="parted from the other brokers, while clients reached it",
        targets=brokers.TARGETS + NEEDS,
        witness=(
            "From within the container of the broker, no other broker takes a TCP connection, and "
            "the broker answers a request of ours at its port for clients. Afterwards all take "
            "one. " + brokers.IN_SYNC
        ),
        expects=(
            "The controller fences the broker after `broker.session.timeout.ms` (9 s by default), "
            "and others lead its partitions. The broker does not learn of that: clients that still "
            "reach it are answered as ever, so that a group may have two coordinators at a time. "
            "What it writes is confirmed by no replica, so that commits and rebalances on it fail "
            "after `offsets.commit.timeout.ms`, and what it wrote meanwhile is lost. Another "
            "broker took the group over as it was before the partition. Static and dynamic members "
            "stay if each sends it a request within its session timeout; one that still asks the "
            "broker that is parted does not, is removed, and joins again afterwards."
        ),
        undo=(
            "Lets packets pass. From the journal alone nothing is left to undo: `groupquake heal` "
            "ends all containers of the run, and their networks with them."
        ),
    )

    fault: Literal["broker.partition"]

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned(f"let packets pass after {seconds(self.for_ms)}", for_ms=self.for_ms)
