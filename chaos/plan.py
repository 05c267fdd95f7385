"""The plan: what will be broken and when, decided before anything is touched.

The same experiment and seed give the same plan. The seed decides the order in which a bounce takes
its members; each fault draws from a source of its own, so changing one leaves the others alone.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from chaos import targets
from scenarios import (
    AddPartitions,
    BrokerFault,
    BrokerPause,
    BrokerRestart,
    BrokerTarget,
    DuplicateInstance,
    Experiment,
    Fault,
    GroupBounce,
    LeaderMemberOf,
    MemberFault,
    MemberRestart,
    MemberTarget,
    Names,
    RemoveMembers,
    Static,
)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to break at one time.

    `id` is `f<number of the fault in the file>.<number of the step>`. `cause` is the fault of the
    file that this step came from, if it goes by another name. `at_ms` counts from the start of the
    impact phase. `group` is whom a target such as `all` chooses from. `args` are what else the
    fault needs, as JSON can hold it; where there is no `target`, they say whom it hits too.
    """

    id: str
    at_ms: int
    fault: str
    cause: str | None
    group: str | None
    target: MemberTarget | BrokerTarget | None
    allow_empty: bool
    args: Mapping[str, Any]
    undo: str

    @property
    def origin(self) -> str:
        """The fault of the file; what comes from one fault happens one step after the other."""
        return self.id.partition(".")[0]

    @property
    def whom(self) -> str:
        """Whom it hits, as people read it."""
        if self.target is not None:
            return targets.in_words(self.target, self.group)
        if (topic := self.args.get("topic")) is not None:
            return f"{topic}, to {self.args['to']}"
        instances = self.args["instances"]
        listed = "all static members" if instances == "all" else ", ".join(instances)
        return f"{listed} of {self.group}"

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "id": self.id,
            "at_ms": self.at_ms,
            "fault": self.fault,
            "cause": self.cause,
            "group": self.group,
            "target": _plain(self.target),
            "allow_empty": self.allow_empty,
            "args": dict(self.args),
            "undo": self.undo,
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
        """Return a table for people: step, when, what, whom, and how it is undone."""
        rows = [("step", "at", "fault", "target", "undo")]
        for step in self.steps:
            cause = f" ({step.cause})" if step.cause else ""
            rows.append((step.id, _seconds(step.at_ms), step.fault + cause, step.whom, step.undo))
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
    step = Step(
        id=f"f{number}.1",
        at_ms=fault.at_ms,
        fault=fault.fault,
        cause=None,
        group=None if isinstance(fault, BrokerFault | AddPartitions) else fault.group,
        target=None if isinstance(fault, RemoveMembers | AddPartitions) else fault.target,
        allow_empty=isinstance(fault, MemberFault) and fault.allow_empty,
        args=_args(fault),
        undo=_undo(fault),
    )
    if not isinstance(fault, GroupBounce):
        yield step
        return
    chosen: list[MemberTarget] = [fault.target]
    if not isinstance(fault.target, LeaderMemberOf):
        members = targets.known(fault.target, fault.group, experiment)
        chosen = [Names(names=(member.name,)) for member in members]
        chance.shuffle(chosen)
    for i, target in enumerate(chosen):
        yield replace(
            step,
            id=f"f{number}.{i + 1}",
            at_ms=fault.at_ms + i * fault.every_ms,
            fault="member.restart",
            cause="group.bounce",
            target=target,
        )


def _args(fault: Fault) -> dict[str, Any]:
    match fault:
        case RemoveMembers(instances=instances):
            return {"instances": instances if isinstance(instances, str) else list(instances)}
        case AddPartitions(topic=topic, to=to):
            return {"topic": topic, "to": to}
        case DuplicateInstance(lasts_ms=lasts_ms):
            return {"lasts_ms": lasts_ms}
        case BrokerRestart():
            return {}
        case MemberRestart(becomes=becomes) | GroupBounce(becomes=becomes) if becomes:
            who = becomes if isinstance(becomes, str) else becomes.model_dump()
            return {"down_for_ms": fault.down_for_ms, "becomes": who}
        case _:
            return {"down_for_ms": fault.down_for_ms}


def _undo(fault: Fault) -> str:
    match fault:
        case RemoveMembers() | AddPartitions():
            return "none"
        case DuplicateInstance(lasts_ms=lasts_ms):
            return f"end the duplicate after {_seconds(lasts_ms)}, start the member afresh"
        case BrokerRestart():
            return "start again at once"
        case BrokerPause(down_for_ms=down_for_ms):
            return f"resume after {_seconds(down_for_ms)}"
        case MemberRestart(becomes=becomes) | GroupBounce(becomes=becomes) if becomes:
            who = becomes.instance_id if isinstance(becomes, Static) else "a dynamic member"
            return f"start again after {_seconds(fault.down_for_ms)} as {who}"
        case _:
            return f"start again after {_seconds(fault.down_for_ms)}"


def _plain(target: MemberTarget | BrokerTarget | None) -> Any:
    if target is None or isinstance(target, str):
        return target
    return target.model_dump(mode="json", by_alias=True)


def _seconds(duration_ms: int) -> str:
    return f"{duration_ms / 1000:g} s"
