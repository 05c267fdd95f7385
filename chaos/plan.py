"""The plan: which faults will be injected and when, decided before anything is touched.

The same experiment and seed give the same plan. The seed decides the order in which a bounce
restarts its members, and a rolling restart the brokers. Each fault has a random source of its own,
so a change of one leaves the others alone.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from scenarios import Experiment
from scenarios.faults import BY_HAND, AnyFault
from scenarios.faults.base import Planned
from scenarios.fields import Part, Seed
from scenarios.loading import read
from scenarios.problems import Problem


@dataclass(frozen=True, slots=True)
class Step:
    """A fault at one time.

    `id` is `f<number of the fault in the file>.<number of the step>`; for faults by hand it begins
    with `h`, and a single step has no number. `cause` is the fault that this step comes from, if
    that has another name: a bounce becomes restarts.
    """

    id: str
    what: AnyFault
    cause: str | None = None

    @property
    def origin(self) -> str:
        """The fault of the file; the steps of one fault happen one after the other."""
        return self.id.partition(".")[0]

    @property
    def by_hand(self) -> bool:
        """Whether somebody injected it who watched the run."""
        return self.id.startswith(BY_HAND)

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
            "when": self.what.when.model_dump(by_alias=True, exclude_none=True)
            if self.what.when
            else None,
            "fault": self.fault,
            "cause": self.cause,
            "group": planned.group,
            "target": planned.target.model_dump(mode="json", by_alias=True)
            if isinstance(planned.target, Part)
            else planned.target,
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

    def describe(self) -> list[str]:
        """Return lines of a table: step, time, fault, target, and how it is undone."""
        rows = [("step", "at", "fault", "target", "undo")]
        for step in self.steps:
            planned = step.planned
            cause = f" ({step.cause})" if step.cause else ""
            at = f"{step.at_ms / 1000:g} s"
            if (when := step.what.when) is not None:
                at = f"{at}, when {when}"
            rows.append((step.id, at, step.fault + cause, planned.hits, planned.undo))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"{self.experiment}, seed {self.seed}: {len(self.steps)} steps"]
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  ".join(cells).rstrip())
        return lines


def make_plan(experiment: Experiment, seed: int) -> Plan:
    """Return the plan of an experiment. Raises ScenarioError for brokers that are not known."""
    steps = [
        Step(f"f{number}.{i}", step, cause=None if step.fault == fault.fault else fault.fault)
        for number, fault in enumerate(experiment.faults, 1)
        for i, step in enumerate(fault.steps(experiment, random.Random(f"{seed}:{number}")), 1)
    ]
    return Plan(experiment.name, seed, tuple(sorted(steps, key=attrgetter("at_ms"))))


def _unpacked(row: Any) -> Any:
    """Return a step as it is made of what `Step.as_dict` has; the fault as a file spells it."""
    if not isinstance(row, dict):
        return row
    args = row.get("args")
    keys = {**row, **(args if isinstance(args, dict) else {})}
    step = {key: keys.pop(key) for key in ("id", "cause") if key in row}
    if isinstance(row.get("target"), dict):
        keys.pop("group", None)  # older plans name the group of a bounce, too
    return step | {
        "what": {
            name.removesuffix("_ms"): f"{value}ms" if name.endswith("_ms") else value
            for name, value in keys.items()
            if name not in ("args", "undo") and value is not None
            if (name, value) != ("allow_empty", False)  # of faults without that key, too
        }
    }


class _Stored(BaseModel):
    """A file that holds what `Plan.as_dict` has."""

    model_config = ConfigDict(extra="forbid")

    experiment: str
    seed: Seed
    steps: tuple[Annotated[Step, BeforeValidator(_unpacked)], ...]


def read_plan(path: Path, experiment: Experiment) -> Plan:
    """Return a stored plan: a run's `plan.json`, or what `groupquake plan NAME --json` printed.

    Raises ScenarioError, one line per problem, also for a plan of something else.
    """
    hint = "store what `groupquake plan NAME --json` prints"
    stored = read(path, _Stored, hint, lambda found: _misfits(found, experiment))
    steps = tuple(sorted(stored.steps, key=attrgetter("at_ms")))
    return Plan(experiment.name, stored.seed, steps)


def _misfits(stored: _Stored, experiment: Experiment) -> Iterator[Problem]:
    """Yield what shows that a plan is not one of an experiment."""
    if stored.experiment != experiment.name:
        yield Problem(("experiment",), f"is not {experiment.name}; give the experiment's own plan")
        return
    kinds = {f"f{number}": fault.fault for number, fault in enumerate(experiment.faults, 1)}
    planned = experiment.model_copy(update={"faults": tuple(step.what for step in stored.steps)})
    for i, step in enumerate(stored.steps):
        kind = step.cause or step.fault
        is_known = step.by_hand or kinds.get(step.origin) == kind
        if not is_known or step.id in [one.id for one in stored.steps[:i]]:
            what = f"{step.id} is no {kind} of the experiment, or stands twice; give its own plan"
            yield Problem(("steps", i, "id"), what)
        yield from step.what.checks(planned, ("steps", i))
