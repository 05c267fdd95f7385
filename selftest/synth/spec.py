"""What is asked of a synthesized run: how many groups for how long, like what, and what befalls."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from kafka_protocol.coordinator_lines import grammar_of
from reference_coordinator.classic.profiles import Profile, Settings
from reference_coordinator.driving.client import IN
from reference_coordinator.driving.wording import Wording
from selftest.synth.cluster import Line
from selftest.synth.group import Fault, GroupSimulation, LoggedProcess
from selftest.synth.printing import LIBRDKAFKA, UNNAMED, Delays, delays
from selftest.timing import FORMATION_MS, READY_MS, STOPS_AFTER_MS

SIZES = (2, 3, 4, 5)
"""The members of a group, in turn."""
CONNECTIONS = 1_000
"""How many connections a group may open: a broker numbers them, and no two may be the same."""


@dataclass(frozen=True)
class Mix:
    """The settings of all clients, in ms, and what befalls a group.

    `deploy_every_ms`: a rolling restart of all members, at times of its own in each group.
    `fault_every_ms`: the mean time between two faults of a group. `settle_ms`: how long before the
    end nothing more befalls a group, so that no request waits when the brokers stop.
    """

    session_ms: int
    heartbeat_ms: float
    commit_ms: float
    settle_ms: float
    deploy_every_ms: float | None = None
    fault_every_ms: float | None = None
    broker_config: dict[str, Any] = field(default_factory=dict)


MIXES = {
    "steady": Mix(
        session_ms=45_000,
        heartbeat_ms=3_000,
        commit_ms=5_000,
        settle_ms=10_000,
        deploy_every_ms=12 * 3_600_000,
        broker_config={"group.initial.rebalance.delay.ms": 3_000},
    ),
    "storm": Mix(
        session_ms=3_000,
        heartbeat_ms=800,
        commit_ms=1_000,
        settle_ms=7_000,
        fault_every_ms=3_500,
        broker_config={
            "group.initial.rebalance.delay.ms": 500,
            "group.min.session.timeout.ms": 1_000,
            "broker.session.timeout.ms": 3_000,
            "broker.heartbeat.interval.ms": 500,
        },
    ),
}
"""`steady`: heartbeats every 3 s, commits every 5 s, two deploys a day. `storm`: the settings and
the faults of members of the recorded run in `tests/recorded`. No broker fails."""


@dataclass(frozen=True)
class Spec:
    """So many groups for so many seconds."""

    groups: int
    seconds: float
    mix_name: str
    seed: int
    kafka: str
    profile: Profile

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

    def lines(self, number: int) -> list[Line]:
        """Simulate a group."""
        simulation = self.simulation(number)
        return simulation.run(befalls(simulation))


def befalls(group: GroupSimulation) -> list[tuple[float, Fault]]:
    """Return the deploys and faults of a group, and when they are."""
    mix, dice, end_ms = group.spec.mix, group.dice, group.spec.settled_ms
    formed_ms = READY_MS + FORMATION_MS + 4_000.0
    found: list[tuple[float, Fault]] = []
    if mix.deploy_every_ms is not None:
        at_ms = formed_ms + dice.uniform(0, mix.deploy_every_ms)
        while at_ms < end_ms:
            found.append((at_ms, deploy))
            at_ms += mix.deploy_every_ms * dice.uniform(0.8, 1.2)
    if mix.fault_every_ms is not None:
        at_ms = formed_ms - 2_500.0 + dice.expovariate(1 / mix.fault_every_ms)
        while at_ms < end_ms:
            found.append((at_ms, dice.choice((restart, restart, kill, duplicate))))
            at_ms += 400.0 + dice.expovariate(1 / mix.fault_every_ms)
    return found


def deploy(group: GroupSimulation) -> None:
    """Restart all members, one after the other."""
    after_ms = 0.0
    for process in list(group.processes):
        group.agenda.after(after_ms, partial(_restart, group, process, 1_500, 6_000))
        after_ms += group.dice.uniform(9_000, 25_000)


def _restart(group: GroupSimulation, process: LoggedProcess, least_ms: int, most_ms: int) -> None:
    if process in group.processes:
        group.stop(process)
        group.start(process, group.dice.uniform(least_ms, most_ms))


def restart(group: GroupSimulation) -> None:
    """Restart a member."""
    if group.processes:
        _restart(group, group.dice.choice(group.processes), 200, 2_000)


def kill(group: GroupSimulation) -> None:
    """Kill a member, which is back after its session has ended."""
    if group.processes:
        process = group.dice.choice(group.processes)
        group.kill(process)
        group.start(process, group.spec.mix.session_ms * group.dice.uniform(1.2, 2.0))


def duplicate(group: GroupSimulation) -> None:
    """Start a second process with a member's instance id; a dynamic member restarts instead."""
    stable = [one for one in group.processes if one.client.phase is IN]
    if not group.static or not stable:
        restart(group)
        return
    group.start(group.dice.choice(stable), 0.0)
