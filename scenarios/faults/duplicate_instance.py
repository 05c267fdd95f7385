"""`member.duplicate-instance`: a second process joins under the instance id of a member."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from scenarios.durations import PositiveMs
from scenarios.faults import members
from scenarios.faults.declaration import About, Planned, seconds
from scenarios.problems import Path, Problem

if TYPE_CHECKING:
    from scenarios.experiment import Experiment


class DuplicateInstance(members.MemberFault):
    """Starts a second process under the instance id of each target.

    At the end the second process is ended and its target, which is fenced by then (KIP-345), is
    started afresh.
    """

    about: ClassVar[About] = About(
        hits="member",
        noun="duplicate",
        meaning="a second process came with its instance id, and was ended before it was started "
        "afresh",
        targets=members.TARGETS + " Each must be static when the fault fires.",
        witness=(
            "`group.log` shows a JoinGroup of the second process without an error, and a request "
            "of the target under the same instance id that was answered FENCED_INSTANCE_ID. "
            + members.REJOINED
        ),
        expects=(
            "The coordinator lets the newer process in under a new member id and fences the older "
            "one (KIP-345). From Stable that costs no rebalance, and neither does the target that "
            "is started afresh within the session timeout."
        ),
        undo=(
            "Ends the second process and starts the target afresh, over the control channel. If "
            "the load process is gone, both ended with it."
        ),
    )

    fault: Literal["member.duplicate-instance"]
    lasts_ms: PositiveMs
    """How long the second process runs."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check the targets, and that each has an instance id to duplicate."""
        yield from super().checks(experiment, path)
        # A fault may have made a member static by then: that shows when this one fires.
        becoming = any(
            isinstance(other, members.MemberFault) and other.makes_static
            for other in experiment.faults
        )
        dynamic = [m.name for m in self.known_targets(experiment) if m.kind == "dynamic"]
        if dynamic and not becoming:
            yield Problem(
                (*path, "target"),
                f"{dynamic[0]} is dynamic and has no instance id to duplicate; choose static ones",
            )

    def planned(self) -> Planned:
        """Return its row of the plan."""
        undo = f"end the duplicate after {seconds(self.lasts_ms)}, start the member afresh"
        return self._planned(undo, lasts_ms=self.lasts_ms)
