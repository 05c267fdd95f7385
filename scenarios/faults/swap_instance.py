"""`member.swap-instance`: two static members exchange their instance ids."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from scenarios.durations import PositiveMs
from scenarios.faults import members
from scenarios.faults.declaration import About, FaultPart, Planned, seconds
from scenarios.fields import SomeItems
from scenarios.problems import Path, Problem, unknown
from scenarios.targets import Names

if TYPE_CHECKING:
    from scenarios.experiment import Experiment


class SwapInstance(FaultPart):
    """Restarts two static members, each with the instance id of the other.

    At the end both restart with their own, as after a deployment that mixed up two replicas.
    """

    about: ClassVar[About] = About(
        hits="member",
        noun="swap",
        meaning="two members restarted with each other's instance id, then with their own",
        targets="Two static members of one group, in `members`.",
        witness="`group.log` shows a JoinGroup and a SyncGroup of each, without an error, with the "
        "instance id of the other. " + members.REJOINED + " It has its own instance id again.",
        expects=(
            "The coordinator takes each for the instance that it names: it replaces the member id "
            "and gives it the partitions of that instance (KIP-345). From Stable that costs no "
            "rebalance, since each instance is back within its session timeout. The two exchange "
            "their partitions."
        ),
        undo=(
            "Restarts both with their own instance ids, over the control channel. If the load "
            "process is gone, its members are gone too, and nothing is left to undo."
        ),
    )

    fault: Literal["member.swap-instance"]
    members: SomeItems[str]
    """The two members, by name."""
    lasts_ms: PositiveMs
    """How long they keep the instance id of the other."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check that they are two static members of one group."""
        known = experiment.member_called
        path = (*path, "members")
        for j, name in enumerate(self.members):
            yield from unknown("member", name, known, (*path, j))
            if name in known and known[name].instance_id is None:
                yield Problem(
                    (*path, j), f"{name} is dynamic and has no instance id; choose static members"
                )
        groups = {known[name].group for name in self.members if name in known}
        if len(set(self.members)) != 2 or len(self.members) != 2:
            yield Problem(path, "name two members")
        elif len(groups) > 1:
            yield Problem(path, "these are in two groups; choose members of one")

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return Planned(
            hits=" and ".join(self.members),
            undo=f"restart with their own after {seconds(self.lasts_ms)}",
            args={"lasts_ms": self.lasts_ms},
            target=Names(names=self.members),
        )
