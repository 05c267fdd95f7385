"""Answers which show that all earlier writes of the partition are confirmed.

A Java coordinator holds every result back until the writes before it are confirmed, and completes
results in order (`CoordinatorRuntime`, `deferredEventQueue`). So a fine Heartbeat or OffsetCommit
shows that nothing that was handled before it waits any more. Answers of JoinGroup and SyncGroup
show nothing: the group completes them itself.

Records of a partition are confirmed in order. So an OffsetCommit that is fine shows that records
which were written before its own are confirmed, on either coordinator.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from kafka_protocol.errors import Error
from reference_coordinator.classic import CLASSIC, ClassicProtocol
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.replay.evidence import ObservedRequest

FINE = {
    "HEARTBEAT": (Error.NONE, Error.REBALANCE_IN_PROGRESS),
    "OFFSET_COMMIT": (Error.NONE,),
}
"""The answers that wait for earlier writes. Refusals do not wait."""


@dataclass(frozen=True, slots=True)
class Confirmations:
    """When the requests with such answers came, in order, and when each was answered; ms."""

    earliest_ms: tuple[float, ...] = ()
    answered_ms: tuple[float, ...] = ()

    @classmethod
    def of(
        cls,
        requests: Iterable[ObservedRequest],
        profile: Profile,
        protocol: ClassicProtocol = CLASSIC,
    ) -> Self:
        """Pick them among the requests of one coordinator epoch; none on a Scala coordinator."""
        if not profile.answers_wait_for_writes:
            return cls()
        return cls._of(requests, protocol)

    @classmethod
    def of_commits(
        cls, requests: Iterable[ObservedRequest], protocol: ClassicProtocol = CLASSIC
    ) -> Self:
        """Pick the commits of something among the requests of one coordinator epoch."""
        commits = (seen for seen in requests if seen.api == "OFFSET_COMMIT")
        written = (s for s in commits if any(t["partitions"] for t in s.request["topics"]))
        return cls._of(written, protocol)

    @classmethod
    def _of(cls, requests: Iterable[ObservedRequest], protocol: ClassicProtocol) -> Self:
        fine = sorted(
            (seen.earliest_ms, seen.answered_ms)
            for seen in requests
            if seen.api in FINE and seen.response
            if protocol.response_of(seen).error in FINE[seen.api]
        )
        return cls(tuple(at_ms for at_ms, _ in fine), tuple(at_ms for _, at_ms in fine))

    def within(self, from_ms: float, until_ms: float) -> bool:
        """Tell whether such a request came after a time, and was answered before another."""
        first = bisect_left(self.earliest_ms, from_ms)
        beyond = bisect_left(self.earliest_ms, until_ms)
        return any(at_ms < until_ms for at_ms in self.answered_ms[first:beyond])
