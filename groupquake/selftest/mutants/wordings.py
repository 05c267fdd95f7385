"""What a coordinator prints, as format strings, and its answers as JSON bodies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka_protocol.versions import (
    FIRST_BATCH_LEAVE,
    FIRST_JOIN_WITH_PROTOCOL_TYPE,
    FIRST_JOIN_WITH_SKIP_ASSIGNMENT,
    FIRST_SYNC_WITH_PROTOCOL,
)
from reference_coordinator.classic.effects import (
    CommitResponse,
    HeartbeatResponse,
    JoinResponse,
    LeaveResponse,
    Reason,
    Response,
    SyncResponse,
)
from reference_coordinator.replay import ObservedRequest

UNTOLD = "; client reason: not provided"
STATIC = "Static member with groupInstanceId={instance} and unknown member id joins group {group} "
DYNAMIC = "Dynamic member with unknown member id joins group {group} in {state} state. "
LEAVE_GROUP = "through explicit `LeaveGroup`"
STATIC_REASONS = {
    Reason.PROTOCOL_CHANGE: (
        "Group's selectedProtocol will change because static member {member} with instance id "
        "{instance} joined with change of protocol" + UNTOLD
    ),
    Reason.STATIC_REPLACED: (
        "Updating metadata for static member {member} with instance id {instance}" + UNTOLD
    ),
}
COMMON_REASONS = STATIC_REASONS | {
    Reason.NEW_MEMBER: "Adding new member {member} with group instance id {option}" + UNTOLD,
    Reason.LEADER_REJOIN: "Leader {member} re-joining group during Stable" + UNTOLD,
    Reason.MEMBER_METADATA: "Updating metadata for member {member} during Stable" + UNTOLD,
}


@dataclass(frozen=True)
class Wording:
    """How one coordinator says things; `prefix` is filled with a broker and a partition."""

    prefix: str
    thread: str
    logger: str
    sayings: Mapping[str, str]
    reasons: Mapping[Reason, str]
    option: Callable[[str | None], str]

    def line(self, broker: str, what: str, words: Mapping[str, object]) -> str:
        """Write a line as it stands after its time."""
        prefix = self.prefix.format(broker=broker, **words)
        return f"{self.thread} INFO {prefix} {self.sayings[what].format(**words)} ({self.logger})"


JAVA = Wording(
    prefix="[GroupCoordinator id={broker} topic=__consumer_offsets partition={partition}]",
    thread="group-coordinator-event-processor-0",
    logger="org.apache.kafka.coordinator.group.GroupMetadataManager",
    sayings={
        "static_replaced": STATIC
        + "in {state} state. Replacing previously mapped member {member} with this "
        "groupInstanceId.",
        "static_added": STATIC
        + "in {state} state. Created a new member id {member} for this member and added to the "
        "group.",
        "dynamic_given_id": DYNAMIC
        + "Created a new member id {member} and requesting the member to rejoin with this id.",
        "dynamic_added": (
            "Dynamic member with unknown member id joins group {group} in state {state}. Created a "
            "new member id {member} and added the member to the group."
        ),
        "pending_joins": (
            "Pending dynamic member with id {member} joins group {group} in {state} state. "
            "Adding to the group now."
        ),
        "left": f"[Group {{group}}] Member {{member}} has left group {LEAVE_GROUP} request{UNTOLD}",
        "pending_left": (
            f"[Group {{group}}] Pending member {{member}} has left group {LEAVE_GROUP} request"
            + UNTOLD
        ),
        "session_expired": (
            "Member {member} in group {group} has failed, removing it from the group."
        ),
        "pending_expired": (
            "Pending member {member} in group {group} has been removed after session timeout "
            "expiration."
        ),
        "assignment": (
            "Assignment received from leader {member} for group {group} for generation "
            "{generation}. The group has {members} members, {static_members} of which are static."
        ),
        "preparing": (
            "Preparing to rebalance group {group} in state PreparingRebalance with old generation "
            "{generation} (reason: {reason})."
        ),
        "stabilized": "Stabilized group {group} generation {generation} with {members} members.",
        "empty": "Group {group} with generation {generation} is now empty.",
    },
    reasons=COMMON_REASONS
    | {
        Reason.LEAVE: "explicit `LeaveGroup` request for ({member}) members.",
        Reason.SESSION_EXPIRED: "removing member {member} on heartbeat expiration.",
        Reason.PENDING_SYNC: "Removing [{member}] on pending sync request expiration",
    },
    option=lambda instance: instance or "null",
)
"""The Java coordinator of 3.9 and 4.3."""

SCALA = Wording(
    prefix="[GroupCoordinator {broker}]:",
    thread="data-plane-kafka-request-handler-0",
    logger="kafka.coordinator.group.GroupCoordinator",
    sayings={
        **JAVA.sayings,
        "static_added": STATIC
        + "in {state} state. Created a new member id {member} for this member and add to the "
        "group.",
        "dynamic_given_id": DYNAMIC
        + "Created a new member id {member} and request the member to rejoin with this id.",
        "dynamic_added": (
            "Dynamic Member with unknown member id joins group {group} in {state} state. Created a "
            "new member id {member} for this member and add to the group."
        ),
        "left": (
            "Member MemberMetadata(memberId={member}, groupInstanceId={option}, clientId=, "
            "clientHost=/127.0.0.1, sessionTimeoutMs=0, rebalanceTimeoutMs=0, "
            f"supportedProtocols=List()) has left group {{group}} {LEAVE_GROUP}{UNTOLD}"
        ),
        "pending_left": (
            "Pending member with memberId={member} has left group {group} through explicit "
            "`LeaveGroup` request"
        ),
        "session_expired": (
            "Member {member} in group {group} has failed, removing it from the group"
        ),
        "preparing": (
            "Preparing to rebalance group {group} in state PreparingRebalance with old generation "
            "{generation} (__consumer_offsets-{partition}) (reason: {reason})"
        ),
        "stabilized": (
            "Stabilized group {group} generation {generation} (__consumer_offsets-{partition}) "
            "with {members} members"
        ),
        "empty": (
            "Group {group} with generation {generation} is now empty "
            "(__consumer_offsets-{partition})"
        ),
    },
    reasons=COMMON_REASONS
    | {
        Reason.LEAVE: "Removing member {member} on LeaveGroup" + UNTOLD,
        Reason.SESSION_EXPIRED: "removing member {member} on heartbeat expiration",
        Reason.PENDING_SYNC: "Removing Set({member}) on pending sync request expiration",
    },
    option=lambda instance: "None" if instance is None else f"Some({instance})",
)
"""The Scala coordinator of 3.9."""

WORDINGS = {"java": JAVA, "scala": SCALA}


def body(answer: Response, seen: ObservedRequest) -> dict[str, Any]:
    """Write an answer as the request log prints it: the fields of the request's version."""
    version = seen.api_version
    result: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": int(answer.error)}
    match answer:
        case JoinResponse():
            members = [
                {"memberId": member, "groupInstanceId": instance, "metadata": metadata}
                for member, instance, metadata in sorted(answer.members, key=lambda told: told[0])
            ]
            result |= {
                "generationId": answer.generation,
                "protocolName": answer.protocol or "",
                "leader": answer.leader,
                "memberId": answer.member_id,
                "members": members,
            }
            if version >= FIRST_JOIN_WITH_PROTOCOL_TYPE:
                result["protocolType"] = answer.protocol_type
            if version >= FIRST_JOIN_WITH_SKIP_ASSIGNMENT:
                result["skipAssignment"] = answer.skip_assignment
        case SyncResponse():
            result["assignment"] = answer.assignment
            if version >= FIRST_SYNC_WITH_PROTOCOL:
                result |= {"protocolType": answer.protocol_type, "protocolName": answer.protocol}
        case LeaveResponse() if version >= FIRST_BATCH_LEAVE:
            result["members"] = [
                {"memberId": member, "groupInstanceId": instance, "errorCode": int(error)}
                for member, instance, error in answer.members
            ]
        case HeartbeatResponse() | LeaveResponse():
            pass
        case CommitResponse():
            topics = [_topic(topic, answer) for topic in seen.request["topics"]]
            return {"throttleTimeMs": 0, "topics": topics}
    return result


def _topic(topic: dict[str, Any], answer: CommitResponse) -> dict[str, Any]:
    partitions = [
        {"partitionIndex": part["partitionIndex"], "errorCode": int(answer.error)}
        for part in topic["partitions"]
    ]
    return {"name": topic["name"], "partitions": partitions}
