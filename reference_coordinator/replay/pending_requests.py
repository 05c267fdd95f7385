"""Requests that wait for their answers, by id, and the choices that these answers show.

In a join phase they may be hundreds, so what is needed before every event is kept up to date.
Choices are offered to the oracle, which takes one only where the protocol allows it.
"""

from kafka_protocol.errors import Error
from reference_coordinator.classic.events import NO_CHOICES, Choices
from reference_coordinator.classic.state import Group
from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.replay.member_ids import UnnamedMembers

WITHOUT_CHOICES = frozenset({"HEARTBEAT", "OFFSET_COMMIT", "DELETE_GROUPS"})
"""Requests whose events have no choices; nor has a SyncGroup, unless it shows who leads."""


class PendingRequests(dict[str, ObservedRequest]):
    """A map to be changed by `add` and `remove` alone.

    `busy` are the connections that wait for an answer that came.
    """

    __slots__ = ("_first", "_first_answer_ms", "_first_is_known", "busy")

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.busy: set[str] = set()
        self._first: ObservedRequest | None = None
        self._first_is_known = True
        self._first_answer_ms = float("inf")

    def fork(self) -> "PendingRequests":
        """Copy it."""
        forked = PendingRequests()
        if self:
            forked.update(self)
            forked.busy = self.busy.copy()
            forked._first = self._first
            forked._first_is_known = self._first_is_known
            forked._first_answer_ms = self._first_answer_ms
        return forked

    def add(self, seen: ObservedRequest) -> None:
        """Let a request wait."""
        self[seen.id] = seen
        if seen.response:
            self.busy.add(seen.connection)
        self._first_answer_ms = min(self._first_answer_ms, seen.answered_ms)
        sooner = self._first is None or seen.answered_ms < self._first.answered_ms
        if self._first_is_known and sooner and joined(seen):
            self._first = seen

    def remove(self, request: str) -> ObservedRequest | None:
        """Return a request that waits no longer; None if it did not."""
        seen = self.pop(request, None)
        if seen is not None:
            self.busy.discard(seen.connection)
            self._first_is_known &= seen is not self._first
        return seen

    def joined_first(self) -> ObservedRequest | None:
        """Return the JoinGroup whose answer was the first to say that a join phase has ended."""
        if not self._first_is_known:
            waiting = filter(joined, self.values())
            self._first = min(waiting, key=lambda seen: seen.answered_ms, default=None)
            self._first_is_known = True
        return self._first

    def answered_before(self, limit_ms: float, connection: str | None) -> list[ObservedRequest]:
        """Return those that were answered before a time, or are of a connection that goes on."""
        if self._first_answer_ms >= limit_ms and connection not in self.busy:
            return []
        self._first_answer_ms = min(
            (seen.answered_ms for seen in self.values()), default=float("inf")
        )
        return [
            seen
            for seen in self.values()
            if seen.answered_ms < limit_ms or (seen.connection == connection and seen.response)
        ]


def joined(seen: ObservedRequest) -> bool:
    """Tell a JoinGroup that was answered when the join phase ended."""
    return seen.api == "JOIN_GROUP" and seen.response_fields.get("errorCode") == Error.NONE


def choices_of(
    group: Group,
    pending_requests: PendingRequests,
    unnamed: UnnamedMembers,
    candidate: Candidate,
) -> Choices:
    """Return the choices that responses show: to the candidate, if a request, and pending ones.

    What the candidate itself is about (`other_protocols`, `other_leaders`) goes first.
    """
    seen = candidate.cause if isinstance(candidate.cause, ObservedRequest) else None
    if seen is not None and (
        seen.api in WITHOUT_CHOICES or (seen.api == "SYNC_GROUP" and group.leader is not None)
    ):
        return NO_CHOICES
    leader = protocol = ""
    if first := pending_requests.joined_first():
        leader = first.response_fields.get("leader") or ""
        protocol = first.response_fields.get("protocolName") or ""
    leader = unnamed.leader_in(group, leader)
    leader, protocol = candidate.leader or leader, candidate.protocol or protocol
    if seen is None:
        return Choices("", leader, protocol)
    if seen.api == "JOIN_GROUP":
        return Choices(seen.response_fields.get("memberId") or "", leader, protocol)
    described = (seen.response_fields.get("groups") or [{}])[0]
    as_described = described.get("groupState") or "", described.get("protocolType") or ""
    return Choices("", leader, protocol, as_described)
