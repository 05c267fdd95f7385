"""What a coordinator prints in a synthesized log: its lines, and its responses as JSON bodies."""

from dataclasses import dataclass
from typing import Any

from kafka_protocol.bodies import BODIES, of_version
from kafka_protocol.coordinator_lines import Grammar
from reference_coordinator.classic.effects import (
    CommitResponse,
    JoinResponse,
    LeaveResponse,
    Reason,
    Response,
    SyncResponse,
)
from reference_coordinator.protocol import Observed

NO_REASON = "; client reason: not provided"
"""What follows a reason that a request gave rise to, if its client gives none (KIP-800)."""
WITHOUT_CLIENT_REASON = {
    "java": (Reason.LEAVE, Reason.SESSION_EXPIRED, Reason.PENDING_SYNC),
    "scala": (Reason.SESSION_EXPIRED, Reason.PENDING_SYNC),
}
THREADS = {
    "java": "group-coordinator-event-processor",
    "scala": "data-plane-kafka-request-handler",
}
DEBUG_LINES = ("join_incomplete", "member_loaded")
"""Templates of lines at level DEBUG."""
OTHER_LOGGER = {"fenced": -2}
"""Templates whose lines another of their loggers writes than the first, by its place."""


@dataclass(frozen=True)
class Wording:
    """Prints the lines of one coordinator."""

    grammar: Grammar

    def line(self, broker: str, name: str, values: dict[str, Any], thread: int = 0) -> str:
        """Print a line of a template as it stands after its time, by one of the threads."""
        filled = {"client_reason": "not provided", "ending": NO_REASON} | values
        loggers = self.grammar.template(name).loggers
        logger = loggers[OTHER_LOGGER.get(name, 0) if len(loggers) > 1 else 0]
        level = "DEBUG" if name in DEBUG_LINES else "INFO"
        body = self.grammar.printed(name, broker, filled)
        return f"{THREADS[self.grammar.coordinator]}-{thread} {level} {body} ({logger})"

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


def body(response: Response, seen: Observed) -> dict[str, Any]:
    """Print a response as the request log does: the fields of the request's version."""
    values = {"throttleTimeMs": 0, **_values(response, seen)}
    return of_version(BODIES[seen.api].response, values, seen.api_version)


def _values(response: Response, seen: Observed) -> dict[str, Any]:
    error = int(response.error)
    match response:
        case JoinResponse():
            return {
                "errorCode": error,
                "generationId": response.generation,
                "protocolType": response.protocol_type,
                "protocolName": response.protocol or "",
                "leader": response.leader,
                "skipAssignment": response.skip_assignment,
                "memberId": response.member_id,
                "members": [
                    {"memberId": member, "groupInstanceId": instance, "metadata": metadata}
                    for member, instance, metadata in sorted(
                        response.members, key=lambda listed: listed[0]
                    )
                ],
            }
        case SyncResponse():
            return {
                "errorCode": error,
                "protocolType": response.protocol_type,
                "protocolName": response.protocol,
                "assignment": response.assignment,
            }
        case LeaveResponse():
            members = [
                {"memberId": member, "groupInstanceId": instance, "errorCode": int(result)}
                for member, instance, result in response.members
            ]
            return {"errorCode": error, "members": members}
        case CommitResponse():
            return {"topics": [_topic(topic, error) for topic in seen.request["topics"]]}
        case _:
            return {"errorCode": error}


def _topic(topic: dict[str, Any], error: int) -> dict[str, Any]:
    partitions = [
        {"partitionIndex": part["partitionIndex"], "errorCode": error}
        for part in topic["partitions"]
    ]
    return {**topic, "partitions": partitions}
