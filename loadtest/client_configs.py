"""The configuration of every client of a run: plain data, from an experiment or from options."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from loadtest.errors import LoadtestError

Kind = Literal["static", "dynamic"]
SPAWN_RATE = 20
"""Members a second that Locust starts, while their clients are librdkafka's."""
SPAWN_WITHIN_S = 20
"""How long Locust takes to start all members with the client `wire`."""


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

    def as_duplicate(self) -> "MemberConfig":
        """Return a second member with the identity of this one.

        Raises LoadtestError if this one is dynamic.
        """
        if self.instance_id is None:
            raise LoadtestError(
                f"{self.name!r} is a dynamic member and has no group.instance.id that another"
                " process could claim; name a static one"
            )
        return replace(self, name=f"{self.name}.duplicate")


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """One producer that writes `rate` records a second to `topic`."""

    name: str
    topic: str
    rate: float


@dataclass(frozen=True, slots=True)
class ClientConfigs:
    """All members and producers of a run; names are unique."""

    members: tuple[MemberConfig, ...]
    producers: tuple[ProducerConfig, ...]

    def __len__(self) -> int:
        return len(self.members) + len(self.producers)

    def of_kind(self, kind: Kind) -> tuple[MemberConfig, ...]:
        """Return the members of one kind, in their order here."""
        return tuple(member for member in self.members if member.kind == kind)

    def on_worker(self, index: int) -> "ClientConfigs":
        """Return the same clients with identities that no other Locust worker uses.

        `index` is Locust's worker index. The master decides which of them a worker runs,
        so every worker holds all of them, under names of its own.
        """
        mark = f"w{index}-"
        members = [
            replace(
                member,
                name=mark + member.name,
                instance_id=mark + member.instance_id if member.instance_id else None,
            )
            for member in self.members
        ]
        producers = [replace(producer, name=mark + producer.name) for producer in self.producers]
        return ClientConfigs(tuple(members), tuple(producers))


def spawn_rate(clients: Iterable[str]) -> int:
    """Return how many members a second Locust starts, given the client of each."""
    wire = sum(client == "wire" for client in clients)
    return max(SPAWN_RATE, wire // SPAWN_WITHIN_S)
