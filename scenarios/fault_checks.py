"""Cross-checks of the faults: what they name, and whether their effect could be witnessed."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scenarios.durations import format_ms
from scenarios.faults import (
    AddPartitions,
    BrokerFault,
    DuplicateInstance,
    GroupBounce,
    MemberAway,
    MemberFault,
    MemberRestart,
    RemoveMembers,
    Static,
)
from scenarios.problems import Path, Problem, unknown
from scenarios.targets import Brokers, CoordinatorOf, LeaderMemberOf, Names, PartitionLeader
from scenarios.wire_scripts import groups_of

if TYPE_CHECKING:
    from scenarios.experiment import Experiment


def fault_checks(experiment: "Experiment") -> Iterator[Problem]:
    """Yield what is wrong with the faults, given the rest of the experiment."""
    groups = [group.name for group in experiment.workload.groups]
    for i, fault in enumerate(experiment.faults):
        path: Path = ("faults", i)
        match fault:
            case MemberFault():
                yield from _members(experiment, fault, path)
                yield from _identity(experiment, fault, path)
            case BrokerFault():
                yield from _brokers(experiment, fault, path)
            case RemoveMembers(group=name):
                yield from unknown("group", name, groups, (*path, "group"))
            case AddPartitions():
                yield from _partitions(experiment, fault, path)
        if isinstance(fault, MemberAway):
            yield from _too_short(experiment, fault, path)


def _members(experiment: "Experiment", fault: MemberFault, path: Path) -> Iterator[Problem]:
    kinds = {g.name: {entry.kind for entry in g.members} for g in experiment.workload.groups}
    members = [member.name for member in experiment.members()]
    match fault.target:
        case LeaderMemberOf(group=name):
            yield from unknown("group", name, kinds, (*path, "target", "leader-member-of"))
        case Names(names=targets):
            for j, name in enumerate(targets):
                yield from unknown("member", name, members, (*path, "target", "names", j))
        case word if fault.group is None:
            yield Problem((*path, "group"), f"missing; say whose members '{word}' means")
        case word:
            yield from unknown("group", fault.group, kinds, (*path, "group"))
            here = kinds.get(fault.group, {word})
            if word != "all" and word not in here and not fault.allow_empty:
                yield Problem(
                    (*path, "target"),
                    f"group '{fault.group}' has no {word} members; choose another target, or "
                    "set allow_empty: true",
                )
    if fault.group is not None and not isinstance(fault.target, str):
        yield Problem((*path, "group"), "this target says itself whom it means; remove group")


def _identity(experiment: "Experiment", fault: MemberFault, path: Path) -> Iterator[Problem]:
    """Check what a fault does to identities: what is duplicated, and what members become."""
    targets = _aimed_at(experiment, fault)
    if isinstance(fault, DuplicateInstance):
        # a member may have become static by the time: that shows when the fault fires
        becoming = any(
            isinstance(other, MemberRestart | GroupBounce) and isinstance(other.becomes, Static)
            for other in experiment.faults
        )
        dynamic = [name for name, kind in targets.items() if kind == "dynamic"]
        if dynamic and not becoming:
            yield Problem(
                (*path, "target"),
                f"{dynamic[0]} is dynamic and has no instance id to duplicate; choose static ones",
            )
    if (
        isinstance(fault, MemberRestart | GroupBounce)
        and isinstance(fault.becomes, Static)
        and "{n}" not in fault.becomes.instance_id
        and len(targets) > 1
    ):
        yield Problem(
            (*path, "becomes", "instance_id"),
            f"{len(targets)} members cannot share one id; write "
            f"'{fault.becomes.instance_id}-{{n}}', for example",
        )


def _aimed_at(experiment: "Experiment", fault: MemberFault) -> dict[str, str]:
    """Return the members that may be hit, as far as the file tells, with their kinds."""
    match fault.target:
        case LeaderMemberOf():
            return {}
        case Names(names=names):
            return {m.name: m.kind for m in experiment.members() if m.name in names}
        case word:
            return {
                m.name: m.kind
                for m in experiment.members()
                if m.group == fault.group and word in ("all", m.kind)
            }


def _brokers(experiment: "Experiment", fault: BrokerFault, path: Path) -> Iterator[Problem]:
    path = (*path, "target")
    match fault.target:
        case CoordinatorOf(group=name):
            yield from unknown("group", name, groups_of(experiment), (*path, "coordinator-of"))
        case PartitionLeader(partition=partition):
            topics = {topic.name: topic.partitions for topic in experiment.workload.topics}
            name, _, number = partition.rpartition("/")
            where = (*path, "partition-leader")
            yield from unknown("topic", name, topics, where)
            if name in topics and int(number) >= topics[name]:
                yield Problem(
                    where,
                    f"topic '{name}' has partitions 0 to {topics[name] - 1}; choose one of them",
                )
        case Brokers(brokers=ids):
            for j, node in enumerate(ids):
                if node > experiment.cluster.brokers:
                    yield Problem(
                        (*path, "brokers", j),
                        f"there is no broker {node}; choose from 1 to {experiment.cluster.brokers}",
                    )


def _partitions(experiment: "Experiment", fault: AddPartitions, path: Path) -> Iterator[Problem]:
    """Check that a topic grows: Kafka takes no partition away."""
    there = {topic.name: topic.partitions for topic in experiment.workload.topics}
    yield from unknown("topic", fault.topic, there, (*path, "topic"))
    before = [
        other.to
        for other in experiment.faults
        if isinstance(other, AddPartitions) and other.topic == fault.topic
        if other.at_ms < fault.at_ms
    ]
    most = max([there.get(fault.topic, 0), *before])
    if fault.to <= most:
        yield Problem(
            (*path, "to"),
            f"topic '{fault.topic}' has {most} partitions by then; write {most + 1} or more",
        )


def _too_short(experiment: "Experiment", fault: MemberAway, path: Path) -> Iterator[Problem]:
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
