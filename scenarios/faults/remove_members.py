"""`group.remove-members`: an operator removes static members by their instance ids."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from scenarios.faults.declaration import About, FaultPart, Planned
from scenarios.fields import MOST, Name
from scenarios.problems import Path, Problem, shown, unknown

if TYPE_CHECKING:
    from scenarios.experiment import Experiment


def _instances(value: object) -> object:
    if value in ([], ()):
        raise ValueError("the list is empty; write all, or a list of instance ids")
    if value == "all" or (isinstance(value, list | tuple) and len(value) <= MOST):
        return value
    raise ValueError(f"{shown(value)} is not allowed; write all, or up to {MOST} instance ids")


class RemoveMembers(FaultPart):
    """Removes members with one LeaveGroup request by their instance ids (KIP-345)."""

    about: ClassVar[About] = About(
        hits="group",
        noun="removal",
        meaning="one LeaveGroup request that names members by instance id",
        one_shot=True,
        targets="A group, and instance ids in `instances`; `all` are the static members that the "
        "group has when the fault fires.",
        witness="The `group.log` of the broker that answered shows the LeaveGroup with exactly "
        "these instance ids and no error for the whole request.",
        expects=(
            "All members of the request leave at once and cost one rebalance together. An unknown "
            "instance id is answered UNKNOWN_MEMBER_ID and costs none. The removed process is "
            "answered UNKNOWN_MEMBER_ID at its next request, and joins again if it still runs."
        ),
        undo="Nothing: a removed member joins again if its process runs.",
    )

    fault: Literal["group.remove-members"]
    group: str
    """The group that they are members of."""
    instances: Annotated[
        Literal["all"] | tuple[Name, ...],
        BeforeValidator(
            _instances,
            json_schema_input_type=Literal["all"] | Annotated[list[Name], Field(max_length=MOST)],
        ),
    ]
    """Instance ids, known to the group or not; `all` are those that it has when the fault fires."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check that the group exists."""
        groups = [group.name for group in experiment.workload.groups]
        yield from unknown("group", self.group, groups, (*path, "group"))

    def planned(self) -> Planned:
        """Return its row of the plan."""
        if self.instances == "all":
            instances: object = "all"
            listed = "all static members"
        else:
            instances = list(self.instances)
            listed = ", ".join(self.instances)
        return Planned(
            hits=f"{listed} of {self.group}",
            undo="none",
            args={"instances": instances},
            group=self.group,
        )
