"""Stories: groups whose members say on the wire what real clients hardly ever do.

What each asks of the brokers stands here, so that an experiment is refused which could not tell it;
who tells it is `loadtest.wire_scripts`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from scenarios.faults import AddPartitions, BrokerKill
from scenarios.problems import Path, Problem
from scenarios.releases import number
from scenarios.targets import CoordinatorOf

if TYPE_CHECKING:
    from scenarios.experiment import Experiment

Story = Literal[
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
    "leader_returns",
    "leader_misses",
    "old_leader_returns",
]

TOPIC = "orders"
DELAY, SIZE = "group.initial.rebalance.delay.ms", "group.max.size"
SHORTEST = "group.min.session.timeout.ms"
DEFAULTS = {DELAY: 3_000, SIZE: 2_147_483_647, SHORTEST: 6_000}
"""The settings that stories depend on, and Kafka's values of them."""
FOUNDING_MS = 500
"""How long the members that found a group take to come, each after the other."""
MOST = 5
"""So many members a story's group has at a time, with those that are about to be replaced."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a story needs: brokers, the shortest session that it asks for, settings as they are.

    With `killed` somebody has to kill its coordinator, with `grows` to add partitions to its topic,
    which is `TOPIC`. Before the release `since` it cannot be told to its end.
    """

    session_ms: int = 3_000
    brokers: int = 1
    settings: Mapping[str, int] = field(default_factory=dict)
    killed: bool = False
    grows: bool = False
    since: str = "2.4.0"


NEEDS: Mapping[Story, Needs] = {
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
    "leader_returns": Needs(session_ms=120_000, grows=True),
    "leader_misses": Needs(session_ms=120_000, grows=True),
    "old_leader_returns": Needs(session_ms=120_000, grows=True),
}


def groups_of(experiment: "Experiment") -> list[str]:
    """Return the names of all groups: those of real clients, and those of stories."""
    return [
        *(group.name for group in experiment.workload.groups),
        *experiment.workload.stories,
    ]


def story_checks(experiment: "Experiment") -> Iterator[Problem]:
    """Yield what an experiment lacks that its stories need."""
    cluster = experiment.cluster
    settings = {name: _setting(cluster.config, name) for name in DEFAULTS}
    for i, story in enumerate(experiment.workload.stories):
        needs, path = NEEDS[story], ("workload", "stories", i)
        if number(cluster.version) < number(needs.since):
            yield _lack(path, story, f"Kafka {needs.since} or later")
        if needs.grows and not _grows(experiment):
            yield _lack(path, story, f"a fault topic.add-partitions for a topic '{TOPIC}'")
        if cluster.brokers < needs.brokers:
            yield _lack(path, story, f"cluster.brokers: {needs.brokers} or more")
        if settings[SHORTEST] > needs.session_ms:
            yield _lack(path, story, f"{SHORTEST}: {needs.session_ms} or less")
        for name, least in ((DELAY, FOUNDING_MS), (SIZE, MOST)):
            exact = needs.settings.get(name)
            if exact is not None and settings[name] != exact:
                yield _lack(path, story, f"{name}: {exact}")
            elif settings[name] < least:
                yield _lack(path, story, f"{name}: {least} or more")
        if needs.killed and story not in _killed(experiment):
            yield _lack(path, story, f"a fault broker.kill of {{coordinator-of: {story}}}")


def _grows(experiment: "Experiment") -> bool:
    return any(
        isinstance(fault, AddPartitions) and fault.topic == TOPIC for fault in experiment.faults
    )


def _setting(config: Mapping[str, str | int | bool], name: str) -> int:
    given = str(config.get(name, ""))
    return int(given) if given.isdecimal() else DEFAULTS[name]


def _lack(path: Path, story: str, what: str) -> Problem:
    return Problem(path, f"'{story}' needs {what}; add it, or leave the story out")


def _killed(experiment: "Experiment") -> set[str]:
    return {
        fault.target.group
        for fault in experiment.faults
        if isinstance(fault, BrokerKill) and isinstance(fault.target, CoordinatorOf)
    }
