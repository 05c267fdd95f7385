"""What every fault declares: its keys, its checks, its row of the plan, and its texts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from scenarios.durations import DurationMs, PositiveMs
from scenarios.faults.schedule import When
from scenarios.fields import Part, PositiveCount
from scenarios.targets import BrokerTarget, MemberTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a fault is, for the journal's readers, the report and the docs.

    `hits` is what the fault acts on. `one_shot` is set if there is nothing to heal. `broker` is
    what happens to the process of the broker, if the fault hits one; `moves_leaders` is set if
    brokers give leaderships up without it, so that writes may fail. `needs_volume` is set if the
    data of each broker has to be on a file system of its own, `needs_clock` if the clock of each
    has to be one that can be set. `network` is what is done to the network between brokers, which
    takes brokers in containers. The report counts the fault as `noun` and explains it with
    `meaning`. The other texts are for the fault catalogue:
    `targets` (what may be hit), `witness` (which evidence proves it), `expects` (what the oracle
    expects of the groups) and `undo` (how it is healed, also from the journal alone). The summary
    is the docstring of the declaring class.
    """

    hits: Literal["member", "group", "topic", "broker"]
    noun: str
    meaning: str
    targets: str
    witness: str
    expects: str
    undo: str
    one_shot: bool = False
    moves_leaders: bool = False
    needs_volume: bool = False
    network: Literal["part", "slow"] | None = None
    needs_clock: bool = False

    @property
    def in_containers(self) -> bool:
        """Whether brokers need a network or a clock of their own."""
        return self.network is not None or self.needs_clock

    broker: Literal["killed", "stopped", "paused"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A fault as the plan shows it.

    `hits` and `undo` are for people. `args` is what else the fault needs, as JSON holds it; a
    fault without a `target` names there what it hits.
    """

    hits: str
    undo: str
    args: Mapping[str, Any] = field(default_factory=dict)
    group: str | None = None
    target: MemberTarget | BrokerTarget | None = None
    allow_empty: bool = False


class FaultPart(Part):
    """What the schema of every fault has.

    A fault adds `about` (an `About`), `planned() -> Planned`, and
    `checks(experiment, path) -> Iterator[Problem]`, which yields what is wrong with the fault at
    `path`, given the rest of the experiment. They are not declared here, so that mypy reports a
    fault of the list which lacks one.
    """

    fault: str
    at_ms: DurationMs
    """Counted from the moment the steady state is met."""
    every_ms: PositiveMs | None = None
    """Fires again so often, `repeat` times in all, or else through the impact phase."""
    repeat: PositiveCount | None = None
    """How many times it fires."""
    when: When | None = None
    """Fires once a condition holds, but not before `at`."""

    @property
    def is_series(self) -> bool:
        """Whether one fault of the file becomes several of the plan, target after target."""
        return False


def seconds(duration_ms: int) -> str:
    """Return a duration as the plan shows it: `2.5 s`."""
    return f"{duration_ms / 1000:g} s"
