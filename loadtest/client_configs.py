"""The configuration of every client of a run: plain data, from an experiment or from options."""

from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["static", "dynamic"]
Client = Literal["librdkafka", "java"]


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
    client: Client = "librdkafka"

    def with_instance_id(self, instance_id: str | None) -> "MemberConfig":
        """Return this member as a static one with this instance id, or as a dynamic one if None."""
        kind: Kind = "dynamic" if instance_id is None else "static"
        return replace(self, kind=kind, instance_id=instance_id)


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
