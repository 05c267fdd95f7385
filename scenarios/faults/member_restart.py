"""`member.restart`: members close, and start again, if asked with another identity."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from scenarios.faults import members
from scenarios.faults.declaration import About, Planned
from scenarios.problems import Path, Problem

if TYPE_CHECKING:
    from scenarios.experiment import Experiment


class MemberRestart(members.MemberAway):
    """Closes the targets, all at once, and starts them again."""

    about: ClassVar[About] = About(
        hits="member",
        noun="restart",
        meaning="closed cleanly, then started again",
        targets=members.TARGETS,
        witness=members.SILENT + members.REJOINED,
        expects=(
            "A static member that rejoins within its session timeout gets a new member id and no "
            "rebalance happens from Stable (KIP-345). After its session timeout it is removed, "
            "which costs a rebalance, and its JoinGroup costs another. A dynamic member sends "
            "LeaveGroup when it closes: one rebalance when it leaves, one when it joins."
        ),
        undo=(
            "Starts the member over the control channel. If the load process is gone, its members "
            "are gone too, and nothing is left to undo."
        ),
    )

    fault: Literal["member.restart"]
    becomes: members.Identity | None = None
    """The identity that they restart with; by default the one they had."""

    @property
    def makes_static(self) -> bool:
        """Whether `becomes` is a static identity."""
        return isinstance(self.becomes, members.Static)

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check the targets, and that each gets an instance id of its own."""
        yield from super().checks(experiment, path)
        yield from members.shared_identity(self, self.becomes, experiment, path)

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return self._planned_restart(self.becomes)
