"""The plan: which faults will be injected and when, decided before anything is touched.

The same experiment and seed give the same plan. The seed decides the order in which a bounce
restarts its members, and a rolling restart the brokers. Each fault has a random source of its own,
so a change of one leaves the others alone.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from chaos.errors import TargetError
from scenarios import (
    BrokerTarget,
    Experiment,
    Fault,
    GroupBounce,
    LeaderMemberOf,
    MemberTarget,
    Names,
    RollingRestart,
    SingleFault,
)
from scenarios.faults.declaration import Planned, seconds
from scenarios.faults.schedule import times_ms


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
            "when": self.what.when.model_dump(by_alias=True, exclude_none=True)
            if self.what.when
            else None,
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

    def describe(self) -> list[str]:
        """Return lines of a table: step, time, fault, target, and how it is undone."""
        rows = [("step", "at", "fault", "target", "undo")]
        for step in self.steps:
            planned = step.planned
            cause = f" ({step.cause})" if step.cause else ""
            at = seconds(step.at_ms)
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
    """Return the plan of an experiment. Raises TargetError for members or brokers not known."""
    steps = [
        step
        for number, fault in enumerate(experiment.faults, 1)
        for step in _steps(number, fault, experiment, random.Random(f"{seed}:{number}"))
    ]
    return Plan(experiment.name, seed, tuple(sorted(steps, key=attrgetter("at_ms"))))


def _steps(
    number: int, fault: Fault, experiment: Experiment, chance: random.Random
) -> Iterator[Step]:
    if isinstance(fault, GroupBounce | RollingRestart):
        series = _series(fault, experiment, chance)
        for i, restart in enumerate(series, 1):
            yield Step(f"f{number}.{i}", restart, cause=fault.fault)
        return
    for i, at_ms in enumerate(times_ms(fault, experiment), 1):
        once = {"at_ms": at_ms, "every_ms": None, "repeat": None}
        yield Step(f"f{number}.{i}", fault.model_copy(update=once))


def _series(
    fault: GroupBounce | RollingRestart, experiment: Experiment, chance: random.Random
) -> Iterator[SingleFault]:
    """Yield the restarts of a series, round after round, each in an order of its own."""
    numbers = itertools.count()
    for _ in range(fault.repeat or 1):
        if isinstance(fault, RollingRestart):
            brokers = _broker_ids(fault, experiment)
            chance.shuffle(brokers)
            yield from (fault.restart(next(numbers), broker) for broker in brokers)
            continue
        bounced: list[MemberTarget] = [fault.target]
        if not isinstance(fault.target, LeaderMemberOf):
            names = [member.name for member in fault.known_targets(experiment)]
            chance.shuffle(names)
            size = fault.at_once or 1
            starts = range(0, len(names), size)
            bounced = [Names(names=tuple(names[i : i + size])) for i in starts]
        yield from (fault.restart(next(numbers), target) for target in bounced)


def _broker_ids(fault: RollingRestart, experiment: Experiment) -> list[int]:
    ids = experiment.cluster.ids
    if ids is None:
        raise TargetError(
            f"{fault.fault} restarts every broker, and the ids of an external cluster are known"
            " only when it is used; for a plan beforehand write cluster.broker_ids"
        )
    return list(ids)


def _plain(target: MemberTarget | BrokerTarget | None) -> Any:
    if target is None or isinstance(target, str):
        return target
    return target.model_dump(mode="json", by_alias=True)
