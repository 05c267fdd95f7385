"""Kafka's JSON request bodies to the oracle's events and answers.

Bodies are those of the request log from 2.8 on (KAFKA-10525): camelCase schema names, bytes as
base64 (or their length alone: `forms`), error codes as numbers, only the fields of the request's
version.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_protocol.versions import FIRST_BATCH_LEAVE
from reference_coordinator.classic.effects import (
    CommitResponse,
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
    DeleteReceived,
    DescribeReceived,
    HeartbeatReceived,
    JoinReceived,
    LeaveReceived,
    Request,
    SyncReceived,
)
from reference_coordinator.replay.evidence import ObservedRequest

Body = Mapping[str, Any]
Exchange = tuple[str, str | None, *tuple[int, ...]]
"""Member id, instance id, and all else that counts of a request and its answer but its time."""


def event_of(seen: ObservedRequest, at_ms: float, choices: Choices) -> Request:
    """Turn an observed request into the event the oracle steps on."""
    return APIS[seen.api].event(seen, at_ms, choices)


def answer_of(seen: ObservedRequest) -> Response:
    """Turn an observed response into the oracle's form of it; codes stay numbers."""
    return APIS[seen.api].answer(seen.request, seen.response_fields)


def _join(seen: ObservedRequest, at_ms: float, choices: Choices) -> Request:
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
    )


def rebalance_timeout(body: Body) -> int:
    """Return the rebalance timeout; JoinGroup v0 had none and used the session's."""
    timeout = body.get("rebalanceTimeoutMs")
    return int(body["sessionTimeoutMs"] if timeout is None else timeout)


def _sync(seen: ObservedRequest, at_ms: float, choices: Choices) -> Request:
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


def _heartbeat(seen: ObservedRequest, at_ms: float, _: Choices) -> Request:
    body = seen.request
    return HeartbeatReceived(
        at_ms, seen.id, body["generationId"], body["memberId"], body.get("groupInstanceId")
    )


def _heartbeat_exchange(request: Body, response: Body, _: int) -> Exchange:
    instance_id = request.get("groupInstanceId")
    generation = request["generationId"]
    return request["memberId"], instance_id, generation, response["errorCode"]


def _leave(seen: ObservedRequest, at_ms: float, choices: Choices) -> Request:
    members: tuple[tuple[str, str | None], ...] = ((seen.request.get("memberId") or "", None),)
    if seen.api_version >= FIRST_BATCH_LEAVE:
        members = tuple(
            (m.get("memberId") or "", m.get("groupInstanceId")) for m in seen.request["members"]
        )
    return LeaveReceived(at_ms, seen.id, seen.api_version, members, choices)


def _commit(seen: ObservedRequest, at_ms: float, _: Choices) -> Request:
    body = seen.request
    return CommitReceived(
        at_ms=at_ms,
        request=seen.id,
        api_version=seen.api_version,
        generation=_generation(body),
        member_id=body.get("memberId") or "",
        group_instance_id=body.get("groupInstanceId"),
    )


def _generation(body: Body) -> int:
    """Return an OffsetCommit's generation, which has another name from 3.6 on."""
    generation = body.get("generationIdOrMemberEpoch")
    return int(body.get("generationId", -1) if generation is None else generation)


def _commit_exchange(request: Body, response: Body, api_version: int) -> Exchange:
    member_id, instance_id = request.get("memberId") or "", request.get("groupInstanceId")
    answer = _commit_answer(request, response)
    version_and_generation = (api_version, _generation(request))
    return (
        member_id,
        instance_id,
        *version_and_generation,
        answer.error,
        answer.every_partition_alike,
    )


def _describe(seen: ObservedRequest, at_ms: float, choices: Choices) -> Request:
    return DescribeReceived(at_ms, seen.id, seen.api_version, choices)


def _delete(seen: ObservedRequest, at_ms: float, _: Choices) -> Request:
    return DeleteReceived(at_ms, seen.id)


def _join_answer(_: Body, body: Body) -> JoinResponse:
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


def _members(listed: Sequence[Body]) -> frozenset[tuple[str, str | None, str]]:
    """Collect a leader's members; one that is listed twice gets an id that says so."""
    if not listed:
        return frozenset()
    times = Counter((m["memberId"], m.get("groupInstanceId"), m["metadata"]) for m in listed)
    return frozenset(
        member if count == 1 else (f"{member[0]} ({count} times)", *member[1:])
        for member, count in times.items()
    )


def _sync_answer(_: Body, body: Body) -> SyncResponse:
    return SyncResponse(
        error=body["errorCode"],
        protocol_type=body.get("protocolType") or None,
        protocol=body.get("protocolName") or None,
        assignment=body.get("assignment") or "",
    )


def _leave_answer(_: Body, body: Body) -> LeaveResponse:
    return LeaveResponse(
        error=body["errorCode"],
        members=tuple(
            (m.get("memberId") or "", m.get("groupInstanceId"), m["errorCode"])
            for m in body.get("members") or ()
        ),
    )


def _commit_answer(request: Body, response: Body) -> CommitResponse:
    """Sum an OffsetCommit up: the coordinator's own errors are the same for every partition."""
    requested = {
        (_topic(t), p["partitionIndex"]) for t in request["topics"] for p in t["partitions"]
    }
    codes = {
        (_topic(topic), part["partitionIndex"]): part["errorCode"]
        for topic in response["topics"]
        for part in topic["partitions"]
    }
    equal = len(set(codes.values())) <= 1
    return CommitResponse(
        error=next((code for code in codes.values() if code != 0), 0),
        every_partition_alike=equal and codes.keys() == requested,
    )


def _topic(body: Body) -> str:
    return str(body.get("name") or body["topicId"])  # ids instead of names from v10 on (KIP-848)


def _heartbeat_answer(_: Body, body: Body) -> HeartbeatResponse:
    return HeartbeatResponse(body["errorCode"])


def _describe_answer(_: Body, body: Body) -> DescribeResponse:
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


def _delete_answer(_: Body, body: Body) -> DeleteResponse:
    (result,) = body["results"]
    return DeleteResponse(result["errorCode"])


@dataclass(frozen=True, slots=True)
class Api:
    """How an API's bodies are read: (request, when, choices) and (request, response)."""

    event: Callable[[ObservedRequest, float, Choices], Request]
    answer: Callable[[Body, Body], Response]


EXCHANGES: Mapping[str, Callable[[Body, Body, int], Exchange]] = {
    "HEARTBEAT": _heartbeat_exchange,
    "OFFSET_COMMIT": _commit_exchange,
}
"""How requests of `ONLY_RESTART_TIMERS` are summed up: (request, response, version)."""

APIS = {
    "JOIN_GROUP": Api(_join, _join_answer),
    "SYNC_GROUP": Api(_sync, _sync_answer),
    "HEARTBEAT": Api(_heartbeat, _heartbeat_answer),
    "LEAVE_GROUP": Api(_leave, _leave_answer),
    "OFFSET_COMMIT": Api(_commit, _commit_answer),
    "DESCRIBE_GROUPS": Api(_describe, _describe_answer),
    "DELETE_GROUPS": Api(_delete, _delete_answer),
}
"""The requests that the oracle knows, by their names in Kafka's request log. DescribeGroups and
DeleteGroups may name many groups; here they name the one that the evidence is of."""
