"""The plan: which faults will be injected and when, decided before anything is touched.

The same experiment and seed give the same plan. The seed decides the order in which a bounce
restarts its members. Each fault has a random source of its own, so a change of one leaves the
others alone.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from chaos import targets
from scenarios import (
    BrokerTarget,
    Experiment,
    Fault,
    GroupBounce,
    LeaderMemberOf,
    MemberTarget,
    Names,
    SingleFault,
)
from scenarios.faults.declaration import Planned, seconds


@dataclass(frozen=True, slots=True)
class Step:
    """A fault at one time.

    `id` is `f<number of the fault in the file>.<number of the step>`. `cause` is the fault of the
    file that this step comes from, if that has another name: a bounce becomes restarts.
    """

    id: str
    what: SingleFault
    cause: str | None = None

    @property
    def origin(self) -> str:
        """The fault of the file; the steps of one fault happen one after the other."""
        return self.id.partition(".")[0]

    @property
    def at_ms(self) -> int:
        """When it is due, from the start of the impact phase."""
        return self.what.at_ms

    @property
    def fault(self) -> str:
        """The name of the fault."""
        return self.what.fault

    @property
    def planned(self) -> Planned:
        """Its row of the plan."""
        return self.what.planned()

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        planned = self.planned
        return {
            "id": self.id,
            "at_ms": self.at_ms,
            "fault": self.fault,
            "cause": self.cause,
            "group": planned.group,
            "target": _plain(planned.target),
            "allow_empty": planned.allow_empty,
            "args": dict(planned.args),
            "undo": planned.undo,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """The exact schedule of a run, ordered by time."""

    experiment: str
    seed: int
    steps: tuple[Step, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "experiment": self.experiment,
            "seed": self.seed,
            "steps": [step.as_dict() for step in self.steps],
        }

    def describe(self) -> str:
        """Return a table for people: step, time, fault, target, and how it is undone."""
        rows = [("step", "at", "fault", "target", "undo")]
        for step in self.steps:
            planned = step.planned
            cause = f" ({step.cause})" if step.cause else ""
            rows.append(
                (step.id, seconds(step.at_ms), step.fault + cause, planned.hits, planned.undo)
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"{self.experiment}, seed {self.seed}: {len(self.steps)} steps"]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)


def make_plan(experiment: Experiment, seed: int) -> Plan:
    """Return the plan of an experiment. Raises TargetError if a fault names unknown members."""
    steps = [
        step
        for number, fault in enumerate(experiment.faults, 1)
        for step in _steps(number, fault, experiment, random.Random(f"{seed}:{number}"))
    ]
    return Plan(experiment.name, seed, tuple(sorted(steps, key=attrgetter("at_ms"))))


def _steps(
    number: int, fault: Fault, experiment: Experiment, chance: random.Random
) -> Iterator[Step]:
    if not isinstance(fault, GroupBounce):
        yield Step(f"f{number}.1", fault)
        return
    bounced: list[MemberTarget] = [fault.target]
    if not isinstance(fault.target, LeaderMemberOf):
        members = targets.known(fault.target, fault.group, experiment)
        bounced = [Names(names=(member.name,)) for member in members]
        chance.shuffle(bounced)
    for i, target in enumerate(bounced):
        yield Step(f"f{number}.{i + 1}", fault.restart(i, target), cause=fault.fault)


def _plain(target: MemberTarget | BrokerTarget | None) -> Any:
    if target is None or isinstance(target, str):
        return target
    return target.model_dump(mode="json", by_alias=True)
