"""What a coordinator prints in a synthesized log: its lines, and its responses as JSON bodies."""

from dataclasses import dataclass
from typing import Any

from kafka_protocol.bodies import BODIES, of_version
from kafka_protocol.coordinator_lines import Grammar
from kafka_protocol.coordinator_lines.template import CLIENT_REASON
from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import (
    CommitResponse,
    JoinResponse,
    LeaveResponse,
    Reason,
    Response,
    SyncResponse,
)
from reference_coordinator.protocol import Observed
from reference_coordinator.replay.expected_lines import DueLine

NO_MEMBER = "null"
"""The member in the reason of a rebalance that a mutant starts though no member left."""
NOT_PROVIDED = "not provided"
"""What stands for the reason of a client that gives none (KIP-800)."""
WITHOUT_CLIENT_REASON = {
    "java": (Reason.LEAVE, Reason.SESSION_EXPIRED, Reason.PENDING_SYNC),
    "scala": (Reason.SESSION_EXPIRED, Reason.PENDING_SYNC),
}
THREADS = {
    "java": "group-coordinator-event-processor",
    "scala": "data-plane-kafka-request-handler",
}
DEBUG_LINES = ("join_incomplete", "member_loaded", "unsynced_removed")
"""Templates of lines at level DEBUG."""
OTHER_LOGGER = {"fenced": -2}
"""Templates whose lines another of their loggers writes than the first, by its place."""


@dataclass(frozen=True)
class Wording:
    """Prints the lines of one coordinator."""

    grammar: Grammar

    def line(self, broker: str, name: str, values: dict[str, Any], thread: int = 0) -> str:
        """Print a line of a template as it stands after its time, by one of the threads."""
        filled = {"client_reason": NOT_PROVIDED} | values
        filled |= {"ending": f"{CLIENT_REASON}{filled['client_reason']}"}
        loggers = self.grammar.template(name).loggers
        logger = loggers[OTHER_LOGGER.get(name, 0) if len(loggers) > 1 else 0]
        level = "DEBUG" if name in DEBUG_LINES else "INFO"
        body = self.grammar.printed(name, broker, filled)
        return f"{THREADS[self.grammar.coordinator]}-{thread} {level} {body} ({logger})"

    def about(self, due: DueLine) -> dict[str, str]:
        """Return the values of the fields of a line."""
        named = "instance" if due.line == "static_replaced" else "member"
        values = {named: due.subject, **dict(due.says)}
        if "removed" in values and self.grammar.coordinator == "scala":
            values["removed"] = f"Set({values['removed']})"
        values["client_reason"] = values.get("client_reason") or NOT_PROVIDED
        return values

    def reason(self, begun: DueLine) -> str:
        """Print why a group rebalances."""
        says = dict(begun.says)
        reason, batch = Reason(says["reason"]), self.grammar.coordinator == "java"
        member = says["member"] or NO_MEMBER
        if batch and "members_sent" in says:
            member = says["members_sent"]
        instance = says.get("instance") or None
        values = {
            "member": member,
            "state": says["state"],
            "instance": self.option(instance) if reason is Reason.NEW_MEMBER else instance,
            "rest": Error.NOT_COORDINATOR.name,  # why a write failed, which no rule is about
        }
        text = self.grammar.reason(reason).printed(values)
        if reason in WITHOUT_CLIENT_REASON[self.grammar.coordinator]:
            return text
        return f"{text}{CLIENT_REASON}{says.get('client_reason') or NOT_PROVIDED}"

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
