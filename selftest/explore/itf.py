"""A trace in the Informal Trace Format of Apalache and Quint: one state after each step.

`event` tells what happened, as a variant of Quint (`tag` and `value`), a request with all that its
process knew; `answers` what the coordinator answered, `group` what it knew then, `breaks` which
invariants broke. Source: Apalache's ADR 015, where whole numbers are `{"#bigint": "1"}`.
"""

from typing import Any

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Answer, JoinResponse, LeaveResponse
from reference_coordinator.classic.events import Loaded, RecordWritten, TimerFired
from reference_coordinator.driving.client import Asked
from selftest.explore.actions import text_of
from selftest.explore.invariants import broken
from selftest.explore.scene import OPERATOR, Scene, Stepped
from selftest.explore.trace import Trace

Json = dict[str, Any]
VARS = ("now_ms", "event", "answers", "group", "breaks")


def itf(trace: Trace, what: str) -> Json:
    """Return a trace of one step at least as a document; `what` breaks at its end."""
    first = trace.steps[0].before
    begins = {"tag": "Init", "value": {"#tup": []}}
    states = [_state(first, begins), *map(_after, trace.steps)]
    return {
        "#meta": {
            "format": "ITF",
            "format-description": "https://apalache-mc.org/docs/adr/015adr-trace.html",
            "source": first.profile.name,
            "description": what,
        },
        "vars": [*VARS],
        "states": [{"#meta": {"index": n}, **state} for n, state in enumerate(states)],
    }


def _after(step: Stepped) -> Json:
    value: Json = {}
    match step.event:
        case TimerFired():
            value = {"timer": text_of(step.event.timer)}
        case RecordWritten():
            value = {"error": step.event.error.name}
        case Loaded():
            value = {"requests_disabled": step.event.requests_disabled}
    event = {"tag": type(step.event).__name__, "value": value or {"#tup": []}}
    if step.asked is not None:
        event = {"tag": "Request", "value": _request(step.asked)}
    answers = [_answer(effect) for effect in step.effects if isinstance(effect, Answer)]
    return _state(step.after, event, answers, list(dict.fromkeys(broken(step))))


def _state(scene: Scene, event: Json, answers: list[Json] = [], breaks: list[str] = []) -> Json:  # noqa: B006 (read)
    group = scene.group
    return {
        "now_ms": _int(scene.now_ms),
        "event": event,
        "answers": answers,
        "group": {
            "state": str(group.state),
            "generation": _int(group.generation),
            "leader": group.leader or "",
            "members": {"#set": sorted(group.members)},
            "instances": {"#map": [[i, m] for i, m in sorted(group.static_ids.items())]},
        },
        "breaks": breaks,
    }


def _request(asked: Asked) -> Json:
    client, removes = asked.client, ""
    if client is OPERATOR and asked.api == "LEAVE_GROUP":
        removes = str(asked.request["members"][0]["groupInstanceId"])
    return {
        "id": asked.id,
        "api": asked.api,
        "api_version": _int(asked.api_version),
        "client": client.name,
        "instance": client.instance or "",
        "member_id": client.member_id,
        "generation": _int(client.generation),
        "leads": [*client.leads],
        "session_ms": _int(client.session_ms),
        "rebalance_ms": _int(client.rebalance_ms),
        "removes": removes,
    }


def _answer(answer: Answer) -> Json:
    response = answer.response
    error = response.error
    if isinstance(response, LeaveResponse) and response.members:
        error = error or response.members[0][2]
    joined = response.member_id if isinstance(response, JoinResponse) else ""
    return {"request": answer.request, "error": Error(error).name, "member_id": joined}


def _int(number: float) -> Json:
    return {"#bigint": str(round(number))}
