"""The configuration of every client of a run: plain data, from an experiment or from options."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import scenarios
from loadtest.errors import LoadtestError
from loadtest.timing import CLOSE_ALL_S, CLOSES_A_S, SPAWN_RATE, WIRE_SPAWN_S
from scenarios.clients import Command, kind_of
from scenarios.setup import DUPLICATE

Kind = Literal["static", "dynamic"]
ClientKind = Literal["static", "dynamic", "producer"]

PORTABLE = ("librdkafka", "librdkafka-process", "wire")
"""The clients that need nothing but groupquake itself; all others are programs."""


@dataclass(frozen=True, slots=True)
class MemberConfig:
    """One group member. A static one has an `instance_id` (its group.instance.id, KIP-345)."""

    name: str
    group: str
    kind: Kind
    instance_id: str | None
    topics: tuple[str, ...]
    assignor: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    commit_interval_ms: int
    metadata_max_age_ms: int = 300_000
    client: str = "librdkafka"
    """`librdkafka`, `librdkafka-process`, `wire`, an adapter of `clients/`, or `command`."""
    command: tuple[str, ...] = ()
    """The command line of a `command`, with its fields not replaced yet."""

    def with_instance_id(self, instance_id: str | None) -> "MemberConfig":
        """Return this member as a static one with this instance id, or as a dynamic one if None."""
        kind: Kind = "dynamic" if instance_id is None else "static"
        return replace(self, kind=kind, instance_id=instance_id)

    @property
    def duplicate_name(self) -> str:
        """The name of its duplicate."""
        return self.name + DUPLICATE

    def as_duplicate(self) -> "MemberConfig":
        """Return a second member with the identity of this one, in a process of its own.

        A duplicate of `wire` shares the process. Raises LoadtestError if this one is dynamic.
        """
        if self.instance_id is None:
            raise LoadtestError(
                f"{self.name!r} is a dynamic member and has no group.instance.id that another"
                " process could claim; name a static one"
            )
        client = "librdkafka-process" if self.client == "librdkafka" else self.client
        return replace(self, name=self.duplicate_name, client=client)


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """One producer that writes `rate` records a second to `topic`."""

    name: str
    topic: str
    rate: float
    kind: ClassVar[ClientKind] = "producer"


ClientConfig = MemberConfig | ProducerConfig


@dataclass(frozen=True, slots=True)
class ClientConfigs:
    """All members and producers of a run; names are unique."""

    members: tuple[MemberConfig, ...]
    producers: tuple[ProducerConfig, ...]

    def __len__(self) -> int:
        return len(self.members) + len(self.producers)

    def by_name(self) -> dict[str, ClientConfig]:
        """Return all clients by their names."""
        every: tuple[ClientConfig, ...] = (*self.members, *self.producers)
        return {one.name: one for one in every}

    def of_kind(self, kind: Kind) -> tuple[MemberConfig, ...]:
        """Return the members of one kind, in their order here."""
        return tuple(member for member in self.members if member.kind == kind)

    def programs(self) -> tuple[str, ...]:
        """Return the members that are programs; they run where the folder of the run is."""
        return tuple(member.name for member in self.members if member.client not in PORTABLE)


NO_CLIENTS = ClientConfigs((), ())


def configs_of(name: str) -> ClientConfigs:
    """Return the clients of an experiment, given as a file or a library name.

    Raises LoadtestError if it cannot be loaded.
    """
    try:
        return configs_in(scenarios.find(name))
    except scenarios.ScenarioError as error:
        raise LoadtestError("; ".join(error.args)) from error


def configs_in(experiment: scenarios.Experiment) -> ClientConfigs:
    """Return the clients of an experiment."""
    groups = {group.name: group for group in experiment.workload.groups}
    members = [
        MemberConfig(
            name=member.name,
            group=member.group,
            kind=member.kind,
            instance_id=member.instance_id,
            topics=tuple(group.topics),
            assignor=group.assignor,
            session_timeout_ms=group.session_timeout_ms,
            heartbeat_interval_ms=group.heartbeat_interval_ms,
            max_poll_interval_ms=group.max_poll_interval_ms,
            commit_interval_ms=group.commit_interval_ms,
            metadata_max_age_ms=group.metadata_max_age_ms,
            client=kind_of(member.client),
            command=member.client.command if isinstance(member.client, Command) else (),
        )
        for member in experiment.members()
        for group in (groups[member.group],)
    ]
    producers = [
        ProducerConfig(f"producer-{number}", producer.topic, producer.rate)
        for number, producer in enumerate(experiment.workload.producers)
    ]
    return ClientConfigs(tuple(members), tuple(producers))


def spawn_rate(clients: Iterable[str]) -> int:
    """Return how many members a second Locust starts, given the client of each."""
    wire = sum(client == "wire" for client in clients)
    return max(SPAWN_RATE, wire // WIRE_SPAWN_S)


def closing_s(members: int) -> float:
    """Return how long a load may take to close so many members, in seconds."""
    return CLOSE_ALL_S + members / CLOSES_A_S
