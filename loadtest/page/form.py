"""The start form of the page, and the run of an experiment that its values describe."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import scenarios
from loadtest.configs import Kind
from loadtest.errors import LoadtestError
from loadtest.options import AS_IT_SAYS, count, read
from scenarios import Experiment
from scenarios.fields import BIG_SEED
from scenarios.model import Clients, Expectation, Ownership

_SET = "--set="
_SETTINGS_IN_ERROR = re.compile(r"^--set .*: (?=[a-z_]+(?:\.\w+)*: )")
_LEFT_OUT = (
    "groups differ in their number of members from the file, so their expectations were left"
    " out, except those of 0 rebalances"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """An experiment with the form's changes, and the arguments of `groupquake run` for the same."""

    experiment: Experiment
    arguments: tuple[str, ...]
    remark: str
    """A remark about the changes for the progress lines, or nothing."""


def choose(values: Mapping[str, str], run_options: Sequence[str]) -> Choice:
    """Return the run that the form's values describe; empty values change nothing.

    `run_options` are further options of the run, such as `--set=phases.impact=30s`. Raises
    LoadtestError for an unknown experiment, or for changes that do not fit it.
    """
    name, coordinator = values["experiment"], values["coordinator"]
    release = {
        "version": values["kafka"],
        "coordinator": "" if coordinator == AS_IT_SAYS else coordinator,
    }
    given = [option.removeprefix(_SET) for option in run_options if option.startswith(_SET)]
    try:
        plain = scenarios.find(name).override(given)
        changes = list(_changes(plain, values))
        of_cluster = [f"cluster.{key}={json.dumps(text)}" for key, text in release.items() if text]
        experiment = plain.override([*changes, *of_cluster])
    except scenarios.ScenarioError as error:
        raise LoadtestError(_without_settings(str(error))) from error
    options = {"kafka": release["version"], "coordinator": release["coordinator"]}
    options["seed"] = values["seed"] and str(read("seed", _seed, values["seed"]))
    arguments = [
        name,
        *run_options,
        *(f"--{option}={value}" for option, value in options.items() if value),
        *(_SET + change for change in changes),
    ]
    left_out = len(experiment.expect) < len(plain.expect)
    return Choice(experiment, tuple(arguments), _LEFT_OUT if left_out else "")


def _changes(experiment: Experiment, values: Mapping[str, str]) -> Iterator[str]:
    groups = experiment.workload.groups
    if timeout := values["session_timeout"]:
        yield from (f"workload.groups.{i}.session_timeout={timeout}" for i in range(len(groups)))
    resized = set()
    for kind in get_args(Kind):
        if not (text := values[f"{kind}_members"]):
            continue
        number = read(f"{kind} members", count, text)
        entries = [
            (i, j, entry.count)
            for i, group in enumerate(groups)
            for j, entry in enumerate(group.members)
            if entry.kind == kind
        ]
        if not entries:
            raise LoadtestError(
                f"{kind} members: {experiment.name} has none; leave the field empty"
            )
        for i, j, before in entries:
            if number != before:
                yield f"workload.groups.{i}.members.{j}.count={number}"
                resized.add(groups[i].name)
    for i, probe in enumerate(experiment.steady_state.probes or ()):
        if probe.probe == "group.members" and probe.group in resized:
            yield f"steady_state.probes.{i}.tolerance=all"
    yield from _expectations(experiment, resized)


def _seed(text: str) -> int:
    if text.isdecimal() and int(text) <= BIG_SEED:
        return int(text)
    raise ValueError(f"{text!r} is not a whole number from 0 to {BIG_SEED}")


def _without_settings(error_line: str) -> str:
    """Remove the --set options from an error: users of the form did not write them."""
    lines = [_SETTINGS_IN_ERROR.sub("", line) for line in error_line.splitlines()]
    return "; ".join(dict.fromkeys(lines))


def _expectations(experiment: Experiment, resized: set[str]) -> Iterator[str]:
    """Leave out expectations that depend on the number of members; those of 0 rebalances stay."""
    kept = [
        expectation
        for expectation in experiment.expect
        if isinstance(expectation, Clients | Ownership)
        or expectation.group not in resized
        or (isinstance(expectation, Expectation) and expectation.rebalances.max == 0)
    ]
    if len(kept) < len(experiment.expect):
        texts = [item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in kept]
        yield f"expect={json.dumps(texts)}"
