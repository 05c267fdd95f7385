"""Faults of the network: between brokers, and on the wire between members and brokers.

The tap carries out those on the wire, `net.…`, as rules; `chaos.wire_rules` are their witness.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, get_args

from pydantic import AfterValidator, Field

from kafka_protocol.apis import GroupApi
from scenarios import timing
from scenarios.durations import DurationMs, PositiveMs
from scenarios.faults.base import Hit
from scenarios.faults.finding import Finding, grouped
from scenarios.faults.targeted import BrokerFault, MemberFault, broker_checks
from scenarios.fields import PositiveCount
from scenarios.problems import Path, Problem, shown
from scenarios.setup import Setup
from scenarios.targets import BrokerTarget

if TYPE_CHECKING:
    from chaos.fault_context import FaultContext
    from chaos.wire_rules import WireRule

_RATE = "[1-9][0-9]{0,5}(kbit|mbit)"


class BetweenBrokers(BrokerFault):
    """What the faults of the network between brokers have in common."""

    for_ms: PositiveMs
    """How long it lasts."""

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check the targets, and that there is another broker."""
        yield from super().checks(experiment, path)
        if experiment.cluster.brokers == 1:
            yield Problem((*path, "fault"), "is between brokers, and there is one; have more")


class BrokerPartition(BetweenBrokers):
    """Parts each broker from all others, data and metadata quorum; clients still reach it."""

    noun = "broker partition"
    needs = "part"
    undo_name = "join-broker"
    undo_words = "let packets pass after {}"

    fault: Literal["broker.partition"]

    _others: tuple[int, ...] = ()

    def inject(self) -> None:
        """Let no packet pass, when this returns; remember which brokers it reached before."""
        network = self._context.cluster.network()
        self._others = network.reaches(self._broker)
        network.part(self._broker)

    def verify(self) -> Finding:
        """Return whether it reaches none of the brokers that it reached, and clients reach it.

        Connections from within its container are the witness.
        """
        reached = self._context.cluster.network().reaches(self._broker)
        answers = self._probe.answers()
        held = bool(self._others) and not reached and answers
        client = f"{self._probe.address} {'answers' if answers else 'does not answer'} clients"
        return Finding(held, f"{self._hit.target} {_reaches(reached, self._others)}, {client}")

    def heal(self) -> str:
        """Let packets pass."""
        self._context.cluster.network().join(self._broker)
        return "packets pass"

    def verify_healed(self) -> Finding:
        """Wait until it reaches the others, and is in sync again."""
        missing = f"{self._hit.target} does not reach all others"
        reached = self._await(self._look_for_others, timing.BROKER_BACK_MS, missing)
        back = super().verify_healed()
        return Finding(reached.holds and back.holds, f"{reached.evidence}, {back.evidence}")

    def _look_for_others(self) -> Finding | None:
        reached = self._context.cluster.network().reaches(self._broker)
        if not set(self._others) <= set(reached):
            return None
        return Finding(True, f"it {_reaches(reached, self._others)}")


def _reaches(reached: tuple[int, ...], others: tuple[int, ...]) -> str:
    """Say which brokers one reaches; without any, of which."""
    if reached:
        return f"reaches broker {', '.join(map(str, reached))}"
    return f"does not reach broker {' or '.join(map(str, others))}" if others else "reaches none"


def _rate(text: str) -> str:
    if re.fullmatch(_RATE, text):
        return text
    raise ValueError(f"{shown(text)} is no rate; write kbit or mbit a second, such as 256kbit")


class BrokerSlowNetwork(BetweenBrokers):
    """Lets what each broker sends to all others, together, pass at a low rate."""

    noun = "slow network"
    needs = "slow"
    undo_name = "unslow-broker"
    undo_words = "remove the limit after {}"

    fault: Literal["broker.slow-network"]
    rate: Annotated[str, AfterValidator(_rate), Field(json_schema_extra={"pattern": f"^{_RATE}$"})]
    """How much passes a second, such as `256kbit`."""

    def inject(self) -> None:
        """Limit the rate, from now on."""
        self._context.cluster.network().slow(self._broker, self.rate)

    def verify(self) -> Finding:
        """Return whether packets of the broker had to wait, by the kernel's own counters."""
        shaped = self._context.cluster.network().shaped(self._broker)
        return Finding(
            shaped.sent > 0 and shaped.waited > 0,
            f"{self._hit.target} sent {grouped(shaped.sent)} bytes at {self.rate}, and had to wait "
            f"{grouped(shaped.waited)} times",
        )

    def heal(self) -> str:
        """Remove the limit."""
        self._context.cluster.network().unslow(self._broker)
        return "no limit"


# On the wire

Way = Literal["both", "to-broker", "to-client"]
Api = Literal[
    GroupApi, "OFFSET_FETCH", "FIND_COORDINATOR", "METADATA", "FETCH", "LIST_OFFSETS"
]  # fmt: skip
Apis = Annotated[tuple[Api, ...], Field(min_length=1, max_length=len(get_args(Api)))]
Share = Annotated[float, Field(strict=True, gt=0.0, le=1.0, allow_inf_nan=False)]


class NetFault(MemberFault):
    """What the faults on the wire have in common: a rule of the tap for each member.

    The keys of such a fault are those of its rule.
    """

    needs = "tap"
    undo_name = "end-tap-rule"
    undo_words = "remove the rule after {}"
    action: ClassVar[str]
    """What the tap does."""

    for_ms: PositiveMs
    """How long the rule is in force."""

    _rule: "WireRule"

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check that the targets exist."""
        yield from super().checks(experiment, path)
        brokers = getattr(self, "brokers", None)
        if brokers is not None:
            yield from broker_checks(brokers, experiment, (*path, "brokers"))

    def hits_now(self, context: "FaultContext") -> Iterable[Hit]:
        """Return the members that it hits now. Raises ChaosError without a tap."""
        tap, brokers = context.tap_for(self.fault), getattr(self, "brokers", None)
        undo = {"do": self.undo_name, "pid": tap.process_id, "started_at_ms": tap.started_at_ms}
        members = self._targets(context)
        nodes = [] if brokers is None else list(context.brokers_at(brokers))
        for one in members:
            # `members` are those that no other fault may hit meanwhile: a rule goes beside any
            yield Hit(one.name, one.group, {"brokers": nodes, "members": []}, undo)

    def prepare(self) -> None:
        """Make the rule for the member."""
        keys = {name: getattr(self, name) for name in _RULE_KEYS if hasattr(self, name)}
        nodes = tuple(self._hit.details["brokers"]) or None
        self._rule = self._context.wire_rule(self.action, self._hit.target, nodes, keys)

    def inject(self) -> None:
        """Put the rule in force."""
        self._hit.details["rule"] = self._rule.put()

    def verify(self) -> Finding:
        """Return whether the rule has its effect."""
        return self._rule.broken()

    def heal(self) -> str:
        """Remove the rule; what it held passes."""
        return self._rule.remove()

    def verify_healed(self) -> Finding:
        """Wait until what the witness saw is over."""
        return self._rule.healed()


_RULE_KEYS = ("way", "latency_ms", "jitter_ms", "apis", "count", "probability", "then")


class NetPartition(NetFault):
    """Parts members from brokers: nothing passes between them, on new connections either."""

    noun = "partition"
    action = "partition"

    fault: Literal["net.partition"]
    brokers: BrokerTarget
    """The brokers on the other side, resolved when the fault fires."""
    way: Way = "both"
    """`to-broker` stops requests, `to-client` answers."""


class NetIsolate(NetFault):
    """Cuts members off from all brokers, on new connections too."""

    noun = "isolation"
    action = "partition"

    fault: Literal["net.isolate"]
    way: Way = "both"
    """`to-broker` stops requests, `to-client` answers."""


class BetweenFault(NetFault):
    """A fault between members and brokers that may be selected."""

    brokers: BrokerTarget | None = None
    """The brokers on the other side, resolved when the fault fires; without it, all."""


class NetDelay(BetweenFault):
    """Delays what passes between members and brokers, without changing its order."""

    noun = "delay"
    action = "delay"

    fault: Literal["net.delay"]
    latency_ms: PositiveMs
    """How much longer each request and each answer takes."""
    jitter_ms: DurationMs = 0
    """By how much the latency varies, up and down, decided by the run's seed."""
    way: Way = "both"
    """`to-broker` delays requests, `to-client` answers."""

    def checks(self, experiment: Setup, path: Path) -> Iterator[Problem]:
        """Check the targets, and that the delay shows while it lasts."""
        yield from super().checks(experiment, path)
        if self.jitter_ms >= self.latency_ms:
            yield Problem(
                (*path, "jitter"), "leaves nothing of the latency; write less than the latency"
            )
        longest_ms = 2 * (self.latency_ms + self.jitter_ms)
        if self.for_ms < longest_ms:
            yield Problem(
                (*path, "for"),
                f"is too short to see a request delayed both ways; write {longest_ms}ms or more",
            )


class NetHold(BetweenFault):
    """Holds requests of an API, and what follows them on their connection, until healed."""

    noun = "hold"
    action = "hold"

    fault: Literal["net.hold"]
    apis: Apis
    """The requests that are held, such as `[SYNC_GROUP]`."""


class ChosenFault(BetweenFault):
    """A fault that hits requests of some APIs, all of them or a share."""

    apis: Apis
    """The requests that are hit, such as `[JOIN_GROUP]`."""
    count: PositiveCount | None = None
    """How many requests of each member are hit at most."""
    probability: Share = 1.0
    """The share of requests that is hit, decided by the run's seed."""


class NetDropAnswers(ChosenFault):
    """Lets requests arrive and loses their answers."""

    noun = "answer drop"
    action = "drop-answers"

    fault: Literal["net.drop-answers"]
    then: Literal["close", "silence"] = "close"
    """What becomes of the connection: it ends, or stays open without any further answer."""


class NetDuplicate(ChosenFault):
    """Sends requests twice; the client gets the answer to the first."""

    noun = "request duplication"
    action = "duplicate"

    fault: Literal["net.duplicate"]
