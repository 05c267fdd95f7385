"""By which rules a scene runs: a profile, the timeouts and versions of all processes."""

import re
from dataclasses import dataclass
from typing import NamedTuple

from kafka_protocol.releases import Release, number
from kafka_protocol.versions import (
    FIRST_JOIN_WITH_PROTOCOL_TYPE,
    FIRST_JOIN_WITH_SKIP_ASSIGNMENT,
    FIRST_SYNC_WITH_PROTOCOL,
)
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.step import Step, step

FIRST_WITH_JOIN_7: Release = (2, 5, 0)
"""The first release with JoinGroup v7 and SyncGroup v5 (KIP-559)."""
FIRST_WITH_JOIN_9: Release = (3, 2, 0)
"""The first release with JoinGroup v8 (KIP-800) and v9 (KIP-814)."""
NEWEST_JOIN = FIRST_JOIN_WITH_SKIP_ASSIGNMENT
NEWEST: Release = (99, 0, 0)


class Timeouts(NamedTuple):
    """The timeouts of all processes, in ms."""

    session_ms: int
    rebalance_ms: int


@dataclass(frozen=True)
class Rules:
    """By which rules the scene runs; `step` is that of the oracle, or of a mutant of it."""

    profile: Profile
    timeouts: Timeouts
    step: Step = step

    @property
    def join_version(self) -> int:
        """The newest version of JoinGroup that the release knows."""
        release = self._release
        if release < FIRST_WITH_JOIN_7:
            return FIRST_JOIN_WITH_PROTOCOL_TYPE - 1
        return FIRST_JOIN_WITH_PROTOCOL_TYPE if release < FIRST_WITH_JOIN_9 else NEWEST_JOIN

    @property
    def sync_version(self) -> int:
        """The newest version of SyncGroup that the release knows."""
        return FIRST_SYNC_WITH_PROTOCOL - (self._release < FIRST_WITH_JOIN_7)

    @property
    def _release(self) -> Release:
        found = re.match(r"\d+\.\d+", self.profile.name.removeprefix("kip-345-"))
        return NEWEST if found is None else number(found[0])
