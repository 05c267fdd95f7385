"""When a fault fires: at a time, every so often, so many times, and once a condition holds."""

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from scenarios.durations import PositiveMs, format_ms
from scenarios.fields import Count, GroupStateName, Part
from scenarios.problems import Path, Problem, unknown

if TYPE_CHECKING:
    from scenarios.experiment import Experiment
    from scenarios.faults import Fault


class When(Part):
    """A condition of a group. It is awaited from the time `at` on, each time that a fault fires."""

    group: str
    state: GroupStateName | None = None
    """The state that the group is in, by the lines of its coordinator."""
    members: Count | None = None
    """How many members it has, by DescribeGroups."""
    within_ms: PositiveMs = 60_000
    """How long it is awaited. After that the fault is not injected: the verdict is `unknown`."""

    def __str__(self) -> str:
        """Return it as people read it."""
        what = f"is {self.state}" if self.state else f"has {self.members} members"
        return f"{self.group} {what}"


def times_ms(fault: "Fault", experiment: "Experiment") -> range:
    """Return when a fault that fires once or every so often is due, from the steady state on.

    `every` without `repeat` goes on through the impact phase.
    """
    if fault.every_ms is None:
        return range(fault.at_ms, fault.at_ms + 1)
    if fault.repeat is not None:
        return range(fault.at_ms, fault.at_ms + fault.repeat * fault.every_ms, fault.every_ms)
    first_ms = min(other.at_ms for other in experiment.faults)
    return range(fault.at_ms, first_ms + experiment.phases.impact_ms, fault.every_ms)


def earlier(fault: "Fault", experiment: "Experiment") -> list["Fault"]:
    """Return the faults that are due before one, or at the same time and stand before it."""
    before = {id(other) for other in takewhile(lambda other: other is not fault, experiment.faults)}
    return [
        other
        for other in experiment.faults
        if other.at_ms < fault.at_ms or (other.at_ms == fault.at_ms and id(other) in before)
    ]


def once(fault: "Fault", path: Path) -> Iterator[Problem]:
    """Yield what is wrong if a fault that can be done only once is to fire again."""
    if fault.every_ms is not None and fault.repeat != 1:
        yield Problem((*path, "every"), "cannot be done again; remove `every` and `repeat`")


def problems(fault: "Fault", experiment: "Experiment", path: Path) -> Iterator[Problem]:
    """Yield what is wrong with when a fault fires."""
    if fault.repeat is not None and fault.every_ms is None:
        yield Problem((*path, "repeat"), "say how often, too: every")
    goes_on = fault.every_ms is not None and not fault.is_series
    if goes_on and not times_ms(fault, experiment):
        yield Problem(
            (*path, "at"),
            "is after the impact phase, so that `every` never fires; write `repeat`, too, or a "
            "longer impact phase",
        )
    when = fault.when
    if when is None:
        return
    path = (*path, "when")
    yield from unknown("group", when.group, experiment.group_names, (*path, "group"))
    if (when.state is None) == (when.members is None):
        yield Problem(path, "write the state of the group, or its number of members")
    if fault.is_series:
        yield Problem(path, "is for a fault that fires once at a time; remove it")
    elif fault.every_ms is not None and when.within_ms > fault.every_ms:
        yield Problem(
            (*path, "within"),
            f"{format_ms(when.within_ms)} is more than the time to the next one; write "
            f"{format_ms(fault.every_ms)} or less",
        )
