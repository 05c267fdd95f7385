"""What the faults on the wire have in common: keys, checks, texts. The tap carries them out."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import Field

from kafka_protocol.apis import GroupApi
from scenarios.durations import PositiveMs
from scenarios.faults.brokers import broker_checks
from scenarios.faults.declaration import Planned, seconds
from scenarios.faults.members import TARGETS as MEMBERS
from scenarios.faults.members import MemberFault
from scenarios.fields import PositiveCount
from scenarios.problems import Path, Problem
from scenarios.targets import BrokerTarget, in_words

if TYPE_CHECKING:
    from scenarios.experiment import Experiment

Way = Literal["both", "to-broker", "to-client"]
Api = Literal[
    GroupApi, "OFFSET_FETCH", "FIND_COORDINATOR", "METADATA", "FETCH", "LIST_OFFSETS"
]  # fmt: skip
Apis = Annotated[tuple[Api, ...], Field(min_length=1, max_length=len(get_args(Api)))]
Share = Annotated[float, Field(strict=True, gt=0.0, le=1.0, allow_inf_nan=False)]

TARGETS = (
    MEMBERS + " A member is known by its `client.id`, and by the instance id that its JoinGroup "
    "names on the connection. `brokers` takes the targets of broker faults; without it, all."
)
PROBED = (
    "The runner sends a request with the member's `client.id` through the tap, beside one with a "
    "name that no rule selects. "
)
OWN = "The rule has hit requests of the member's own, too."
HEALED = (
    "Removes the rule from the tap; what waited passes then, in its order. From the journal alone "
    "nothing is left to undo once the tap's process is gone, and the rules with it: `groupquake "
    "heal` checks that."
)
LOST = (
    "The group goes on without the member: its coordinator removes it when its session ends, "
    "static or dynamic, which costs a rebalance, and a JoinGroup afterwards costs another. Within "
    "its session nothing happens to the group, unless a rebalance waits for it."
)


class NetFault(MemberFault):
    """What the faults on the wire have in common."""

    for_ms: PositiveMs
    """How long the rule is in force."""

    def _planned_rule(self, **args: Any) -> Planned:
        given = {name: value for name, value in args.items() if value is not None}
        return self._planned(f"remove the rule after {seconds(self.for_ms)}",
                             for_ms=self.for_ms, **given)  # fmt: skip


class BetweenFault(NetFault):
    """A fault between members and brokers that may be selected."""

    brokers: BrokerTarget | None = None
    """The brokers on the other side, resolved when the fault fires; without it, all."""

    def checks(self, experiment: "Experiment", path: Path) -> Iterator[Problem]:
        """Check that the targets exist."""
        yield from super().checks(experiment, path)
        if self.brokers is not None:
            yield from broker_checks(self.brokers, experiment, (*path, "brokers"))

    def _planned_rule(self, **args: Any) -> Planned:
        brokers = None if self.brokers is None else in_words(self.brokers, None)
        return super()._planned_rule(brokers=brokers, **args)


class ChosenFault(BetweenFault):
    """A fault that hits requests of some APIs, all of them or a share."""

    apis: Apis
    """The requests that are hit, such as `[JOIN_GROUP]`."""
    count: PositiveCount | None = None
    """How many requests of each member are hit at most."""
    probability: Share = 1.0
    """The share of requests that is hit, decided by the run's seed."""

    def _planned_rule(self, **args: Any) -> Planned:
        return super()._planned_rule(
            apis=list(self.apis),
            count=self.count,
            probability=None if self.probability == 1.0 else self.probability,
            **args,
        )
