"""Cross-checks: what only two parts of an experiment together can get wrong."""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from scenarios.durations import format_ms
from scenarios.members import members_of
from scenarios.model import Fault, GroupMembersProbe, LeaderMemberOf, Names, StaticMembers
from scenarios.problems import Path, Problem, nearest, shown

if TYPE_CHECKING:
    from scenarios.experiment import Experiment

MIN_SESSION_MS = 6_000
"""The brokers' default of `group.min.session.timeout.ms`."""


def cross_checks(experiment: "Experiment") -> Iterator[Problem]:
    """Yield every problem between the parts of an experiment whose parts are each valid."""
    yield from _cluster(experiment)
    yield from _topics(experiment)
    yield from _groups(experiment)
    yield from _members(experiment)
    yield from _probes(experiment)
    yield from _faults(experiment)
    yield from _expectations(experiment)


RESERVED = (
    "node.id", "broker.id", "process.roles", "listeners", "advertised.listeners", "log.dir",
    "log.dirs", "metadata.log.dir",
)  # fmt: skip
"""Broker properties that a cluster sets itself, beside all of `controller.`."""


def _cluster(experiment: "Experiment") -> Iterator[Problem]:
    for name in experiment.cluster.config:
        if name in RESERVED or name.startswith("controller."):
            yield Problem(("cluster", "config", name), "is the cluster's own to set; remove it")


def _topics(experiment: "Experiment") -> Iterator[Problem]:
    workload, brokers = experiment.workload, experiment.cluster.brokers
    topics = [topic.name for topic in workload.topics]
    yield from _repeated(topics, ("workload", "topics"))
    for i, topic in enumerate(workload.topics):
        if topic.replication_factor > brokers:
            yield Problem(
                ("workload", "topics", i, "replication_factor"),
                f"{topic.replication_factor} replicas need as many brokers, and there are "
                f"{brokers}; lower it or raise cluster.brokers",
            )
    for i, producer in enumerate(workload.producers):
        path: Path = ("workload", "producers", i, "topic")
        yield from _unknown("topic", producer.topic, topics, path)
    for i, group in enumerate(workload.groups):
        for j, name in enumerate(group.topics):
            yield from _unknown("topic", name, topics, ("workload", "groups", i, "topics", j))


def _groups(experiment: "Experiment") -> Iterator[Problem]:
    groups = experiment.workload.groups
    yield from _repeated([group.name for group in groups], ("workload", "groups"))
    configured = str(experiment.cluster.config.get("group.min.session.timeout.ms", MIN_SESSION_MS))
    least_ms = int(configured) if configured.isdecimal() else 0
    for i, group in enumerate(groups):
        path: Path = ("workload", "groups", i)
        session = format_ms(group.session_timeout_ms)
        if group.heartbeat_interval_ms * 2 >= group.session_timeout_ms:
            heartbeat = format_ms(group.heartbeat_interval_ms)
            yield Problem(
                (*path, "heartbeat_interval"),
                f"{heartbeat} is not below half the session timeout ({session}); lower it",
            )
        if group.max_poll_interval_ms < group.session_timeout_ms:
            poll = format_ms(group.max_poll_interval_ms)
            yield Problem(
                (*path, "max_poll_interval"),
                f"{poll} is below the session timeout ({session}); raise it",
            )
        if group.session_timeout_ms < least_ms:
            yield Problem(
                (*path, "session_timeout"),
                f"{session} is below what the brokers accept ({format_ms(least_ms)}); raise it "
                "or set group.min.session.timeout.ms in cluster.config",
            )


def _members(experiment: "Experiment") -> Iterator[Problem]:
    """Check that a name means one member, whichever its group: the brokers' logs tell no more."""
    owners: dict[str, str] = {}
    for i, group in enumerate(experiment.workload.groups):
        specs = members_of(group)
        for j, entry in enumerate(group.members):
            path: Path = ("workload", "groups", i, "members", j)
            own = [spec.name for spec in islice(specs, entry.count)]
            clash = next((name for name in own if name in owners), None)
            if isinstance(entry, StaticMembers):
                path = (*path, "instance_id")
                if entry.count > 1 and "{n}" not in entry.instance_id:
                    yield Problem(
                        path,
                        f"{entry.count} members cannot share one id; write "
                        f"'{entry.instance_id}-{{n}}', for example",
                    )
            if clash is not None:
                yield Problem(
                    path,
                    f"{shown(clash)} is already the name of a member of group "
                    f"'{owners[clash]}'; choose another",
                )
            owners.update(dict.fromkeys(own, group.name))


def _probes(experiment: "Experiment") -> Iterator[Problem]:
    sizes = {group.name: len(tuple(members_of(group))) for group in experiment.workload.groups}
    probes = experiment.steady_state.probes
    yield from _repeated([probe.name for probe in probes], ("steady_state", "probes"))
    for i, probe in enumerate(probes):
        path: Path = ("steady_state", "probes", i)
        yield from _unknown("group", probe.group, sizes, (*path, "group"))
        size = sizes.get(probe.group, 0)
        if isinstance(probe, GroupMembersProbe) and probe.tolerance > size > 0:
            yield Problem(
                (*path, "tolerance"),
                f"{probe.tolerance} members can never be in, since the group has {size}; lower it",
            )


def _faults(experiment: "Experiment") -> Iterator[Problem]:
    kinds = {g.name: {entry.kind for entry in g.members} for g in experiment.workload.groups}
    members = [member.name for member in experiment.members()]
    for i, fault in enumerate(experiment.faults):
        path: Path = ("faults", i)
        match fault.target:
            case LeaderMemberOf(group=name):
                yield from _unknown("group", name, kinds, (*path, "target", "leader-member-of"))
            case Names(names=targets):
                for j, name in enumerate(targets):
                    yield from _unknown("member", name, members, (*path, "target", "names", j))
            case word if fault.group is None:
                yield Problem((*path, "group"), f"missing; say whose members '{word}' means")
            case word:
                yield from _unknown("group", fault.group, kinds, (*path, "group"))
                here = kinds.get(fault.group, {word})
                if word != "all" and word not in here and not fault.allow_empty:
                    yield Problem(
                        (*path, "target"),
                        f"group '{fault.group}' has no {word} members; choose another target, or "
                        "set allow_empty: true",
                    )
        if fault.group is not None and not isinstance(fault.target, str):
            yield Problem((*path, "group"), "this target says itself whom it means; remove group")
        yield from _too_short(experiment, fault, path)


def _too_short(experiment: "Experiment", fault: Fault, path: Path) -> Iterator[Problem]:
    """A member's silence shows only once it has missed heartbeats."""
    for group in experiment.workload.groups:
        aimed_at = {fault.group}
        if isinstance(fault.target, LeaderMemberOf):
            aimed_at = {fault.target.group}
        elif isinstance(fault.target, Names):
            named = set(fault.target.names)
            aimed_at = {m.group for m in experiment.members() if m.name in named}
        least_ms = 2 * group.heartbeat_interval_ms
        if group.name in aimed_at and fault.down_for_ms < least_ms:
            yield Problem(
                (*path, "down_for"),
                f"{format_ms(fault.down_for_ms)} is below two heartbeat intervals of group "
                f"'{group.name}', too short to be witnessed; write {format_ms(least_ms)} or more",
            )


def _expectations(experiment: "Experiment") -> Iterator[Problem]:
    groups = [group.name for group in experiment.workload.groups]
    for i, expectation in enumerate(experiment.expect):
        path: Path = ("expect", i)
        yield from _unknown("group", expectation.group, groups, (*path, "group"))
        least, most = expectation.rebalances.min, expectation.rebalances.max
        if most is not None and least > most:
            yield Problem(
                (*path, "rebalances"), f"no number is from {least} to {most}; swap min and max"
            )
        if least == 0 and most is None:
            yield Problem((*path, "rebalances"), "any number would do; give min, max or both")


def _repeated(names: Sequence[str], path: Path) -> Iterator[Problem]:
    for i, name in enumerate(names):
        if name in names[:i]:
            yield Problem((*path, i, "name"), f"{shown(name)} is taken; choose another name")


def _unknown(what: str, name: str, known: Collection[str], path: Path) -> Iterator[Problem]:
    if name not in known:
        yield Problem(path, f"there is no {what} {shown(name)}; {nearest(name, known)}")
