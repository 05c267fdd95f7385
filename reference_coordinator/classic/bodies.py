"""Kafka's JSON bodies of requests and responses, as the classic protocol's events and responses.

Bodies are those of the request log from 2.8 on (KAFKA-10525): camelCase schema names, bytes as
base64 (or only their length: `kafka_protocol.bodies.LENGTH`), error codes as numbers, only the
fields of the request's version.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kafka_protocol.apis import CONFIGURE
from kafka_protocol.bodies import generation_in, partitions_in
from kafka_protocol.join_reason import JoinReason
from kafka_protocol.versions import (
    FIRST_BATCH_LEAVE,
    FIRST_DESCRIBE_WITH_INSTANCE_ID,
    FIRST_JOIN_WITH_INSTANCE_ID,
    FIRST_JOIN_WITH_PROTOCOL_TYPE,
    FIRST_JOIN_WITH_SKIP_ASSIGNMENT,
    FIRST_SYNC_WITH_PROTOCOL,
)
from reference_coordinator.classic.effects import (
    CommitResponse,
    ConfigureResponse,
    DeleteResponse,
    DescribedMember,
    DescribeResponse,
    HeartbeatResponse,
    JoinResponse,
    LeaveResponse,
    Response,
    SyncResponse,
)
from reference_coordinator.classic.events import (
    Choices,
    CommitReceived,
    ConfigureReceived,
    DeleteReceived,
    DescribeReceived,
    HeartbeatReceived,
    JoinReceived,
    LeaveReceived,
    Request,
    SyncReceived,
)
from reference_coordinator.frozen import replace_fields
from reference_coordinator.protocol import Body, Json, Observed

Exchange = tuple[str, str | None, *tuple[int, ...]]
"""Member id, instance id, and everything else of a request and its response but their times."""


def _join(seen: Observed, at_ms: float, choices: Choices) -> Request:
    body = seen.request
    return JoinReceived(
        at_ms=at_ms,
        request=seen.id,
        api_version=seen.api_version,
        client_id=seen.client_id,
        member_id=body.get("memberId") or "",
        group_instance_id=body.get("groupInstanceId"),
        session_timeout_ms=body["sessionTimeoutMs"],
        rebalance_timeout_ms=rebalance_timeout(body),
        protocol_type=body["protocolType"],
        protocols=tuple([(p["name"], p["metadata"]) for p in body["protocols"]]),
        reason=body.get("reason"),
        choices=choices,
        client_host=seen.client_host,
        join_reason=JoinReason(body.get("joinReason", JoinReason.UNKNOWN)),
    )


def rebalance_timeout(body: Json) -> int:
    """Return the rebalance timeout; JoinGroup v0 had none and used the session's."""
    timeout = body.get("rebalanceTimeoutMs")
    return int(body["sessionTimeoutMs"] if timeout is None else timeout)


def _sync(seen: Observed, at_ms: float, choices: Choices) -> Request:
    body = seen.request
    return SyncReceived(
        at_ms=at_ms,
        request=seen.id,
        generation=body["generationId"],
        member_id=body["memberId"],
        group_instance_id=body.get("groupInstanceId"),
        protocol_type=body.get("protocolType"),
        protocol=body.get("protocolName"),
        assignments=tuple((a["memberId"], a["assignment"]) for a in body.get("assignments") or ()),
        api_version=seen.api_version,
        choices=choices,
    )


def _heartbeat(seen: Observed, at_ms: float, _: Choices) -> Request:
    body = seen.request
    return HeartbeatReceived(
        at_ms, seen.id, body["generationId"], body["memberId"], body.get("groupInstanceId")
    )


def _heartbeat_exchange(request: Json, response: Json, _: int) -> Exchange:
    instance_id = request.get("groupInstanceId")
    return request["memberId"], instance_id, request["generationId"], response["errorCode"]


def _leave(seen: Observed, at_ms: float, choices: Choices) -> Request:
    members: tuple[tuple[str, str | None], ...] = ((seen.request.get("memberId") or "", None),)
    reasons: tuple[str | None, ...] = ()
    if seen.api_version >= FIRST_BATCH_LEAVE:
        named = seen.request["members"]
        members = tuple((m.get("memberId") or "", m.get("groupInstanceId")) for m in named)
        reasons = tuple(m.get("reason") for m in named)
    return LeaveReceived(at_ms, seen.id, seen.api_version, members, choices, reasons)


def _commit(seen: Observed, at_ms: float, _: Choices) -> Request:
    body = seen.request
    return CommitReceived(
        at_ms=at_ms,
        request=seen.id,
        api_version=seen.api_version,
        generation=_generation(body),
        member_id=body.get("memberId") or "",
        group_instance_id=body.get("groupInstanceId"),
    )


def _generation(body: Json) -> int:
    """Return an OffsetCommit's generation; -1 without one, before v1."""
    generation = generation_in(body)
    return -1 if generation is None else generation


def _commit_exchange(request: Json, response: Json, api_version: int) -> Exchange:
    member_id, instance_id = request.get("memberId") or "", request.get("groupInstanceId")
    reduced = _commit_response(request, response)
    sent = (api_version, _generation(request))
    return member_id, instance_id, *sent, reduced.error, reduced.every_partition_alike


def _describe(seen: Observed, at_ms: float, choices: Choices) -> Request:
    return DescribeReceived(at_ms, seen.id, seen.api_version, choices)


def _delete(seen: Observed, at_ms: float, _: Choices) -> Request:
    return DeleteReceived(at_ms, seen.id)


def _configure(seen: Observed, at_ms: float, _: Choices) -> Request:
    (resource,) = seen.request["resources"]
    changes = [(c["name"], c["configOperation"], c["value"]) for c in resource["configs"]]
    return ConfigureReceived(at_ms, seen.id, tuple(changes))


def _join_response(_: Json, body: Json) -> JoinResponse:
    return JoinResponse(
        error=body["errorCode"],
        member_id=body.get("memberId") or "",
        generation=body["generationId"],
        protocol_type=body.get("protocolType") or None,
        protocol=body.get("protocolName") or None,
        leader=body.get("leader") or "",
        skip_assignment=bool(body.get("skipAssignment")),
        members=_members(body.get("members") or ()),
    )


def _members(listed: Sequence[Json]) -> frozenset[tuple[str, str | None, str]]:
    """Collect a leader's members; a member that is listed twice is marked with the count."""
    if not listed:
        return frozenset()
    each = [(m["memberId"], m.get("groupInstanceId"), m["metadata"]) for m in listed]
    members: frozenset[tuple[str, str | None, str]] = frozenset(each)
    if len(members) == len(each):
        return members
    times = Counter(each)
    return frozenset(
        member if count == 1 else (f"{member[0]} ({count} times)", *member[1:])
        for member, count in times.items()
    )


def _sync_response(_: Json, body: Json) -> SyncResponse:
    return SyncResponse(
        error=body["errorCode"],
        protocol_type=body.get("protocolType") or None,
        protocol=body.get("protocolName") or None,
        assignment=body.get("assignment") or "",
    )


def _leave_response(_: Json, body: Json) -> LeaveResponse:
    return LeaveResponse(
        error=body["errorCode"],
        members=tuple(
            (m.get("memberId") or "", m.get("groupInstanceId"), m["errorCode"])
            for m in body.get("members") or ()
        ),
    )


def _commit_response(request: Json, response: Json) -> CommitResponse:
    """Reduce an OffsetCommit response: the group's own errors are the same for every partition."""
    asked, answered = _partitions(request), _partitions(response)
    errors = [p["errorCode"] for topic in response["topics"] for p in topic["partitions"]]
    if asked == answered and len(set(errors)) == 1:
        return CommitResponse(errors[0])
    codes = dict(zip(answered, errors, strict=True))  # a partition may be named twice
    equal = len(set(codes.values())) <= 1
    return CommitResponse(
        error=next((code for code in codes.values() if code != 0), 0),
        every_partition_alike=equal and codes.keys() == set(asked),
    )


def _partitions(body: Json) -> list[str]:
    """List the partitions that a body names."""
    return [name for name, _ in partitions_in(body["topics"])]


def _heartbeat_response(_: Json, body: Json) -> HeartbeatResponse:
    return HeartbeatResponse(body["errorCode"])


def _describe_response(_: Json, body: Json) -> DescribeResponse:
    (group,) = body["groups"]
    return DescribeResponse(
        error=group["errorCode"],
        state=group["groupState"],
        protocol_type=group["protocolType"],
        protocol=group["protocolData"],
        members=frozenset(
            DescribedMember(
                member_id=m["memberId"],
                group_instance_id=m.get("groupInstanceId"),
                client_id=m["clientId"],
                client_host=m["clientHost"],
                metadata=m["memberMetadata"],
                assignment=m["memberAssignment"],
            )
            for m in group["members"]
        ),
    )


def _delete_response(_: Json, body: Json) -> DeleteResponse:
    (result,) = body["results"]
    return DeleteResponse(result["errorCode"])


def _configure_response(_: Json, body: Json) -> ConfigureResponse:
    (resource,) = body["responses"]
    return ConfigureResponse(resource["errorCode"])


EXCHANGES: Mapping[str, Callable[[Json, Json, int], Exchange]] = {
    "HEARTBEAT": _heartbeat_exchange,
    "OFFSET_COMMIT": _commit_exchange,
}
"""How requests that only restart timers are reduced: (request, response, version)."""

BODIES: Mapping[str, Body[Request, Response]] = {
    "JOIN_GROUP": Body(_join, _join_response),
    "SYNC_GROUP": Body(_sync, _sync_response),
    "HEARTBEAT": Body(_heartbeat, _heartbeat_response),
    "LEAVE_GROUP": Body(_leave, _leave_response),
    "OFFSET_COMMIT": Body(_commit, _commit_response),
    "DESCRIBE_GROUPS": Body(_describe, _describe_response),
    "DELETE_GROUPS": Body(_delete, _delete_response),
    CONFIGURE: Body(_configure, _configure_response),
}
"""The requests that the oracle knows, by their names in Kafka's request log. DescribeGroups,
DeleteGroups and IncrementalAlterConfigs may name many; here they name the group of the evidence."""


def as_sent(response: Response, api_version: int) -> Response:
    """Drop from a response the fields that its version does not have."""
    if isinstance(response, JoinResponse):
        if response.members and api_version < FIRST_JOIN_WITH_INSTANCE_ID:
            response = replace_fields(
                response, members=frozenset((m, None, d) for m, _, d in response.members)
            )
        if response.protocol_type is not None and api_version < FIRST_JOIN_WITH_PROTOCOL_TYPE:
            response = replace_fields(response, protocol_type=None)
        if response.skip_assignment and api_version < FIRST_JOIN_WITH_SKIP_ASSIGNMENT:
            response = replace_fields(response, skip_assignment=False)
    elif isinstance(response, DescribeResponse):
        if api_version < FIRST_DESCRIBE_WITH_INSTANCE_ID:
            nameless = (replace(member, group_instance_id=None) for member in response.members)
            response = replace_fields(response, members=frozenset(nameless))
    elif isinstance(response, SyncResponse) and api_version < FIRST_SYNC_WITH_PROTOCOL:
        response = SyncResponse(response.error, assignment=response.assignment)
    return response
