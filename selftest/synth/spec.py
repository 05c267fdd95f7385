"""What is asked of a synthesized run, and the groups that meet it."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kafka_protocol.coordinator_lines import grammar_of
from reference_coordinator.classic.profiles import Profile, Settings
from selftest.mutants.wordings import Wording
from selftest.synth.cluster import Cluster
from selftest.synth.group import GroupSimulation, Line
from selftest.synth.mixes import MIXES, Mix, befalls
from selftest.synth.planting import Kind, Planted
from selftest.synth.printing import LIBRDKAFKA, UNNAMED, Delays, delays
from selftest.timing import BACK_MS, STOPS_AFTER_MS

SIZES = (2, 3, 4, 5)
"""The members of a group, in turn."""
CONNECTIONS = 1_000
"""How many connections a group may open: a broker numbers them, and no two may be the same."""


@dataclass(frozen=True)
class Spec:
    """So many groups for so many seconds, of which so many have a planted finding."""

    groups: int
    seconds: float
    mix_name: str
    seed: int
    kafka: str
    profile: Profile
    plant: int = 0

    @property
    def mix(self) -> Mix:
        """What its groups are like."""
        return MIXES[self.mix_name]

    @property
    def end_ms(self) -> float:
        """When its brokers stop."""
        return self.seconds * 1_000

    @property
    def stopped_ms(self) -> float:
        """When its last request may be."""
        return self.end_ms - STOPS_AFTER_MS

    @property
    def settled_ms(self) -> float:
        """When the last restart or fault is."""
        return self.stopped_ms - self.mix.settle_ms

    @cached_property
    def cluster(self) -> Cluster:
        """Its brokers; one is killed half-way if it can be back before the end."""
        kill_ms = self.end_ms * 0.5
        falls = self.mix.failover and kill_ms + BACK_MS + 1_000 < self.end_ms
        grammar = self.wording.grammar
        return Cluster(grammar, self.groups, self.end_ms, kill_ms if falls else None)

    @cached_property
    def wording(self) -> Wording:
        """How its brokers word their lines."""
        return Wording(grammar_of(self.kafka, "java"))

    @cached_property
    def rules(self) -> Profile:
        """The rules of its brokers, with their settings."""
        return self.profile.with_settings(Settings.from_properties(self.mix.broker_config))

    @cached_property
    def delays(self) -> Sequence[Delays]:
        """How long requests take."""
        return delays(random.Random(f"{self.seed}-delays"))

    def name(self, number: int) -> str:
        """Return the name of a group."""
        return f"{self.mix_name}-{number:06}"

    def simulation(self, number: int) -> GroupSimulation:
        """Return the simulation of a group, ready to run."""
        return GroupSimulation(
            self.name(number),
            self,
            size=SIZES[number % len(SIZES)],
            software=UNNAMED if number // len(SIZES) % 8 >= 6 else LIBRDKAFKA,
            dice=random.Random(f"{self.seed}-{number}"),
            connections=3 + number * CONNECTIONS,
            static=number // len(SIZES) % 2 == 0,
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
