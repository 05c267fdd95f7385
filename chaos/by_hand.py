"""Faults by hand: what somebody who watches a run asks for becomes steps as those of its plan."""

import random
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from chaos.plan import Step
from scenarios import Experiment, ScenarioError
from scenarios.faults import BY_HAND, Fault, Needs
from scenarios.problems import found_in

_NEEDED: Mapping[Needs, str] = {
    "tap": "the tap before the brokers",
    "volume": "data of each broker on a file system of its own",
    "clock": "a clock of each broker's own",
    "part": "a network between brokers that can be parted",
    "slow": "a network between brokers that can be slowed down",
}


def lacked(fault: type[Fault] | Fault, has: Collection[Needs], tap: object) -> str:
    """Say what a cluster lacks for a fault, which was started with what it `has`; often nothing."""
    if fault.needs is None or fault.needs in has or (fault.needs == "tap" and tap):
        return ""
    how = "start it with --tap" if fault.needs == "tap" else "choose an experiment that has it"
    return f"{fault.name()} needs {_NEEDED[fault.needs]}, which this run does not have; {how}"


def steps_by_hand(
    experiment: Experiment, asked: Mapping[str, Any], number: int, at_ms: int, seed: int
) -> tuple[Experiment, tuple[Step, ...]]:
    """Return the experiment with one fault more, and the steps of that, from a time on.

    `asked` is the fault as a file spells it, but for `at`. Raises ScenarioError, a line for each
    problem.
    """
    data = experiment.model_dump(mode="json", by_alias=True, exclude_none=True)
    data["faults"].append({**asked, "at": f"{at_ms}ms"})
    try:
        wider = Experiment.model_validate(data)
    except ValidationError as error:
        found = found_in(error, Experiment)
        raise ScenarioError(*(str(replace(one, path=one.path[2:])) for one in found)) from error
    fault, name = wider.faults[-1], f"{BY_HAND}{number}"
    steps = list(fault.steps(wider, random.Random(f"{seed}:{name}")))
    ids = [f"{name}.{i}" for i in range(1, len(steps) + 1)] if len(steps) > 1 else [name]
    causes = (None if one.fault == fault.fault else fault.fault for one in steps)
    return wider, tuple(map(Step, ids, steps, causes))
