"""`members.scale`: a group shrinks to some of its members, and grows back."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from scenarios.durations import PositiveMs
from scenarios.faults import members
from scenarios.faults.declaration import About, FaultPart, Planned, seconds
from scenarios.fields import Count
from scenarios.problems import Path, Problem, unknown

if TYPE_CHECKING:
    from scenarios.experiment import Experiment


class MembersScale(FaultPart):
    """Scales a group down to some of its members, and up to all of them again.

    Those that stop are the last ones of the file, all at once, as a deployment does it.
    """

    about: ClassVar[About] = About(
        hits="member",
        noun="scaling stop",
        meaning="closed cleanly as its group was scaled down, then started as it was scaled up",
        targets="The last members of `group`, all but `to` of them.",
        witness="As `member.restart`, for each member.",
        expects=(
            "Dynamic members send LeaveGroup: at least one rebalance on the way down, at most one "
            "a member, and the same on the way up. Static members do not leave (KIP-345): on the "
            "way down nothing happens until their session timeout, when they are removed; with "
            "`group.remove-members` a deployment need not wait for that."
        ),
        undo="As `member.restart`, for each member.",
    )

    fault: Literal["members.scale"]
    group: str
    """The group that is scaled."""
    to: Count
    """How many of its members go on."""
    lasts_ms: PositiveMs
    """How long the others are down."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check that the group exists and is larger, and that the absence is witnessed."""
        groups = {group.name: group for group in experiment.workload.groups}
        yield from unknown("group", self.group, groups, (*path, "group"))
        if self.group not in groups:
            return
        size = sum(member.group == self.group for member in experiment.members())
        if self.to >= size:
            yield Problem(
                (*path, "to"),
                f"group '{self.group}' has {size} members; write fewer: it grows to {size} again "
                "at the end",
            )
        least_ms = 2 * groups[self.group].heartbeat_interval_ms
        yield from members.too_short(self.lasts_ms, self.group, least_ms, (*path, "lasts"))

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return Planned(
            hits=f"{self.group}, to {self.to} members",
            undo=f"all members again after {seconds(self.lasts_ms)}",
            args={"to": self.to, "down_for_ms": self.lasts_ms},
            group=self.group,
        )
