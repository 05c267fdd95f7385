"""What is asked of a synthesized run, and the groups that meet it.

The size decides how long the run lasts. Where it is too small for so many groups, some are brief:
they start at any time, and end soon.
"""

import random
from dataclasses import dataclass, replace
from functools import cached_property

from kafka_protocol.coordinator_lines import grammar_of
from reference_coordinator.classic.profiles import Profile, Settings
from selftest.mutants.wordings import Wording
from selftest.synth.clients import LIBRDKAFKA, UNNAMED
from selftest.synth.cluster import BACK_MS, READY_MS, Cluster
from selftest.synth.coordinator_lines import Line
from selftest.synth.faults import befalls
from selftest.synth.group import Setting, Simulation
from selftest.synth.mix import Mix
from selftest.synth.planting import Kind, Planted
from selftest.synth.printing import delays

SIZES = (2, 3, 4, 5)
"""The members of a group, in turn."""
BRIEF_SIZES = (1, 1, 1, 2)
SAMPLE = 16 * len(SIZES)
"""How many groups tell how large a group's log becomes."""
CONNECTIONS = 1_000
"""How many connections a group may open: a broker numbers them, and no two may be the same."""
LEAST_MS = 32_000.0
"""The shortest run: a broker can fail and come back."""
WAIT_MS = 250.0
"""How long after the last request the brokers stop."""
TURN = 0.618_033_988_75
"""Spreads the brief groups among the others."""


@dataclass(frozen=True)
class Order:
    """What is asked for: so many groups, about so many bytes of logs."""

    groups: int
    bytes: float
    mix: Mix
    mix_name: str
    seed: int
    kafka: str
    profile: Profile
    plant: int = 0


@dataclass(frozen=True)
class Run:
    """All groups of an order, until `end_ms`.

    A share of them are brief, and live for `brief_ms`. The first group has `giant` members, if that
    is not 0, and is not brief.
    """

    order: Order
    end_ms: float
    brief: float = 0.0
    brief_ms: float = 0.0
    giant: int = 0

    @cached_property
    def setting(self) -> Setting:
        """What its groups share."""
        mix = self.order.mix
        grammar = grammar_of(self.order.kafka, "java")
        kill_ms = self._kill_ms if mix.failover else None
        cluster = Cluster(grammar, self.order.groups, self.end_ms, kill_ms)
        profile = self.order.profile.with_settings(Settings.from_properties(mix.broker_config))
        dice = random.Random(f"{self.order.seed}-delays")
        return Setting(mix, cluster, profile, Wording(grammar), delays(dice), self.end_ms - WAIT_MS)

    @property
    def _kill_ms(self) -> float | None:
        """Half-way, if the killed broker can be back before the end."""
        at_ms = self.end_ms * 0.5
        return at_ms if at_ms + BACK_MS + 1_000 < self.end_ms else None

    def name(self, number: int) -> str:
        """Return the name of a group."""
        return f"{self.order.mix_name}-{number:06}"

    def simulation(self, number: int) -> Simulation:
        """Return the simulation of a group, ready to run."""
        giant = self.giant if number == 0 else 0
        brief = not giant and number * TURN % 1 < self.brief
        sizes = BRIEF_SIZES if brief else SIZES
        dice = random.Random(f"{self.order.seed}-{number}")
        began_ms, ended_ms = READY_MS, float("inf")
        if brief:
            began_ms = dice.uniform(READY_MS, self.setting.settled_ms - self.brief_ms)
            ended_ms = began_ms + self.brief_ms
        return Simulation(
            self.name(number),
            self.setting,
            size=giant or sizes[number % len(sizes)],
            static=number // len(sizes) % 2 == 0,
            software=UNNAMED if number // len(sizes) % 8 >= 6 else LIBRDKAFKA,
            dice=dice,
            connections=3 + number * CONNECTIONS,
            began_ms=began_ms,
            ended_ms=ended_ms,
        )

    def lines(self, number: int, kind: Kind | None = None) -> list[Line]:
        """Simulate a group, whose coordinator may break a rule."""
        simulation = self.simulation(number)
        if kind is not None:
            kind.prepare(simulation)
        return simulation.run(befalls(simulation))

    def planted(self, number: int, kind: Kind) -> Planted | None:
        """Simulate a group with something wrong; None where it has no place for it."""
        if kind.static not in (None, self.simulation(number).static):
            return None
        return kind.alter(self.lines(number, kind))

    @property
    def bytes(self) -> float:
        """About how large its logs are, from some of its groups; like groups differ."""
        count = min(self.order.groups, SAMPLE)
        sample = (len(line.text) + 45 for number in range(count) for line in self.lines(number))
        return sum(sample) * self.order.groups / count


def run_of(order: Order) -> Run:
    """Return the run of an order, whose size is met to some percent.

    Raises ValueError if so many groups take more bytes.
    """
    least = Run(order, LEAST_MS)
    size = least.bytes
    if size > order.bytes:
        brief_ms = order.mix.formation_ms + 2 * order.mix.heartbeat_ms
        brief = replace(least, brief=1.0, brief_ms=brief_ms)
        brief_size = brief.bytes
        if brief_size > order.bytes:
            raise ValueError(f"so many groups take at least {brief_size / 1e6:,.0f} MB")
        return replace(brief, brief=(size - order.bytes) / (size - brief_size))
    rate = (Run(order, 2 * LEAST_MS).bytes - size) / LEAST_MS
    return Run(order, LEAST_MS + (order.bytes - size) / rate)
