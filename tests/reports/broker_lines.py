"""What a 4.3.0 coordinator prints, as format strings, and its JSON bodies."""

from typing import Any

from reference_coordinator.effects import (
    CommitAnswer,
    HeartbeatAnswer,
    JoinAnswer,
    LeaveAnswer,
    Reason,
    Response,
    SyncAnswer,
)
from reference_coordinator.replay import Observed

MANAGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"
UNTOLD = "; client reason: not provided"

SAYINGS = {
    "static_replaced": (
        "Static member with groupInstanceId={instance} and unknown member id joins group {group} "
        "in {state} state. Replacing previously mapped member {member} with this groupInstanceId."
    ),
    "static_no_rebalance": (
        "Static member which joins during Stable stage and doesn't affect the selected protocol "
        "will not trigger a rebalance."
    ),
    "static_added": (
        "Static member with groupInstanceId={instance} and unknown member id joins group {group} "
        "in {state} state. Created a new member id {member} for this member and added to the group."
    ),
    "dynamic_given_id": (
        "Dynamic member with unknown member id joins group {group} in {state} state. Created a new "
        "member id {member} and requesting the member to rejoin with this id."
    ),
    "pending_joins": (
        "Pending dynamic member with id {member} joins group {group} in {state} state. "
        "Adding to the group now."
    ),
    "left": (
        "[Group {group}] Member {member} has left group through explicit `LeaveGroup` request"
        + UNTOLD
    ),
    "session_expired": "Member {member} in group {group} has failed, removing it from the group.",
    "pending_expired": (
        "Pending member {member} in group {group} has been removed after session timeout "
        "expiration."
    ),
    "group_unloaded": "[GroupId={group}] Unloading group metadata for generation {generation}.",
    "assignment": (
        "Assignment received from leader {member} for group {group} for generation {generation}. "
        "The group has {members} members, {static_members} of which are static."
    ),
    "preparing": (
        "Preparing to rebalance group {group} in state PreparingRebalance with old generation "
        "{generation} (reason: {reason})."
    ),
    "stabilized": "Stabilized group {group} generation {generation} with {members} members.",
    "empty": "Group {group} with generation {generation} is now empty.",
}

REASONS = {
    Reason.NEW_MEMBER: "Adding new member {member} with group instance id {instance}" + UNTOLD,
    Reason.LEAVE: "explicit `LeaveGroup` request for ({member}) members.",
    Reason.SESSION_EXPIRED: "removing member {member} on heartbeat expiration.",
    Reason.LEADER_REJOIN: "Leader {member} re-joining group during Stable" + UNTOLD,
    Reason.PROTOCOL_CHANGE: (
        "Group's selectedProtocol will change because static member {member} with instance id "
        "{instance} joined with change of protocol" + UNTOLD
    ),
    Reason.STATIC_REPLACED: (
        "Updating metadata for static member {member} with instance id {instance}" + UNTOLD
    ),
    Reason.MEMBER_METADATA: "Updating metadata for member {member} during Stable" + UNTOLD,
    Reason.PENDING_SYNC: "Removing [{member}] on pending sync request expiration",
}


def body(answer: Response, seen: Observed) -> dict[str, Any]:
    """Write an answer as the request log prints it, for the versions that librdkafka speaks."""
    result: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": int(answer.error)}
    match answer:
        case JoinAnswer():
            members = [
                {"memberId": member, "groupInstanceId": instance, "metadata": metadata}
                for member, instance, metadata in sorted(answer.members, key=lambda told: told[0])
            ]
            return result | {
                "generationId": answer.generation,
                "protocolName": answer.protocol or "",
                "leader": answer.leader,
                "memberId": answer.member_id,
                "members": members,
            }
        case SyncAnswer():
            return result | {"assignment": answer.assignment}
        case HeartbeatAnswer() | LeaveAnswer():
            return result
        case CommitAnswer():
            return {
                "throttleTimeMs": 0,
                "topics": [_topic(t, answer) for t in seen.request["topics"]],
            }


def _topic(topic: dict[str, Any], answer: CommitAnswer) -> dict[str, Any]:
    partitions = [
        {"partitionIndex": part["partitionIndex"], "errorCode": int(answer.error)}
        for part in topic["partitions"]
    ]
    return {"name": topic["name"], "partitions": partitions}
