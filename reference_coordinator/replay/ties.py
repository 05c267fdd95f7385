"""Ties between protocols that no answer decides: what a return may do to a group besides.

Where a static member's return leaves several protocols with the most votes, Kafka picks by the
order of a hash map: the one the group has, or another, and then it rebalances. The return's own
answer tells, unless it is an error, because the instance returned once more before it was sent, or
of the next generation, which may have another protocol again.
"""

from dataclasses import replace

from kafka_protocol.errors import Error
from reference_coordinator.classic.rebalance import allowed_protocols
from reference_coordinator.classic.state import Group, State
from reference_coordinator.replay.evidence import ObservedRequest


def tied_protocols(group: Group, seen: ObservedRequest) -> list[str]:
    """List the protocols that a Stable group may turn to when this request is acted on."""
    body = seen.request
    if seen.api != "JOIN_GROUP" or group.state is not State.STABLE or body.get("memberId"):
        return []
    returns_for = group.static_ids.get(body.get("groupInstanceId") or "", "")
    stayed = seen.response_fields.get("generationId") == group.generation
    if returns_for not in group.members or (
        stayed and seen.response_fields.get("errorCode") == Error.NONE
    ):
        return []
    offered = tuple((p["name"], p["metadata"]) for p in body["protocols"])
    returned = replace(group.members[returns_for], protocols=offered)
    after = replace(group, members=group.members.put(returned))
    if not after.members.common_protocols:
        return []
    tied = allowed_protocols(after)
    return sorted(tied - {group.protocol}) if group.protocol in tied else []
