"""What Kafka leaves open, bound from what was observed, and what else it may have done.

Choices are offered to the oracle, which takes one only where the protocol allows it. Where no
response decides a choice, other candidates are made for it. They are tried last, and only where an
answer is not explained without them:

- Where a static member's rejoin leaves several protocols with the most votes, Kafka picks by the
  order of a hash map: the group keeps its protocol, or takes another and rebalances. The rejoin's
  own response tells which, unless it is an error, because the instance rejoined once more before
  it was sent, or of the next generation, which may have another protocol again.
- Where the leader is not known, the member whose SyncGroup carries assignments may be it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from kafka_protocol.errors import Error
from reference_coordinator.classic.events import Choices
from reference_coordinator.classic.rebalance import allowed_protocols
from reference_coordinator.classic.state import Group, State
from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.replay.pending_requests import PendingRequests
from reference_coordinator.replay.unnamed_members import UnnamedMembers


@dataclass(slots=True)
class GivenIds:
    """The member ids that a group's JoinGroups without one were given, by any broker.

    An id ends in a random UUID (`GroupMetadata.generateMemberId` from 2.4 on,
    `ClassicGroup.generateMemberId`), so none is given twice: not to the same instance, and not by
    another coordinator. `repeats` are the requests that were given an earlier one's.

    A group may be given millions, so only their hashes are kept, of 64 bits.
    """

    repeats: set[str] = field(default_factory=set)
    _known: set[int] = field(default_factory=set)

    def __contains__(self, member_id: str) -> bool:
        """Tell whether a JoinGroup was given an id."""
        return hash(member_id) in self._known

    def add(self, requests: Iterable[ObservedRequest]) -> None:
        """Take more JoinGroups, in order of time."""
        for seen in requests:
            given = seen.response_fields.get("memberId")
            if not given or seen.request.get("memberId"):
                continue
            if given in self:
                self.repeats.add(seen.id)
            self._known.add(hash(given))


def choices_of(
    group: Group,
    pending_requests: PendingRequests,
    unnamed: UnnamedMembers,
    seen: ObservedRequest | None = None,
    candidate: Candidate | None = None,
) -> Choices:
    """Return the choices that the response to `seen` shows, and those to pending requests.

    What the candidate itself is about (`other_protocols`, `other_leaders`) goes first.
    """
    leader = protocol = ""
    if first := pending_requests.joined_first():
        leader = first.response_fields.get("leader") or ""
        protocol = first.response_fields.get("protocolName") or ""
    leader = unnamed.leader_in(group, leader)
    if candidate is not None:
        leader, protocol = candidate.leader or leader, candidate.protocol or protocol
    if seen is None:
        return Choices("", leader, protocol)
    if seen.api == "JOIN_GROUP":
        return Choices(seen.response_fields.get("memberId") or "", leader, protocol)
    described = (seen.response_fields.get("groups") or [{}])[0]
    as_described = described.get("groupState") or "", described.get("protocolType") or ""
    return Choices("", leader, protocol, as_described)


def other_protocols(group: Group, candidate: Candidate) -> Iterator[Candidate]:
    """Yield a rejoin once for each protocol that it may turn the group to."""
    if isinstance(candidate.cause, ObservedRequest):
        for protocol in tied_protocols(group, candidate.cause):
            yield candidate._replace(protocol=protocol)


def other_leaders(group: Group, candidate: Candidate) -> Iterator[Candidate]:
    """Yield the SyncGroup of a member that may lead; see `classic.rebalance.settle_leader`."""
    seen = candidate.cause
    if isinstance(seen, ObservedRequest) and seen.api == "SYNC_GROUP" and group.leader is None:
        member_id = seen.request.get("memberId") or ""
        if member_id in group.open_leaders:
            yield candidate._replace(leader=member_id)


def tied_protocols(group: Group, seen: ObservedRequest) -> list[str]:
    """List the protocols that a Stable group may turn to when this request is acted on."""
    body = seen.request
    if seen.api != "JOIN_GROUP" or group.state is not State.STABLE or body.get("memberId"):
        return []
    old_id = group.static_ids.get(body.get("groupInstanceId") or "", "")
    response = seen.response_fields
    stayed = response.get("generationId") == group.generation
    if old_id not in group.members or (stayed and response.get("errorCode") == Error.NONE):
        return []
    offered = tuple((p["name"], p["metadata"]) for p in body["protocols"])
    rejoined = replace(group.members[old_id], protocols=offered)
    after = replace(group, members=group.members.put(rejoined))
    if not after.members.common_protocols:
        return []
    tied = allowed_protocols(after)
    return sorted(tied - {group.protocol}) if group.protocol in tied else []
