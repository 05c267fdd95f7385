"""Cross-checks: problems between two parts of an experiment."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise

from kafka_protocol.releases import FIRST_JAVA_CLIENT_TOOL, FIRST_JSON_REQUEST_LOG, number
from scenarios.clients import ASSIGNORS, OF_KAFKA, WITHOUT_STATIC, kind_of
from scenarios.durations import format_ms
from scenarios.external import KEYS, UNDO, Logs
from scenarios.fields import MOST
from scenarios.model import (
    Clients,
    Cluster,
    Expectation,
    GroupMembersProbe,
    Movement,
    Ownership,
    StaticMembers,
)
from scenarios.problems import Path, Problem, shown, unknown
from scenarios.releases import require_coordinator
from scenarios.setup import Setup, members_of
from scenarios.targets import CoordinatorOf
from scenarios.timing import FOUNDING_MS, MIN_SESSION_MS
from scenarios.wire_scripts import DEFAULTS, DELAY, MOST_MEMBERS, NEEDS, SHORTEST, SIZE, TOPIC

MOST_BROKERS = 5
"""How many brokers groupquake starts at most."""
OF_NO_RULE = ("unowned", "unanswered")
"""Reasons of a fail that are no promises of KIP-345."""


def cross_checks(experiment: Setup) -> Iterator[Problem]:
    """Yield every problem between the parts of an experiment whose parts are each valid."""
    members = sum(entry.count for group in experiment.workload.groups for entry in group.members)
    if members > MOST:  # looking at each would take long
        yield Problem(("workload", "groups"), f"have {members} members; {MOST} is the most")
        return
    yield from _cluster(experiment)
    yield from _topics(experiment)
    yield from _groups(experiment)
    yield from _members(experiment)
    yield from _probes(experiment)
    for i, fault in enumerate(experiment.faults):
        yield from fault.checks(experiment, ("faults", i))
        yield from fault.schedule_checks(experiment, ("faults", i))
    yield from _plan(experiment)
    yield from _wire_scripts(experiment)
    yield from _expectations(experiment)
    yield from _verdicts(experiment)


def _verdicts(experiment: Setup) -> Iterator[Problem]:
    for i, (before, after) in enumerate(pairwise(experiment.verdicts), 1):
        first, second = number(before.since), number(after.since)
        if first > second or (first == second and before.coordinator == after.coordinator):
            yield Problem(
                ("verdicts", i, "since"), f"is not after {before.since}; put them in order"
            )
    for i, expected in enumerate(experiment.verdicts):
        path: Path = ("verdicts", i)
        if expected.verdict == "pass":
            for key in ("because", "group"):
                if getattr(expected, key) is not None:
                    yield Problem((*path, key), "only applies to a fail; remove it")
        elif expected.because is None:
            yield Problem((*path, "because"), "missing; name the promise that a fail must break")
        elif expected.because == "unowned" and not experiment.owners:
            yield Problem((*path, "because"), "expect: has no `unowned`; say how many there may be")
        elif expected.group is None and expected.because != "unowned":
            yield Problem((*path, "group"), "missing; name the group in which it is broken")
        else:
            if expected.group is not None:
                yield from unknown(
                    "group", expected.group, experiment.group_names, (*path, "group")
                )
            if expected.because not in OF_NO_RULE and experiment.judge != "kip-345":
                yield Problem(
                    (*path, "because"),
                    "a release keeps to its own rules; write judge: kip-345, or remove it",
                )


def _plan(experiment: Setup) -> Iterator[Problem]:
    """Check that the plan is not too long to be made."""
    steps = [fault.size(experiment) for fault in experiment.faults]
    if sum(steps) > MOST:
        i = steps.index(max(steps))
        what = f"{experiment.faults[i].fault} makes {steps[i]} of {sum(steps)} steps of the plan"
        yield Problem(("faults", i), f"{what}, and {MOST} is the most; let it fire less often")


RESERVED = (
    "node.id", "broker.id", "process.roles", "listeners", "advertised.listeners", "log.dir",
    "log.dirs", "metadata.log.dir", "zookeeper.connect", "group.coordinator.new.enable",
)  # fmt: skip
"""Broker properties that a cluster sets itself, beside all of `controller.`."""

_PROTOCOLS = "group.coordinator.rebalance.protocols"


def _cluster(experiment: Setup) -> Iterator[Problem]:
    cluster = experiment.cluster
    yield from _of_external(cluster)
    if cluster.brokers > MOST_BROKERS and cluster.kind is None:
        yield Problem(
            ("cluster", "brokers"), f"{cluster.brokers} is too large; write {MOST_BROKERS} or less"
        )
    if (ids := cluster.broker_ids) is not None and len(set(ids)) != cluster.brokers:
        yield Problem(
            ("cluster", "broker_ids"),
            f"are {len(set(ids))} different ids, and cluster.brokers is {cluster.brokers};"
            " write one for each broker",
        )
    for name in experiment.cluster.config:
        if name in RESERVED or name.startswith("controller."):
            yield Problem(("cluster", "config", name), "is set by the cluster itself; remove it")
    try:
        require_coordinator(experiment.cluster.version, experiment.cluster.coordinator)
    except ValueError as error:
        yield Problem(("cluster", "coordinator"), str(error))
    protocols = str(experiment.cluster.config.get(_PROTOCOLS, ""))
    if experiment.coordinator == "scala" and "consumer" in protocols.lower():
        yield Problem(
            ("cluster", "config", _PROTOCOLS),
            "consumer starts the java group coordinator; remove it, or write coordinator: java",
        )


def _of_external(cluster: Cluster) -> Iterator[Problem]:
    """Check the keys that only an external cluster has."""
    if cluster.kind is None:
        for key in KEYS:
            if getattr(cluster, key):
                what = "only applies to kind: external; add that, or remove it"
                yield Problem(("cluster", key), what)
        return
    logs = cluster.logs
    if isinstance(logs, Logs) and (logs.folder is None) == (logs.command is None):
        yield Problem(("cluster", "logs"), "has to be folder or command; give one of the two")
    for broker, commands in (cluster.hooks or {}).items():
        path: Path = ("cluster", "hooks", broker)
        if broker != "any" and not broker.isdecimal():
            yield Problem(path, "is no broker; write an id such as 1, or any")
        for verb, undo in UNDO.items():
            if commands.of(verb) and not commands.of(undo):
                yield Problem((*path, verb), f"nothing undoes it; add {undo}")


def _topics(experiment: Setup) -> Iterator[Problem]:
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
        yield from unknown("topic", producer.topic, topics, path)
    for i, group in enumerate(workload.groups):
        for j, name in enumerate(group.topics):
            yield from unknown("topic", name, topics, ("workload", "groups", i, "topics", j))


def _groups(experiment: Setup) -> Iterator[Problem]:
    groups = experiment.workload.groups
    yield from _repeated([group.name for group in groups], ("workload", "groups"))
    configured = str(experiment.cluster.config.get("group.min.session.timeout.ms", MIN_SESSION_MS))
    least_ms = int(configured[:18]) if configured.isdecimal() else 0
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


def _members(experiment: Setup) -> Iterator[Problem]:
    """Check that member names are unique in the experiment: the brokers' logs have only names."""
    owners: dict[str, str] = {}
    version = number(experiment.cluster.version)
    for i, group in enumerate(experiment.workload.groups):
        specs = members_of(group)
        for j, entry in enumerate(group.members):
            path: Path = ("workload", "groups", i, "members", j)
            own = [spec.name for spec in islice(specs, entry.count)]
            if entry.client == "java" and len(group.topics) > 1:
                yield Problem(
                    (*path, "client"),
                    f"java reads one topic, and group '{group.name}' has {len(group.topics)}; give "
                    "it one, or leave out client",
                )
            if entry.client == "java" and version < FIRST_JAVA_CLIENT_TOOL:
                yield Problem((*path, "client"), "java needs Kafka 2.5.0 or later; choose that")
            if entry.client in WITHOUT_STATIC and isinstance(entry, StaticMembers):
                yield Problem(
                    (*path, "client"),
                    f"{entry.client} has no static members (KIP-345); make them dynamic",
                )
            able = ASSIGNORS.get(kind_of(entry.client), OF_KAFKA)
            if group.assignor not in able:
                yield Problem(
                    (*path, "client"),
                    f"{entry.client} has no assignor {group.assignor}; give group '{group.name}'"
                    f" assignor: {' or '.join(able)}",
                )
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


def _probes(experiment: Setup) -> Iterator[Problem]:
    sizes = {group.name: len(tuple(members_of(group))) for group in experiment.workload.groups}
    probes = experiment.steady_state.probes or ()
    yield from _repeated([probe.name for probe in probes], ("steady_state", "probes"))
    for i, probe in enumerate(probes):
        path: Path = ("steady_state", "probes", i)
        yield from unknown("group", probe.group, sizes, (*path, "group"))
        size = sizes.get(probe.group, 0)
        if not isinstance(probe, GroupMembersProbe) or probe.tolerance == "all":
            continue
        if probe.tolerance > size > 0:
            yield Problem(
                (*path, "tolerance"),
                f"{probe.tolerance} members are more than the group has ({size});"
                " lower it, or write all",
            )


def _wire_scripts(experiment: Setup) -> Iterator[Problem]:
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
        for name, least in ((DELAY, FOUNDING_MS), (SIZE, MOST_MEMBERS)):
            exact = needs.settings.get(name)
            if exact is not None and settings[name] != exact:
                yield _lack(path, script, f"{name}: {exact}")
            elif settings[name] < least:
                yield _lack(path, script, f"{name}: {least} or more")
        if settings[SHORTEST] > needs.session_ms:
            yield _lack(path, script, f"{SHORTEST}: {needs.session_ms} or less")
        if needs.awaits and (needs.awaits, script) not in _at_coordinators(experiment):
            yield _lack(path, script, f"a fault {needs.awaits} at the coordinator of {script}")


def _grows(experiment: Setup) -> bool:
    return any(
        fault.fault == "topic.add-partitions" and fault.topic == TOPIC
        for fault in experiment.faults
    )


def _setting(config: Mapping[str, str | int | bool], name: str) -> int:
    given = str(config.get(name, ""))
    return int(given[:18]) if given.isdecimal() else DEFAULTS[name]


def _lack(path: Path, script: str, what: str) -> Problem:
    return Problem(path, f"'{script}' needs {what}; add it, or leave the wire script out")


def _at_coordinators(experiment: Setup) -> Iterator[tuple[str, str]]:
    """Yield the faults at coordinators that scripts may wait for, each with the group."""
    for fault in experiment.faults:
        if fault.fault == "coordinator.move":
            yield fault.fault, fault.group
        elif fault.fault == "broker.kill" and isinstance(fault.target, CoordinatorOf):
            yield fault.fault, fault.target.group


def _expectations(experiment: Setup) -> Iterator[Problem]:
    groups, version = experiment.group_names, number(experiment.cluster.version)
    about_clients = [i for i, one in enumerate(experiment.expect) if isinstance(one, Clients)]
    for i in about_clients[1:]:
        first = f"expect.{about_clients[0]}"
        yield Problem(("expect", i, "clients"), f"stands in {first} already; remove one of them")
    for i, expected in enumerate(experiment.expect):
        if isinstance(expected, Clients):
            continue
        yield from unknown("group", expected.group, groups, ("expect", i, "group"))
        match expected:
            case Expectation(rebalances=wanted):
                path: Path = ("expect", i, "rebalances")
            case Movement(moved=wanted):
                path = ("expect", i, "moved")
            case Ownership(unowned=wanted):
                path = ("expect", i, "unowned")
                if version < FIRST_JSON_REQUEST_LOG:
                    yield Problem(path, "brokers log assignments from Kafka 2.8.0 on; choose that")
        least, most = wanted.min, wanted.max
        if most is not None and least > most:
            yield Problem(path, f"no number is from {least} to {most}; swap min and max")
        if least == 0 and most is None:
            yield Problem(path, "any number would pass; give min, max or both")


def _repeated(names: Sequence[str], path: Path) -> Iterator[Problem]:
    for i, name in enumerate(names):
        if name in names[:i]:
            yield Problem((*path, i, "name"), f"{shown(name)} is taken; choose another name")
