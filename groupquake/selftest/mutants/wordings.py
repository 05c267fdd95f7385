"""What a coordinator prints in a synthesized log: its lines, and its responses as JSON bodies."""

from dataclasses import dataclass
from typing import Any

from kafka_protocol.coordinator_lines import Grammar
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

NO_REASON = "; client reason: not provided"
"""What follows a reason that a request gave rise to, if its client gives none (KIP-800)."""
WITHOUT_CLIENT_REASON = {
    "java": (Reason.LEAVE, Reason.SESSION_EXPIRED, Reason.PENDING_SYNC),
    "scala": (Reason.SESSION_EXPIRED, Reason.PENDING_SYNC),
}
THREADS = {
    "java": "group-coordinator-event-processor-0",
    "scala": "data-plane-kafka-request-handler-0",
}


@dataclass(frozen=True)
class Wording:
    """Prints the lines of one coordinator."""

    grammar: Grammar

    def line(self, broker: str, name: str, values: dict[str, Any]) -> str:
        """Print a line of a template as it stands after its time."""
        filled = {"client_reason": "not provided", "ending": NO_REASON} | values
        logger = self.grammar.template(name).loggers[0]
        thread = THREADS[self.grammar.coordinator]
        return f"{thread} INFO {self.grammar.printed(name, broker, filled)} ({logger})"

    def about(self, member_id: str, instance: str | None) -> dict[str, str]:
        """Return the values of fields about a member."""
        printed = self.option(instance)
        return {
            "member": member_id,
            "instance": instance or "null",
            "more": f"{printed}, clientId=, clientHost=/127.0.0.1, sessionTimeoutMs=0,"
            " rebalanceTimeoutMs=0, supportedProtocols=List()",
        }

    def reason(self, reason: Reason, member_id: str, instance: str | None) -> str:
        """Print why a group rebalances."""
        values = {"member": member_id, "state": "Stable", "instance": instance or "null"}
        if reason is Reason.NEW_MEMBER:
            values["instance"] = self.option(instance)
        text = self.grammar.reason(reason).printed(values)
        bare = reason in WITHOUT_CLIENT_REASON[self.grammar.coordinator]
        return text if bare else text + NO_REASON

    def option(self, instance: str | None) -> str:
        """Print an instance id that there may be none of."""
        if self.grammar.coordinator == "java":
            return instance or "null"
        return "None" if instance is None else f"Some({instance})"


def body(answer: Response, seen: ObservedRequest) -> dict[str, Any]:
    """Write an answer as the request log prints it: the fields of the request's version."""
    version = seen.api_version
    result: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": int(answer.error)}
    match answer:
        case JoinResponse():
            members = [
                {"memberId": member, "groupInstanceId": instance, "metadata": metadata}
                for member, instance, metadata in sorted(answer.members, key=lambda one: one[0])
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
