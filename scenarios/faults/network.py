"""Faults of the network between brokers; those between members and brokers are in `wire`."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from scenarios import timing
from scenarios.durations import PositiveMs
from scenarios.faults.base import Finding, grouped
from scenarios.faults.targeted import BrokerFault
from scenarios.fields import matching
from scenarios.problems import Path, Problem
from scenarios.setup import Setup

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


class BrokerSlowNetwork(BetweenBrokers):
    """Lets what each broker sends to all others, together, pass at a low rate."""

    noun = "slow network"
    needs = "slow"
    undo_name = "unslow-broker"
    undo_words = "remove the limit after {}"

    fault: Literal["broker.slow-network"]
    rate: Annotated[
        str,
        matching(_RATE, "write kbit or mbit a second, such as 256kbit", "is no rate"),
        Field(json_schema_extra={"pattern": f"^{_RATE}$"}),
    ]
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
