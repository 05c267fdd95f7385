"""What the groups of a synthesized run are like: their clients' settings, and what befalls them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reference_coordinator.driving.client import IN
from selftest.timing import FORMATION_MS

if TYPE_CHECKING:
    from selftest.synth.group import GroupSimulation


@dataclass(frozen=True)
class Mix:
    """The settings of all clients, in ms, and what befalls a group.

    `deploy_every_ms`: a rolling restart of all members, at times of its own in each group.
    `fault_every_ms`: the mean time between two faults of a group. `failover`: whether a broker is
    killed half-way. `settle_ms`: how long before the end nothing more befalls a group, so that no
    request waits when the brokers stop.
    """

    session_ms: int
    heartbeat_ms: float
    commit_ms: float
    settle_ms: float
    deploy_every_ms: float | None = None
    fault_every_ms: float | None = None
    failover: bool = False
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
        failover=True,
        broker_config={
            "group.initial.rebalance.delay.ms": 500,
            "group.min.session.timeout.ms": 1_000,
            "broker.session.timeout.ms": 3_000,
            "broker.heartbeat.interval.ms": 500,
        },
    ),
}
"""`steady`: heartbeats every 3 s, commits every 5 s, two deploys a day. `storm`: the settings and
the faults of the recorded run in `tests/recorded`."""

Fault = Callable[["GroupSimulation"], None]


def befalls(group: "GroupSimulation") -> list[tuple[float, Fault]]:
    """Return the deploys and faults of a group, and when they are."""
    mix, dice, end_ms = group.spec.mix, group.dice, group.spec.settled_ms
    formed_ms = group.began_ms + FORMATION_MS + 4_000.0
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


def deploy(group: "GroupSimulation") -> None:
    """Restart all members, one after the other."""
    after_ms = 0.0
    for process in list(group.processes):

        def again(process: Any = process) -> None:
            if process in group.processes:
                group.stop(process)
                group.start(process, group.dice.uniform(1_500, 6_000))

        group.agenda.after(after_ms, again)
        after_ms += group.dice.uniform(9_000, 25_000)


def restart(group: "GroupSimulation") -> None:
    """Restart a member."""
    if group.processes:
        process = group.dice.choice(group.processes)
        group.stop(process)
        group.start(process, group.dice.uniform(200, 2_000))


def kill(group: "GroupSimulation") -> None:
    """Kill a member, which is back after its session has ended."""
    if group.processes:
        process = group.dice.choice(group.processes)
        group.kill(process)
        group.start(process, group.spec.mix.session_ms * group.dice.uniform(1.2, 2.0))


def duplicate(group: "GroupSimulation") -> None:
    """Start a second process with a member's instance id; a dynamic member restarts instead."""
    stable = [one for one in group.processes if one.client.phase is IN]
    if not group.static or not stable:
        restart(group)
        return
    group.start(group.dice.choice(stable), 0.0)
