"""`coordinator.move`: another broker becomes the coordinator of a group, and none stops."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from scenarios.faults.brokers import no_such_broker
from scenarios.faults.declaration import About, FaultPart, Planned
from scenarios.fields import BrokerId
from scenarios.problems import Path, Problem, unknown

if TYPE_CHECKING:
    from scenarios.experiment import Experiment


class CoordinatorMove(FaultPart):
    """Makes another broker the coordinator of a group, as a rebalancing of partitions does.

    The group's partition of `__consumer_offsets` keeps its replicas: the new leader becomes the
    preferred one and is elected (KIP-455, KIP-460). Its other groups move with it.
    """

    about: ClassVar[About] = About(
        hits="group",
        noun="move",
        meaning="its coordinator moved to another broker, and no broker stopped",
        one_shot=True,
        moves_leaders=True,
        targets="A group.",
        witness="The metadata of every broker that answers names the new leader, and its "
        "`group.log` shows a request of the group that it served, within 30 s.",
        expects=(
            "The new coordinator reads members, instance ids and assignments from the log "
            "(KIP-345). Until members find it they are answered NOT_COORDINATOR. There is no "
            "rebalance as long as each sends a request within its session timeout, which starts "
            "anew on the new coordinator."
        ),
        undo="Nothing: the group works as before.",
    )

    fault: Literal["coordinator.move"]
    group: str
    """The group whose coordinator moves."""
    to: BrokerId | None = None
    """The id of the new coordinator; by default the next replica in sync."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check that the group and another broker exist."""
        yield from unknown("group", self.group, experiment.group_names, (*path, "group"))
        if experiment.cluster.brokers == 1:
            yield Problem((*path, "fault"), "there is one broker; give the cluster more")
        elif self.to is not None:
            yield from no_such_broker(self.to, experiment, (*path, "to"))

    def planned(self) -> Planned:
        """Return its row of the plan."""
        to = "another broker" if self.to is None else f"broker-{self.to}"
        return Planned(
            hits=f"{self.group}, to {to}", undo="none", args={"to": self.to}, group=self.group
        )
