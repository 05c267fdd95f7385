"""What was observed of the things that Kafka leaves open: offered to the oracle, never imposed."""

from collections.abc import Mapping

from reference_coordinator.classic.events import Choices
from reference_coordinator.classic.state import Group
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.replay.pending_requests import PendingRequests


def offered_choices(
    group: Group,
    pending_requests: PendingRequests,
    unnamed: Mapping[str, str],
    seen: ObservedRequest | None = None,
) -> Choices:
    """Offer what the answer to `seen` tells, and those to the requests that wait.

    `unnamed` are members that nobody was told the id of.
    """
    leader = protocol = ""
    if first := pending_requests.joined_first():
        leader = first.response_fields.get("leader") or ""
        protocol = first.response_fields.get("protocolName") or ""
    if unnamed and leader not in group.members:
        same_state = (old for old, prefix in unnamed.items() if leader.startswith(prefix))
        leader = next((old for old in same_state if old in group.members), leader)
    if seen is None:
        return Choices("", leader, protocol)
    if seen.api == "JOIN_GROUP":
        return Choices(seen.response_fields.get("memberId") or "", leader, protocol)
    described = (seen.response_fields.get("groups") or [{}])[0]
    told = described.get("groupState") or "", described.get("protocolType") or ""
    return Choices("", leader, protocol, told)
