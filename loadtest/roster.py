"""Who takes part: plain data, wherever it came from."""

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

    def under(self, instance_id: str | None) -> "MemberConfig":
        """Return the same member, static under this instance id, or dynamic if it is None."""
        kind: Kind = "dynamic" if instance_id is None else "static"
        return replace(self, kind=kind, instance_id=instance_id)


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """One producer that writes `rate` records a second to `topic`."""

    name: str
    topic: str
    rate: float


@dataclass(frozen=True, slots=True)
class Roster:
    """Everybody who takes part in a run; names are unique."""

    members: tuple[MemberConfig, ...]
    producers: tuple[ProducerConfig, ...]

    def __len__(self) -> int:
        return len(self.members) + len(self.producers)

    def of_kind(self, kind: Kind) -> tuple[MemberConfig, ...]:
        """Return the members of one kind, in the roster's order."""
        return tuple(member for member in self.members if member.kind == kind)

    def on_worker(self, index: int) -> "Roster":
        """Return the same roster with identities that no other Locust worker uses.

        `index` is Locust's worker index. Which of them a worker gets to run is the master's choice,
        so every worker holds a whole roster under names of its own.
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
        return Roster(tuple(members), tuple(producers))
