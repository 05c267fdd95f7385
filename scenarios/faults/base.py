"""What all faults have: keys of the file, checks, steps of the plan, and how one is carried out.

A fault of an experiment is what the file says. When it fires, each target that it hits gets a copy
of it (`aimed`), which breaks the target, asks a witness, heals the target, and asks again. It acts
on what `chaos` hands it, a `FaultContext`: reading an experiment needs neither brokers nor clients.
"""

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, get_args

from scenarios.durations import DurationMs, PositiveMs, format_ms
from scenarios.fields import Part, PositiveCount
from scenarios.problems import Path, Problem, unknown
from scenarios.setup import Setup
from scenarios.targets import (
    BrokerTarget,
    MemberTarget,
    When,
    in_words,
)
from scenarios.timing import FIRST_LOOK_S, SLOWEST_LOOK_S

if TYPE_CHECKING:
    from chaos.fault_context import FaultContext

Network = Literal["part", "slow"]
Needs = Literal[Network, "volume", "clock", "tap"]
BY_HAND = "h"
"""What the ids of faults begin with that somebody injected by hand; those of the plan: `f`."""
NETWORKS: tuple[Network, ...] = get_args(Network)
"""What may be done to the network between brokers."""


class Planned(NamedTuple):
    """A fault as the plan shows it.

    `hits` and `undo` are for people. `args` is what else the fault needs, as JSON holds it; a
    fault without a `target` names there what it hits.
    """

    hits: str
    undo: str
    args: Mapping[str, Any]
    group: str | None
    target: MemberTarget | BrokerTarget | None
    allow_empty: bool


@dataclass(slots=True)
class Hit:
    """One target of a fault that fires, as the journal has it.

    `target` is the member, group, topic or broker, `group` the group that is hit, if one is.
    `details` is what only shows when the fault fires, or once it is injected. `undo` is what undoes
    the fault if the run dies (`chaos.fault_runner`); None if there is nothing to undo.
    """

    target: str
    group: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    undo: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a claim holds, and the evidence, as part of a sentence."""

    holds: bool
    evidence: str


def await_finding(
    look: Callable[[], Finding | None], within_ms: int, missing: str, stop: threading.Event
) -> Finding:
    """Call `look` until it returns a finding, time is up or `stop` is set.

    `missing` says what is missing when time is up. It is looked for less and less often: hundreds
    of threads may look at once.
    """
    deadline = time.monotonic() + within_ms / 1000
    wait_s = FIRST_LOOK_S
    while True:
        if found := look():
            return found
        if time.monotonic() >= deadline:
            return Finding(False, f"{missing} within {grouped(within_ms)} ms")
        if stop.wait(wait_s):
            return Finding(False, "its coming back was not waited for, as the run was ended")
        wait_s = min(wait_s + FIRST_LOOK_S, SLOWEST_LOOK_S)


def grouped(number: int) -> str:
    """Return a number as people read it: `12 345`."""
    return f"{number:,}".replace(",", " ")


class Fault(Part):
    """What every fault has."""

    hits: ClassVar[Literal["member", "group", "topic", "broker"]]
    """What it acts on."""
    noun: ClassVar[str]
    """What reports count it as."""
    excuses: ClassVar[bool] = False
    """Whether its members are excused meanwhile: it keeps them from what they have to do."""
    one_shot: ClassVar[bool] = False
    """Whether there is nothing to heal."""
    is_series: ClassVar[bool] = False
    """Whether one fault of the file becomes several of the plan, target after target."""
    undo_name: ClassVar[str] = ""
    """What undoes it, by the name that the journal has."""
    undo_words: ClassVar[str] = "none"
    """What undoes it, in the plan; `{}` stands for how long it lasts."""
    process: ClassVar[Literal["killed", "stopped", "paused"] | None] = None
    """What becomes of the process of the broker that it hits."""
    moves_leaders: ClassVar[bool] = False
    """Whether brokers give leaderships up without their end, so that writes may fail."""
    needs: ClassVar[Needs | None] = None
    """What the cluster has to have: data of each broker on a file system of its own, clocks that
    can be set, a network between brokers that can be parted or slowed down, or the tap."""

    fault: str
    at_ms: DurationMs
    """Counted from the moment the steady state is met."""
    every_ms: PositiveMs | None = None
    """Fires again so often, `repeat` times in all, or else through the impact phase."""
    repeat: PositiveCount | None = None
    """How many times it fires."""
    when: When | None = None
    """Fires once a condition holds, but not before `at`."""

    _context: "FaultContext"
    _hit: Hit

    @classmethod
    def name(cls) -> str:
        """Return its name in the file."""
        return str(get_args(cls.model_fields["fault"].annotation)[0])

    @property
    def lasting_ms(self) -> int:
        """How long a target stays broken."""
        keys = ("down_for_ms", "lasts_ms", "for_ms")
        return next(filter(None, (getattr(self, key, None) for key in keys)), 0)

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Yield what is wrong with the fault at a path, given the rest of the experiment."""
        _ = experiment, path
        yield from ()

    def schedule_checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Yield what is wrong with when it fires."""
        if self.repeat is not None and self.every_ms is None:
            yield Problem((*path, "repeat"), "say how often, too: every")
        goes_on = self.every_ms is not None and not self.is_series
        if goes_on and not self.times_ms(experiment):
            yield Problem(
                (*path, "at"),
                "is after the impact phase, so that `every` never fires; write `repeat`, too, or a "
                "longer impact phase",
            )
        if self.when is not None:
            yield from self._condition_checks(self.when, experiment, (*path, "when"))

    def _condition_checks(self, when: When, experiment: Setup, path: Path) -> Iterator[Problem]:
        yield from unknown("group", when.group, experiment.group_names, (*path, "group"))
        if (when.state is None) == (when.members is None):
            yield Problem(path, "write the state of the group, or its number of members")
        if self.is_series:
            yield Problem(path, "is for a fault that fires once at a time; remove it")
        elif self.every_ms is not None and when.within_ms > self.every_ms:
            yield Problem(
                (*path, "within"),
                f"{format_ms(when.within_ms)} is more than the time to the next one; write "
                f"{format_ms(self.every_ms)} or less",
            )

    # The plan

    def times_ms(self, experiment: Setup) -> range:
        """Return when it is due, from the steady state on: once or every so often.

        `every` without `repeat` goes on through the impact phase.
        """
        if self.every_ms is None:
            return range(self.at_ms, self.at_ms + 1)
        if self.repeat is not None:
            return range(self.at_ms, self.at_ms + self.repeat * self.every_ms, self.every_ms)
        first_ms: int = min(other.at_ms for other in experiment.faults)
        return range(self.at_ms, first_ms + experiment.phases.impact_ms, self.every_ms)

    def steps(self, experiment: Setup, chance: random.Random) -> Iterator["Fault"]:
        """Yield the faults of the plan that it becomes; `chance` decides an order that is open."""
        _ = chance
        for at_ms in self.times_ms(experiment):
            yield self.model_copy(update={"at_ms": at_ms, "every_ms": None, "repeat": None})

    def size(self, experiment: Setup) -> int:
        """Return how many steps it makes; one that lists its targets counts for each of them."""
        target = getattr(self, "target", getattr(self, "instances", None))
        listed = getattr(target, "names", getattr(target, "brokers", target))
        return len(self.times_ms(experiment)) * (len(listed) if isinstance(listed, tuple) else 1)

    def planned(self) -> Planned:
        """Return its row of the plan."""
        return Planned(
            hits=self.hits_in_words(),
            undo=self.undo_words.format(f"{self.lasting_ms / 1000:g} s"),
            args=self._args(),
            group=getattr(self, "group", None),
            target=getattr(self, "target", None),
            allow_empty=getattr(self, "allow_empty", False),
        )

    def hits_in_words(self) -> str:
        """Return what it hits, as the plan shows it."""
        target: Any = getattr(self, "target", None)
        return in_words(target, getattr(self, "group", None))

    def _args(self) -> dict[str, Any]:
        """Return its own keys, but for those that have a place of their own in the plan."""
        apart = {*Fault.model_fields, *Planned._fields}
        own = {name: getattr(self, name) for name in type(self).model_fields if name not in apart}
        return {name: _plain(value) for name, value in own.items() if value is not None}

    # Carrying it out

    def aimed(self, context: "FaultContext") -> tuple[Self, ...]:
        """Resolve the targets now, and return a copy for each; for none if the fault allows that.

        Raises TargetError if there is no target, and ChaosError if its brokers are not known
        before time is up or the run ends.
        """
        return tuple(self.model_copy().aim(context, hit) for hit in self.hits_now(context))

    def aim(self, context: "FaultContext", hit: Hit) -> Self:
        """Give this copy its target."""
        self._context, self._hit = context, hit
        self.prepare()
        return self

    def hits_now(self, context: "FaultContext") -> Iterable[Hit]:
        """Return the targets that it hits now; raises as `aimed`."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Note what is needed of the target, before it is broken."""

    @property
    def hit(self) -> Hit:
        """The target of this copy."""
        return self._hit

    @property
    def held(self) -> tuple[str, ...]:
        """The broker or the members that it has until it is healed: no other fault hits them."""
        if self.one_shot:
            return ()
        return tuple(self.hit.details.get("members", (self.hit.target,)))

    def inject(self) -> None:
        """Break the target. Raises ChaosError; it may or may not be broken then."""
        raise NotImplementedError

    def verify(self) -> Finding:
        """Return whether the target is broken, while it should be; a one-shot may wait for that."""
        raise NotImplementedError

    def heal(self) -> str:
        """Heal the target, broken or not, and return how. Raises ChaosError if that fails."""
        raise NotImplementedError

    def verify_healed(self) -> Finding:
        """Wait until the target works again, until time is up, or until the run is to end."""
        raise NotImplementedError

    def _await(self, look: Callable[[], Finding | None], within_ms: int, missing: str) -> Finding:
        return self._context.await_finding(look, within_ms, missing)


def _plain(value: Any) -> Any:
    """Return a value of the file as JSON holds it."""
    if isinstance(value, Part):
        return value.model_dump(mode="json", by_alias=True)
    return list(value) if isinstance(value, tuple) else value
