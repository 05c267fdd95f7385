"""The experiments of a trial, and the run of one client that has them."""

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from chaos.plan import make_plan
from groupquake.clients.adapters import Adapter
from scenarios import Experiment, ScenarioError, load
from scenarios.clients import ADAPTERS, ASSIGNORS, WITHOUT_STATIC, Command
from scenarios.faults import Fault
from scenarios.fields import Name, Part
from scenarios.problems import found_in, nearest
from scenarios.targets import CoordinatorOf, Names

FILE = Path(__file__).parent / "trial.yaml"
Json = dict[str, Any]

EXPERIMENTS: Mapping[str, tuple[str, ...]] = {
    "rolling-bounce-static": ("bounce-static",),
    "rolling-bounce-dynamic": ("bounce-dynamic",),
    "kill": ("kill-static", "kill-dynamic"),
    "duplicate-id": ("duplicate-id",),
    "lost-join-answer": ("lost-answer-static", "lost-answer-dynamic"),
    "coordinator-failover": ("failover",),
    "pause": ("pause",),
    "batch-removal": ("batch-removal",),
}
"""The groups of each experiment."""
FAILOVER = "coordinator-failover"
"""The experiment that hits a broker, and with it members of all the others."""
OWN = ("librdkafka-process", *ADAPTERS)
"""The clients that come with groupquake."""
COMPARISON = "java"
"""Kafka's own client, of the brokers' release: others are shown beside it."""


class Fired(NamedTuple):
    """A fault of a plan: the experiment that it is part of, and its name."""

    experiment: str | None
    fault: str


class _Program(Part):
    """A program of the user's, as an experiment has to have it."""

    name: Name
    client: Command


@cache
def _every() -> Experiment:
    """Return the run that has all experiments, with members of any client."""
    return load(FILE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A client on trial: one that comes with groupquake, or a `command` of the user's."""

    name: str
    command: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> "Candidate":
        """Read a client as the command line names it: NAME, COMMAND or NAME=COMMAND.

        Raises ScenarioError if it is neither a known name nor a command line, or cannot be one.
        """
        if text in OWN:
            return cls(text)
        label, named, rest = text.partition("=")
        named = named if label and not set(label) & set(" /") else ""
        try:
            words = shlex.split(rest if named else text)
        except ValueError as error:
            raise ScenarioError(f"--client {text}: {error}; correct the quotes") from error
        if not words or (not named and len(words) == 1 and "/" not in text):
            raise ScenarioError(
                f"--client {text}: not known; {nearest(text, OWN)} A command line of yours:"
                " NAME=COMMAND"
            )
        name = label if named else Path(words[0]).name
        try:
            checked = _Program.model_validate({"name": name, "client": {"command": words}})
        except ValidationError as error:
            problems = "; ".join(map(str, found_in(error, _Program)))
            raise ScenarioError(f"--client {text}: {problems}") from error
        return cls(checked.name, checked.client.command)

    @property
    def has_static_members(self) -> bool:
        """Whether it can be a static member, as far as is known; a program of a user's may be."""
        return bool(self.command) or self.name not in WITHOUT_STATIC

    @property
    def about(self) -> str:
        """What it is, in words."""
        if self.command:
            return shlex.join(self.command)
        if self.name in ADAPTERS:
            adapter = Adapter.named(self.name)
            return f"{adapter.library}, {adapter.language}"
        return "librdkafka, in the process of a member, Python"

    def experiment(self, wanted: Collection[str], version: str) -> Experiment:
        """Return the run of the wanted experiments. Raises ScenarioError if none is possible."""
        content = _every().model_dump(mode="json", by_alias=True, exclude_none=True)
        left = [group for name in wanted for group in self.groups_of(name)]
        if not left:
            raise ScenarioError(f"client {self.name} has no static members (KIP-345), and no others"
                                " take part in these experiments; name others")  # fmt: skip
        of_groups = [one for one in content["workload"]["groups"] if one["name"] in left]
        content["workload"]["groups"] = [self.takes_over(group) for group in of_groups]
        probes = content["steady_state"]["probes"]
        content["steady_state"]["probes"] = [one for one in probes if one["group"] in left]
        every = zip(content["faults"], _every().faults, strict=True)
        content["faults"] = [one for one, fault in every if group_of(fault, _every()) in left]
        content["cluster"]["version"] = version
        content["name"] = f"trial-{self.name}"
        return Experiment.model_validate(content)

    def takes_over(self, group: Json) -> Json:
        """Return a group with this client as its members, and an assignor that it has."""
        wanted = group["assignor"]
        able = (wanted,) if self.command else ASSIGNORS.get(self.name, (wanted,))
        client: Any = {"command": list(self.command)} if self.command else self.name
        members = [
            {**one, "client": client}
            for one in group["members"]
            if self.has_static_members or one["kind"] != "static"
        ]
        return {**group, "assignor": wanted if wanted in able else able[0], "members": members}

    def groups_of(self, name: str) -> tuple[str, ...]:
        """Return the groups of an experiment in which it can be; none if it cannot take part."""
        can = {
            group.name
            for group in _every().workload.groups
            if self.has_static_members or any(one.kind != "static" for one in group.members)
        }
        return tuple(group for group in EXPERIMENTS[name] if group in can)


def planned(experiment: Experiment, seed: int) -> list[Fired]:
    """Return the faults of a run's plan, each once for each time."""
    steps = make_plan(experiment, seed).steps
    return [Fired(experiment_of(group_of(step.what, experiment)), step.fault) for step in steps]


def group_of(fault: Fault, experiment: Experiment) -> str | None:
    """Return the group that a fault is for: of members, or of the coordinator that it hits."""
    match getattr(fault, "target", None):
        case CoordinatorOf(group=coordinated):
            return coordinated
        case Names(names=[name, *_]):
            return experiment.member_called[name].group
    group: str | None = getattr(fault, "group", None)
    return group


def experiment_of(group: str | None) -> str | None:
    """Return the experiment of a group; None for a group of no experiment."""
    return next((name for name, groups in EXPERIMENTS.items() if group in groups), None)
