"""Kafka's JSON request bodies to the oracle's events and answers.

Bodies are those of the request log from 2.8 on (KAFKA-10525): camelCase schema names, bytes as
base64, error codes as numbers, only the fields of the request's version.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from reference_coordinator.effects import (
    CommitAnswer,
    HeartbeatAnswer,
    JoinAnswer,
    LeaveAnswer,
    Response,
    SyncAnswer,
)
from reference_coordinator.errors import name_of
from reference_coordinator.events import (
    Choices,
    CommitReceived,
    HeartbeatReceived,
    JoinReceived,
    LeaveReceived,
    Request,
    SyncReceived,
)
from reference_coordinator.replay.evidence import Observed

Body = Mapping[str, Any]

FIRST_JOIN_WITH_PROTOCOL_TYPE = 7
FIRST_JOIN_WITH_SKIP_ASSIGNMENT = 9
FIRST_SYNC_WITH_PROTOCOL = 5


def event_of(seen: Observed, at_ms: float, choices: Choices) -> Request:
    """Turn an observed request into the event the oracle steps on."""
    body = seen.request
    match seen.api:
        case "JOIN_GROUP":
            return JoinReceived(
                at_ms=at_ms,
                request=seen.id,
                api_version=seen.api_version,
                client_id=seen.client_id,
                member_id=body.get("memberId") or "",
                group_instance_id=body.get("groupInstanceId"),
                session_timeout_ms=body["sessionTimeoutMs"],
                rebalance_timeout_ms=_rebalance_timeout(body),
                protocol_type=body["protocolType"],
                protocols=tuple((p["name"], p["metadata"]) for p in body["protocols"]),
                reason=body.get("reason"),
                choices=choices,
            )
        case "SYNC_GROUP":
            return SyncReceived(
                at_ms=at_ms,
                request=seen.id,
                generation=body["generationId"],
                member_id=body["memberId"],
                group_instance_id=body.get("groupInstanceId"),
                protocol_type=body.get("protocolType"),
                protocol=body.get("protocolName"),
                assignments=tuple(
                    (a["memberId"], a["assignment"]) for a in body.get("assignments") or ()
                ),
            )
        case "HEARTBEAT":
            return HeartbeatReceived(
                at_ms, seen.id, body["generationId"], body["memberId"], body.get("groupInstanceId")
            )
        case "LEAVE_GROUP":
            return LeaveReceived(at_ms, seen.id, seen.api_version, _leaving(body), choices)
        case "OFFSET_COMMIT":
            generation = body.get("generationIdOrMemberEpoch")
            return CommitReceived(
                at_ms=at_ms,
                request=seen.id,
                api_version=seen.api_version,
                generation=body.get("generationId", -1) if generation is None else generation,
                member_id=body.get("memberId") or "",
                group_instance_id=body.get("groupInstanceId"),
            )
    raise ValueError(f"{seen.id}: the classic group coordinator does not serve {seen.api}")


def _rebalance_timeout(body: Body) -> int:
    """Return the rebalance timeout; JoinGroup v0 had none and used the session's."""
    timeout = body.get("rebalanceTimeoutMs")
    return int(body["sessionTimeoutMs"] if timeout is None else timeout)


def _leaving(body: Body) -> tuple[tuple[str, str | None], ...]:
    members = body.get("members")
    if members:
        return tuple((m.get("memberId") or "", m.get("groupInstanceId")) for m in members)
    return ((body.get("memberId") or "", None),)


def answer_of(seen: Observed) -> Response:
    """Turn an observed response into the oracle's form of it; codes stay numbers."""
    if seen.api == "OFFSET_COMMIT":
        return _commit_answer(seen.request, seen.response)
    return _ANSWERS[seen.api](seen.response)


def _join_answer(body: Body) -> JoinAnswer:
    return JoinAnswer(
        error=body["errorCode"],
        member_id=body.get("memberId") or "",
        generation=body["generationId"],
        protocol_type=body.get("protocolType") or None,
        protocol=body.get("protocolName") or None,
        leader=body.get("leader") or "",
        skip_assignment=bool(body.get("skipAssignment")),
        members=_members(body.get("members") or ()),
    )


def _members(told: Sequence[Body]) -> frozenset[tuple[str, str | None, str]]:
    """Collect a leader's members; one that stands twice is told apart from one that does not."""
    times = Counter((m["memberId"], m.get("groupInstanceId"), m["metadata"]) for m in told)
    return frozenset(
        member if count == 1 else (f"{member[0]} ({count} times)", *member[1:])
        for member, count in times.items()
    )


def _sync_answer(body: Body) -> SyncAnswer:
    return SyncAnswer(
        error=body["errorCode"],
        protocol_type=body.get("protocolType") or None,
        protocol=body.get("protocolName") or None,
        assignment=body.get("assignment") or "",
    )


def _leave_answer(body: Body) -> LeaveAnswer:
    return LeaveAnswer(
        error=body["errorCode"],
        members=tuple(
            (m.get("memberId") or "", m.get("groupInstanceId"), m["errorCode"])
            for m in body.get("members") or ()
        ),
    )


def _commit_answer(request: Body, response: Body) -> CommitAnswer:
    """Sum an OffsetCommit up: the coordinator's own errors are the same for every partition."""
    asked = {(t["name"], p["partitionIndex"]) for t in request["topics"] for p in t["partitions"]}
    codes = {
        (topic["name"], part["partitionIndex"]): part["errorCode"]
        for topic in response["topics"]
        for part in topic["partitions"]
    }
    alike = len(set(codes.values())) <= 1
    return CommitAnswer(
        error=next((code for code in codes.values() if code != 0), 0),
        every_partition_alike=alike and codes.keys() == asked,
    )


_ANSWERS: dict[str, Callable[[Body], Response]] = {
    "JOIN_GROUP": _join_answer,
    "SYNC_GROUP": _sync_answer,
    "HEARTBEAT": lambda body: HeartbeatAnswer(body["errorCode"]),
    "LEAVE_GROUP": _leave_answer,
}


def as_sent(answer: Response, api_version: int) -> Response:
    """Drop from an answer what its version has no field for."""
    if isinstance(answer, JoinAnswer):
        if api_version < FIRST_JOIN_WITH_PROTOCOL_TYPE:
            answer = replace(answer, protocol_type=None)
        if api_version < FIRST_JOIN_WITH_SKIP_ASSIGNMENT:
            answer = replace(answer, skip_assignment=False)
    elif isinstance(answer, SyncAnswer) and api_version < FIRST_SYNC_WITH_PROTOCOL:
        answer = replace(answer, protocol_type=None, protocol=None)
    return answer


def differences(expected: Response, observed: Response) -> tuple[tuple[str, str, str], ...]:
    """Compare two answers; give (field, expected, observed) for every field that differs."""
    return tuple(
        (field.name, _show(field.name, ours), _show(field.name, theirs))
        for field in fields(expected)
        if (ours := getattr(expected, field.name)) != (theirs := getattr(observed, field.name))
    )


def _show(field: str, value: object) -> str:
    if field == "error" and isinstance(value, int):
        return name_of(value)
    if isinstance(value, frozenset | tuple):
        return "[" + ", ".join(sorted(str(item[0]) for item in value)) + "]"
    return str(value)
