"""What was observed of the things that Kafka leaves open: offered to the oracle, never imposed."""

from collections.abc import Mapping

from reference_coordinator.classic.events import Choices
from reference_coordinator.classic.state import Group
from reference_coordinator.replay.evidence import Observed
from reference_coordinator.replay.pending_requests import Parked


def offers(
    group: Group,
    parked: Parked,
    unnamed: Mapping[str, str],
    seen: Observed | None = None,
) -> Choices:
    """Offer what the answer to `seen` tells, and those to the requests that wait.

    `unnamed` are members that nobody was told the id of.
    """
    leader = protocol = ""
    if first := parked.joined_first():
        leader = first.told.get("leader") or ""
        protocol = first.told.get("protocolName") or ""
    if unnamed and leader not in group.members:
        alike = (old for old, prefix in unnamed.items() if leader.startswith(prefix))
        leader = next((old for old in alike if old in group.members), leader)
    if seen is None:
        return Choices("", leader, protocol)
    if seen.api == "JOIN_GROUP":
        return Choices(seen.told.get("memberId") or "", leader, protocol)
    described = (seen.told.get("groups") or [{}])[0]
    told = described.get("groupState") or "", described.get("protocolType") or ""
    return Choices("", leader, protocol, told)
