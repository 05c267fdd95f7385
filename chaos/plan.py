"""The plan: what will be broken and when, decided before anything is touched.

The same experiment and seed give the same plan. The seed decides the order in which a bounce takes
its members; each fault draws from a source of its own, so changing one leaves the others alone.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Self

from chaos import targets
from chaos.errors import ChaosError
from scenarios import Experiment, Fault, GroupBounce, LeaderMemberOf, Names, Target


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to break at one time.

    `id` is `f<number of the fault in the file>.<number of the step>`. `cause` is the fault of the
    file that this step came from, if it goes by another name. `at_ms` counts from the start of the
    impact phase. `group` is whom a target such as `all` chooses from.
    """

    id: str
    at_ms: int
    fault: str
    cause: str | None
    group: str | None
    target: Target
    allow_empty: bool
    args: Mapping[str, int]
    undo: str

    @property
    def origin(self) -> str:
        """The fault of the file; what comes from one fault happens one step after the other."""
        return self.id.partition(".")[0]

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold, for `from_dict`."""
        target = self.target
        return {
            "id": self.id,
            "at_ms": self.at_ms,
            "fault": self.fault,
            "cause": self.cause,
            "group": self.group,
            "target": target if isinstance(target, str) else target.model_dump(by_alias=True),
            "allow_empty": self.allow_empty,
            "args": dict(self.args),
            "undo": self.undo,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the step that `as_dict` wrote."""
        return cls(**{**data, "target": _target(data["target"])})


@dataclass(frozen=True, slots=True)
class Plan:
    """The exact schedule of a run, ordered by time."""

    experiment: str
    seed: int
    steps: tuple[Step, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold, for `from_dict`."""
        return {
            "experiment": self.experiment,
            "seed": self.seed,
            "steps": [step.as_dict() for step in self.steps],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the plan that `as_dict` wrote. Raises ChaosError for anything else."""
        try:
            steps = tuple(Step.from_dict(step) for step in data["steps"])
            return cls(data["experiment"], data["seed"], steps)
        except (KeyError, TypeError, ValueError) as error:
            raise ChaosError(
                f"not a plan ({error!r}); take plan.json of a run, or plan again"
            ) from error

    def describe(self) -> str:
        """Return a table for people: step, when, what, whom, and how it is undone."""
        rows = [("step", "at", "fault", "target", "undo")]
        for step in self.steps:
            cause = f" ({step.cause})" if step.cause else ""
            rows.append(
                (
                    step.id,
                    _seconds(step.at_ms),
                    step.fault + cause,
                    targets.in_words(step.target, step.group),
                    step.undo,
                )
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
    bounce = isinstance(fault, GroupBounce)
    chosen: list[Target] = [fault.target]
    if bounce and not isinstance(fault.target, LeaderMemberOf):
        members = targets.known(fault.target, fault.group, experiment)
        chosen = [Names(names=(member.name,)) for member in members]
        chance.shuffle(chosen)
    for i, target in enumerate(chosen):
        yield Step(
            id=f"f{number}.{i + 1}",
            at_ms=fault.at_ms + (i * fault.every_ms if isinstance(fault, GroupBounce) else 0),
            fault="member.restart",
            cause="group.bounce" if bounce else None,
            group=fault.group,
            target=target,
            allow_empty=fault.allow_empty,
            args={"down_for_ms": fault.down_for_ms},
            undo=f"start again after {_seconds(fault.down_for_ms)}",
        )


def _target(value: Any) -> Target:
    match value:
        case "all" | "static" | "dynamic":
            return value  # type: ignore[no-any-return]
        case {"names": _}:
            return Names.model_validate(value)
        case _:
            return LeaderMemberOf.model_validate(value)


def _seconds(duration_ms: int) -> str:
    return f"{duration_ms / 1000:g} s"
