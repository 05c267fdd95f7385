"""Wire scripts: groups whose members send requests that real clients rarely send.

This module lists what each script needs of the brokers, so that an experiment which cannot run it
is refused when it is read. `loadtest.wire_scripts` runs them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from kafka_protocol.releases import number
from scenarios.faults import AddPartitions, BrokerKill
from scenarios.problems import Path, Problem
from scenarios.targets import CoordinatorOf

if TYPE_CHECKING:
    from scenarios.experiment import Experiment

WireScript = Literal[
    "fencing",
    "returning",
    "removal",
    "sessions",
    "absent",
    "leading",
    "pending",
    "full",
    "forming",
    "silent",
    "mixed",
    "elsewhere",
    "while_empty",
    "while_preparing",
    "while_completing",
    "while_stable",
    "stale_sync",
    "resubscribed",
    "retimed",
    "replaced",
    "missed",
    "unstored",
    "locked_out",
    "removed_in_sync",
    "leader_returns",
    "leader_misses",
    "old_leader_returns",
]

TOPIC = "orders"
DELAY, SIZE = "group.initial.rebalance.delay.ms", "group.max.size"
SHORTEST = "group.min.session.timeout.ms"
DEFAULTS = {DELAY: 3_000, SIZE: 2_147_483_647, SHORTEST: 6_000}
"""Broker settings that wire scripts depend on, with Kafka's defaults."""
FOUNDING_MS = 500
"""How long the first members of a script's group take to join, one after the other."""
MOST = 5
"""The most members that a script's group has at a time, including those about to be replaced."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a wire script needs of its experiment.

    `session_ms` is the shortest session timeout that its members ask for, `brokers` the least
    number of brokers, `settings` the exact values of broker settings. `killed` asks for a fault
    that kills the coordinator of its group, `grows` for one that adds partitions to `TOPIC`.
    Brokers before the release `since` cannot run it to its end.
    """

    session_ms: int = 3_000
    brokers: int = 1
    settings: Mapping[str, int] = field(default_factory=dict)
    killed: bool = False
    grows: bool = False
    since: str = "2.4.0"


NEEDS: Mapping[WireScript, Needs] = {
    "fencing": Needs(),
    "returning": Needs(),
    "removal": Needs(),
    "sessions": Needs(session_ms=2_000),
    "absent": Needs(session_ms=2_000),
    "leading": Needs(),
    "pending": Needs(session_ms=2_000),
    "full": Needs(settings={SIZE: 5}),
    "forming": Needs(settings={DELAY: 500}),
    "silent": Needs(),
    "mixed": Needs(session_ms=2_000),
    "elsewhere": Needs(brokers=2),
    "while_empty": Needs(session_ms=120_000),
    "while_preparing": Needs(session_ms=120_000),
    "while_completing": Needs(session_ms=120_000, since="2.5.0"),
    "while_stable": Needs(session_ms=120_000),
    "stale_sync": Needs(session_ms=10_000),
    "resubscribed": Needs(session_ms=10_000),
    "retimed": Needs(session_ms=2_000),
    "replaced": Needs(session_ms=10_000),
    "missed": Needs(session_ms=20_000),
    "unstored": Needs(session_ms=60_000, killed=True),
    "locked_out": Needs(session_ms=6_000, killed=True),
    "removed_in_sync": Needs(session_ms=20_000),
    "leader_returns": Needs(session_ms=120_000, grows=True),
    "leader_misses": Needs(session_ms=120_000, grows=True),
    "old_leader_returns": Needs(session_ms=120_000, grows=True),
}


def wire_script_checks(experiment: "Experiment") -> Iterator[Problem]:
    """Yield what an experiment lacks that its wire scripts need."""
    cluster = experiment.cluster
    settings = {name: _setting(cluster.config, name) for name in DEFAULTS}
    for i, script in enumerate(experiment.workload.wire_scripts):
        needs, path = NEEDS[script], ("workload", "wire_scripts", i)
        if number(cluster.version) < number(needs.since):
            yield _lack(path, script, f"Kafka {needs.since} or later")
        if needs.grows and not _grows(experiment):
            yield _lack(path, script, f"a fault topic.add-partitions for a topic '{TOPIC}'")
        if cluster.brokers < needs.brokers:
            yield _lack(path, script, f"cluster.brokers: {needs.brokers} or more")
        for name, least in ((DELAY, FOUNDING_MS), (SIZE, MOST)):
            exact = needs.settings.get(name)
            if exact is not None and settings[name] != exact:
                yield _lack(path, script, f"{name}: {exact}")
            elif settings[name] < least:
                yield _lack(path, script, f"{name}: {least} or more")
        if settings[SHORTEST] > needs.session_ms:
            yield _lack(path, script, f"{SHORTEST}: {needs.session_ms} or less")
        if needs.killed and script not in _killed(experiment):
            yield _lack(path, script, f"a fault broker.kill of {{coordinator-of: {script}}}")


def _grows(experiment: "Experiment") -> bool:
    return any(
        isinstance(fault, AddPartitions) and fault.topic == TOPIC for fault in experiment.faults
    )


def _setting(config: Mapping[str, str | int | bool], name: str) -> int:
    given = str(config.get(name, ""))
    return int(given[:18]) if given.isdecimal() else DEFAULTS[name]


def _lack(path: Path, script: str, what: str) -> Problem:
    return Problem(path, f"'{script}' needs {what}; add it, or leave the wire script out")


def _killed(experiment: "Experiment") -> set[str]:
    return {
        fault.target.group
        for fault in experiment.faults
        if isinstance(fault, BrokerKill) and isinstance(fault.target, CoordinatorOf)
    }
