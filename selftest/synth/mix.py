"""What the groups of a synthesized run are like: their clients' settings and what befalls them."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Mix:
    """The settings of all clients, in ms, and what befalls a group.

    `formation_ms`: how long a new group takes until its members have assignments.
    `deploy_every_ms`: a rolling restart of all members, at times of its own in each group.
    `fault_every_ms`: the mean time between two faults of a group. `failover`: whether a broker is
    killed half-way. `settle_ms`: how long before the end nothing more befalls a group, so that no
    request waits when the brokers stop.
    """

    session_ms: int
    heartbeat_ms: float
    commit_ms: float
    settle_ms: float
    formation_ms: float
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
        formation_ms=3_500,
        deploy_every_ms=12 * 3_600_000,
        broker_config={"group.initial.rebalance.delay.ms": 3_000},
    ),
    "storm": Mix(
        session_ms=3_000,
        heartbeat_ms=800,
        commit_ms=1_000,
        settle_ms=7_000,
        formation_ms=1_000,
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
