"""What one release's coordinator does, as data: rules that changed, and the settings it runs with.

The logic never asks for a version: it asks for a rule by name. Each field says where it changed.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from reference_coordinator.errors import Error

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a new member may wait in JoinGroup (a constant in every release since 2.2)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Broker settings that the protocol depends on; times in ms, defaults as in Kafka's code."""

    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2_147_483_647

    _NAMES: ClassVar[dict[str, str]] = {
        "group.initial.rebalance.delay.ms": "initial_rebalance_delay_ms",
        "group.min.session.timeout.ms": "min_session_timeout_ms",
        "group.max.session.timeout.ms": "max_session_timeout_ms",
        "group.max.size": "max_size",
    }

    @classmethod
    def from_properties(cls, properties: dict[str, str | int | bool]) -> Self:
        """Read the settings out of broker properties; other properties are ignored."""
        known = {
            field: int(properties[name]) for name, field in cls._NAMES.items() if name in properties
        }
        return cls(**known)


@dataclass(frozen=True, slots=True)
class Profile:
    """The named rules of one coordinator, and the settings it runs with."""

    name: str
    settings: Settings = Settings()

    sync_while_loading: Error = Error.COORDINATOR_LOAD_IN_PROGRESS
    """Java, all releases; the Scala coordinator answers REBALANCE_IN_PROGRESS on purpose."""

    commit_to_unknown_group_v9: Error = Error.GROUP_ID_NOT_FOUND
    """OffsetCommit v9+ to a group that does not exist. Java, all releases; Scala
    ILLEGAL_GENERATION."""

    expiry_ends_initial_delay: bool = True
    """A member or pending member that expires during the initial delay lets the join phase end at
    once if all others have joined. Java, all releases; in Scala the delay always runs out."""

    stores_new_group: bool = True
    """The first join of a new group writes an empty record, generation 0. Java, all releases;
    Scala writes nothing."""

    def with_settings(self, settings: Settings) -> "Profile":
        """Return this profile under other broker settings."""
        return replace(self, settings=settings)


def kafka_4_3() -> Profile:
    """Kafka 4.3: the Java coordinator, alone since 4.1 (KAFKA-18329)."""
    return Profile(name="4.3")


PROFILES = {"4.3": kafka_4_3}


def profile_for(version: str) -> Profile | None:
    """Find the profile of a release such as `4.3.0`; None where the oracle has none."""
    line = ".".join(version.split(".")[:2])
    constructor = PROFILES.get(line)
    return constructor() if constructor else None
