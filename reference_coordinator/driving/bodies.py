"""The bodies of responses, as brokers send and log them: what `classic.bodies` reads."""

from typing import Any

from kafka_protocol.bodies import BODIES, of_version
from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import (
    CommitResponse,
    ConfigureResponse,
    DescribeResponse,
    JoinResponse,
    LeaveResponse,
    Response,
    SyncResponse,
)
from reference_coordinator.protocol import Observed

Json = dict[str, Any]


def response_body(response: Response, seen: Observed) -> Json:
    """Return the body of the response to a request, in the version of that."""
    values = {"throttleTimeMs": 0, **_values(response, seen)}
    return of_version(BODIES[seen.api].response, values, seen.api_version)


def _values(response: Response, seen: Observed) -> Json:
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
        case ConfigureResponse():
            (named,) = seen.request["resources"]
            kept = {name: named[name] for name in ("resourceType", "resourceName")}
            message = Error(error).name if error else None
            return {"responses": [{"errorCode": error, "errorMessage": message, **kept}]}
        case CommitResponse():
            return {"topics": [_topic(topic, error) for topic in seen.request["topics"]]}
        case _:
            return {"errorCode": error}


def described_group(name: str, response: DescribeResponse) -> Json:
    """Return what DescribeGroups says of a group, of any version."""
    members = [
        {
            "memberId": member.member_id,
            "groupInstanceId": member.group_instance_id,
            "clientId": member.client_id,
            "clientHost": member.client_host,
            "memberMetadata": member.metadata,
            "memberAssignment": member.assignment,
        }
        for member in response.members
    ]
    error = Error(response.error)
    return {
        "errorCode": int(error), "errorMessage": error.name if error else None, "groupId": name,
        "groupState": str(response.state), "protocolType": response.protocol_type,
        "protocolData": response.protocol, "members": members,
    }  # fmt: skip


def _topic(topic: Json, error: int) -> Json:
    partitions = [
        {"partitionIndex": part["partitionIndex"], "errorCode": error}
        for part in topic["partitions"]
    ]
    return {**topic, "partitions": partitions}
