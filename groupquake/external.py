"""Before a run on an external cluster: what the cluster is, and the experiment as it runs on it.

Nothing is written to the cluster here.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from click import UsageError
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import KafkaError
from pydantic import ValidationError

from chaos.clusters.factory import Place
from chaos.errors import ChaosError
from chaos.external.cluster import Target, command_of
from chaos.plan import make_plan
from groupquake.access import connected, require_rights
from groupquake.own_builds import Resolved
from kafka_protocol.offsets_topic import OFFSETS_TOPIC
from kafka_protocol.releases import number
from reference_coordinator.classic.profiles import Profile, Settings
from reference_coordinator.classic.releases import RELEASE_LINES, profile_for
from scenarios import Experiment
from scenarios.client_properties import read_checked
from scenarios.external import Logs, Verb
from scenarios.faults import NETWORKS, Fault
from scenarios.problems import found_in
from scenarios.releases import SUPPORTED_LINES, Coordinator, default_coordinator, line_of
from scenarios.renaming import prefixed

PROTOCOLS = "group.coordinator.rebalance.protocols"
SETTINGS = (*Settings.NAMES, PROTOCOLS)
"""The broker properties that the verdict depends on."""
_VERBS: dict[str, tuple[Verb, Verb]] = {
    "killed": ("kill", "start"),
    "stopped": ("stop", "start"),
    "paused": ("pause", "resume"),
}
"""The hooks of a fault, by what happens to the broker."""
Line = tuple[int, int]
METADATA_LEVELS: dict[Line, int] = {(4, 3): 30, (4, 4): 33}
"""The highest `metadata.version` that brokers of a line take (KIP-778), from the newest line on
that their APIs tell to the newest that is known. Source: MetadataVersion.java, LATEST_PRODUCTION of
4.3.0 and 4.4.0."""
MOST_PATCHES = 99


@dataclass(frozen=True, slots=True)
class Offered:
    """The lines that the brokers may be of, from `first` to `last`.

    `beyond` is set where they may be newer than any line that is known.
    """

    first: Line
    last: Line
    beyond: bool = False

    @classmethod
    def by(cls, apis: Line, metadata_level: int | None) -> "Offered":
        """Tell it from the line that the APIs show, and the highest `metadata.version`, if known.

        kafka-python takes brokers of every later line for those of the newest that it knows.
        """
        shown = min(METADATA_LEVELS)
        if apis < shown:
            return cls(apis, apis)
        if metadata_level is None:
            return cls(apis, max(METADATA_LEVELS), beyond=True)
        lines = [line for line, most in METADATA_LEVELS.items() if metadata_level <= most]
        line = max(apis, min(lines)) if lines else max(METADATA_LEVELS)
        return cls(line, line, beyond=not lines)

    @property
    def version(self) -> str:
        """The first release that it may be."""
        return "{}.{}.0".format(*self.first)

    @property
    def words(self) -> str:
        """The releases that it may be, for people."""
        if self.beyond or self.first != self.last:
            return f"{self.version} or a later release"
        return f"{self.version} or a later patch"

    def rules(self) -> set[Profile | None]:
        """Return the rules of every release that it may be."""
        kind = default_coordinator(self.version)
        return {
            profile_for(f"{line}.{patch}", kind)
            for line in RELEASE_LINES[kind]
            if self.first <= number(line)[:2] <= self.last
            for patch in (0, MOST_PATCHES)
        }

    @property
    def is_certain(self) -> bool:
        """Whether all of them follow the same rules."""
        return not self.beyond and len(self.rules()) == 1


def offered(client: KafkaAdminClient, brokers: Iterable[int]) -> Offered:
    """Ask the brokers; the oldest counts. Raises KafkaError if one does not answer."""
    apis = min(client.get_broker_version_data(node).broker_version[:2] for node in brokers)
    return Offered.by(apis, metadata_level(client) if apis >= min(METADATA_LEVELS) else None)


def metadata_level(client: KafkaAdminClient) -> int | None:
    """Return the highest `metadata.version` that a broker takes; None if it tells none."""
    try:
        supported = client.describe_features().get("metadata.version", {}).get("supported")
    except KafkaError:
        return None
    return None if supported is None else int(supported[1])


Assumptions = list[tuple[str, bool]]
"""What is not certain, in words, and whether the brokers' answers may depend on it."""


def resolve(
    experiment: Experiment,
    place: Place,
    kafka: str | None,
    coordinator: str | None,
    allow_faults: str | None,
    progress: Callable[[str], None],
) -> Resolved:
    """Ask the cluster of an experiment what it is; None is the default of an option.

    `allow_faults` is the id of the cluster that may be broken. Raises UsageError if the experiment
    cannot run there, NotAuthorizedError if the cluster does not let the user in, or do what the run
    does, ChaosError if it does not answer, and PropertiesError for a bad client properties file.
    """
    cluster = experiment.cluster
    assert cluster.bootstrap is not None, "the place was checked"
    if experiment.workload.wire_scripts:
        raise UsageError(
            f"{experiment.name} has wire scripts, which need brokers of groupquake's own;"
            " choose another experiment, or leave out --cluster external"
        )
    file = Path(cluster.client_properties).resolve() if cluster.client_properties else None
    properties = read_checked(file)
    assumptions: Assumptions = []
    with connected(cluster.bootstrap, properties) as client:
        found = Found.of(client)
        progress(
            f"cluster {found.cluster_id}: {len(found.brokers)} brokers, which offer what Kafka"
            f" {found.offers.version} does"
        )
        version = _release(kafka, found.offers, assumptions)
        target = Target(
            found.cluster_id,
            cluster.bootstrap,
            {node: (host, port) for node, host, port in found.brokers},
            cluster.logs if isinstance(cluster.logs, Logs) else None,
            cluster.hooks or {},
            file,
            properties,
        )
        kind = coordinator or _coordinator(version, found.settings, assumptions)
        if found.refused:
            what = (
                f"the brokers do not tell their settings ({found.refused}); those of the experiment"
                " and Kafka's defaults are assumed"
            )
            assumptions.append((what, True))
        prefix = cluster.prefix or f"groupquake-{secrets.token_hex(3)}-"
        try:
            on_it = prefixed(as_found(experiment, found, version, kind, progress), prefix)
        except ValidationError as error:
            problems = "; ".join(map(str, found_in(error, type(experiment))))
            raise UsageError(
                f"{experiment.name} does not fit cluster {found.cluster_id}: {problems}"
            ) from error
        require_hooks(on_it, target, allow_faults)
        require_rights(client, on_it, cluster.bootstrap, properties)
    environment = {
        **({"evidence": "wire"} if cluster.logs in (None, "tap") else {}),
        "cluster_id": found.cluster_id,
        "broker_ids": sorted(target.brokers),
        "unsure": [what for what, _ in assumptions],
        "assumed": any(matters for _, matters in assumptions),
    }
    return Resolved(on_it, replace(place, external=target), environment)


@dataclass(frozen=True, slots=True)
class Found:
    """What a cluster says of itself; `offers` is which release its brokers tell."""

    cluster_id: str
    brokers: Sequence[tuple[int, str, int]]
    offers: Offered
    settings: dict[str, str]
    refused: str | None

    @classmethod
    def of(cls, client: KafkaAdminClient) -> "Found":
        """Ask."""
        cluster = client.describe_cluster()
        brokers = [(one["broker_id"], one["host"], one["port"]) for one in cluster["brokers"]]
        offers = offered(client, (node for node, *_ in brokers))
        try:
            settings = settings_of(client, brokers[0][0])
            refused = None if settings else "DESCRIBE_CONFIGS of the cluster is not allowed"
        except (KafkaError, ChaosError) as error:
            settings, refused = {}, type(error).__name__
        return cls(cluster["cluster_id"], brokers, offers, settings, refused)


def settings_of(client: KafkaAdminClient, broker: int) -> dict[str, str]:
    """Return the settings of a broker that matter. Raises ChaosError or KafkaError if refused."""
    resource = ConfigResource(ConfigResourceType.BROKER, str(broker), dict.fromkeys(SETTINGS))
    answer = client.describe_configs([resource], config_filter="all")
    found: dict[str, dict[str, Any]] = next(iter(answer.values()))[str(broker)]
    return {name: str(entry["value"]) for name, entry in found.items() if name in SETTINGS}


def _release(given: str | None, offers: Offered, assumptions: Assumptions) -> str:
    """Return the release that the brokers are judged as."""
    if given is not None:
        line_of(given)
        return given
    if offers.first < min(line.first for line in SUPPORTED_LINES):
        raise UsageError(
            f"the brokers offer what Kafka {offers.version} does, which is too old; if that is"
            " wrong, give --kafka"
        )
    what = f"the brokers' release is taken from what they offer: {offers.words}; --kafka tells it"
    assumptions.append((what, not offers.is_certain))
    return offers.version


def coordinator_of(version: str, settings: Mapping[str, str]) -> Coordinator | None:
    """Return which group coordinator runs; None where the brokers do not tell."""
    try:
        kinds = line_of(version).coordinators
    except ValueError:
        return None
    if len(kinds) == 1:
        return kinds[0]
    return "java" if "consumer" in settings.get(PROTOCOLS, "") else None


def _coordinator(version: str, settings: dict[str, str], assumptions: Assumptions) -> str:
    """Return which coordinator runs, or is assumed to."""
    if (found := coordinator_of(version, settings)) is not None:
        return found
    kind = default_coordinator(version)
    what = (
        f"brokers of {version} do not tell which group coordinator they run; {kind}, the default,"
        " is assumed; --coordinator tells it"
    )
    assumptions.append((what, True))
    return kind


def as_found(
    experiment: Experiment,
    found: Found,
    version: str,
    coordinator: str,
    progress: Callable[[str], None],
) -> Experiment:
    """Return the experiment with what the cluster is, in place of what its file asks for.

    Raises pydantic's ValidationError if it cannot run there, as with a broker that is not there.
    """
    document = experiment.model_dump(mode="json", by_alias=True, exclude_none=True)
    given = {} if found.refused else experiment.cluster.config
    for name, value in given.items():
        if found.settings.get(name, "").lower() != str(value).lower():
            there = found.settings.get(name, "not known")
            progress(f"{name} is {there} on this cluster, not {value} as in the experiment")
    count = len(found.brokers)
    for topic in document["workload"]["topics"]:
        if topic["replication_factor"] > count:
            progress(f"topic {topic['name']} gets {count} replicas: there are {count} brokers")
            topic["replication_factor"] = count
    document["cluster"] |= {
        "brokers": count,
        "broker_ids": [node for node, *_ in found.brokers],
        "version": version,
        "coordinator": coordinator,
        "config": _config(experiment, found),
    }
    return type(experiment).model_validate(document)


def _config(experiment: Experiment, found: Found) -> dict[str, str | int | bool]:
    """Return the settings that the verdict depends on; the experiment's if they are not known."""
    if found.refused:
        given = experiment.cluster.config
        return {name: value for name, value in given.items() if name in Settings.NAMES}
    return {
        name: int(value) if re.fullmatch("[0-9]+", value) else value
        for name, value in found.settings.items()
        if name in Settings.NAMES
    }


def require_hooks(experiment: Experiment, target: Target, allowed: str | None) -> None:
    """Raise UsageError unless the user allows each fault of brokers, and has hooks for it.

    No hook makes a fault possible that needs a disk of groupquake's own, or that changes a topic
    which belongs to other groups, too.
    """
    for fault in experiment.faults:
        _require_possible(fault)
    faults = [fault for fault in experiment.faults if fault.hits == "broker"]
    if not faults:
        return
    if allowed != target.cluster_id:
        given = "" if allowed is None else f", not to {allowed}"
        raise UsageError(
            f"{experiment.name} breaks brokers; to allow that on this cluster, give"
            f" --allow-faults {target.cluster_id}{given}"
        )
    for step in make_plan(experiment, seed=0).steps:
        process = step.what.process
        for verb in _VERBS[process] if process else ():
            for node in target.brokers:
                if command_of(target.hooks, node, verb) is None:
                    raise UsageError(
                        f"{step.cause or step.fault} needs a hook {verb} for broker {node}; add"
                        f" cluster.hooks.{node}.{verb} to the experiment, or any.{verb}"
                    )


_BETWEEN = (
    "breaks the network between brokers, and that of this cluster is not groupquake's to break"
)
_IMPOSSIBLE: Mapping[str, str] = {
    "volume": "breaks a disk, and those of this cluster are not groupquake's to break",
    "clock": "sets a clock, and those of this cluster are not groupquake's to set",
    **dict.fromkeys(NETWORKS, _BETWEEN),
}
"""Why no cluster of a user's can have a fault, by what it needs."""


def _require_possible(fault: Fault) -> None:
    """Raise UsageError for a fault that no cluster of a user's can have."""
    what = _IMPOSSIBLE.get(fault.needs or "")
    if fault.moves_leaders and fault.hits != "broker":
        what = (
            f"changes {OFFSETS_TOPIC}, which belongs to the groups of everybody on this cluster,"
            " and nothing undoes that"
        )
    if what is not None:
        raise UsageError(f"{fault.fault} {what}; leave it out, or leave out --cluster external")
