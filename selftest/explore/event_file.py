"""A trace as an event file, for `groupquake oracle replay` and for those who want to send it.

Requests of one instant stand two milliseconds apart. A trace with a failover, a failed write or an
operator's requests other than LeaveGroup has no event file: clients alone do not see all of it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kafka_protocol.bodies import BODIES, of_version
from kafka_protocol.errors import NO_ERROR
from reference_coordinator.classic.effects import Answer, Response
from reference_coordinator.classic.events import (
    CommitReceived,
    Event,
    HeartbeatReceived,
    JoinReceived,
    LeaveReceived,
    RecordWritten,
    SyncReceived,
    TimerFired,
)
from reference_coordinator.classic.releases import NEWEST, default_coordinator
from reference_coordinator.event_files.reading import FORMAT
from reference_coordinator.replay import ObservedRequest
from selftest.explore.broker import Happened
from selftest.explore.scene import GROUP, HOST, OPERATOR
from selftest.mutants.wordings import body

APART_MS = 2.0
HEARTBEAT_VERSION = 4
APIS = {
    JoinReceived: "JOIN_GROUP",
    SyncReceived: "SYNC_GROUP",
    HeartbeatReceived: "HEARTBEAT",
    LeaveReceived: "LEAVE_GROUP",
    CommitReceived: "OFFSET_COMMIT",
}


def event_file(happened: Iterable[Happened], profile: str, settings: Mapping[str, int]) -> str:
    """Write a trace as JSON lines; "" if it has no event file. `settings` are the broker's."""
    lines: list[dict[str, Any]] = []
    asked: dict[str, dict[str, Any]] = {}
    connections: Counter[str] = Counter()
    at_ms = 0.0
    for each in happened:
        at_ms = max(at_ms + APART_MS, each.at_ms)
        if type(each.event) in APIS:
            request: str = each.event.request  # type: ignore[union-attr]
            sender = each.sender or OPERATOR
            waits = [line for line in lines if line["client_id"] == sender]
            connections[sender] += bool(waits) and "response" not in waits[-1]
            asked[request] = _line(each.event, sender, at_ms)
            asked[request]["connection"] = f"{sender}-{connections[sender]}"
            lines.append(asked[request])
        elif not isinstance(each.event, TimerFired | RecordWritten) or _has_failed(each.event):
            return ""
        for effect in each.effects:
            if isinstance(effect, Answer):
                _answer(asked[effect.request], effect.response, at_ms + APART_MS / 2)
    release = profile if profile[0].isdigit() else NEWEST.name
    kafka, _, coordinator = release.partition("-")
    header = {
        "format": FORMAT, "kafka": kafka if kafka.count(".") > 1 else f"{kafka}.0",
        "coordinator": coordinator or default_coordinator(kafka), "config": dict(settings),
        "group": GROUP, "sequence": 0,
    }  # fmt: skip
    return "".join(
        json.dumps(line) + "\n"
        for line in [header, *lines, {"at_ms": at_ms + APART_MS, "end": True}]
    )


def _has_failed(event: Event) -> bool:
    return isinstance(event, RecordWritten) and event.error is not NO_ERROR


def _line(event: Event, sender: str, at_ms: float) -> dict[str, Any]:
    api = APIS[type(event)]
    version = getattr(event, "api_version", HEARTBEAT_VERSION)
    request = of_version(BODIES[api].request, _fields(event), version)
    return {
        "at_ms": at_ms, "id": event.request, "connection": "", "api": api,  # type: ignore[union-attr]
        "api_version": version, "client_id": sender, "client_host": HOST, "request": request,
    }  # fmt: skip


def _answer(line: dict[str, Any], response: Response, answered_ms: float) -> None:
    seen = ObservedRequest(
        line["id"], "", line["api"], line["api_version"], line["client_id"], line["connection"],
        line["at_ms"], line["at_ms"], answered_ms, answered_ms, line["request"], None,
    )  # fmt: skip
    line["answered_at_ms"], line["response"] = answered_ms, body(response, seen)


def _fields(event: Event) -> dict[str, Any]:
    match event:
        case JoinReceived():
            return {
                "groupId": GROUP, "sessionTimeoutMs": event.session_timeout_ms,
                "rebalanceTimeoutMs": event.rebalance_timeout_ms, "memberId": event.member_id,
                "groupInstanceId": event.group_instance_id, "protocolType": event.protocol_type,
                "protocols": [{"name": name, "metadata": data} for name, data in event.protocols],
                "reason": None,
            }  # fmt: skip
        case LeaveReceived():
            left = [{"memberId": m, "groupInstanceId": i, "reason": None} for m, i in event.members]
            return {"groupId": GROUP, "members": left}
        case SyncReceived() | HeartbeatReceived() | CommitReceived():
            fields: dict[str, Any] = {
                "groupId": GROUP, "generationId": event.generation, "memberId": event.member_id,
                "groupInstanceId": event.group_instance_id,
            }  # fmt: skip
            if isinstance(event, SyncReceived):
                shares = [{"memberId": m, "assignment": share} for m, share in event.assignments]
                fields |= {"protocolType": event.protocol_type, "protocolName": event.protocol,
                           "assignments": shares}  # fmt: skip
            elif isinstance(event, CommitReceived):
                partition = {"partitionIndex": 0, "committedOffset": 1, "committedLeaderEpoch": -1,
                             "committedMetadata": ""}  # fmt: skip
                topics = [{"name": "orders", "partitions": [partition]}]
                fields |= {"generationIdOrMemberEpoch": event.generation, "topics": topics}
            return fields
    raise AssertionError(event)
