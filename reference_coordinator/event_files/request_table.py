"""Requests and answers for people: one line a request, in fixed columns."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kafka_protocol.bodies import generation_in
from kafka_protocol.errors import name_of
from reference_coordinator.replay.evidence import ObservedRequest

Body = Mapping[str, Any]

COLUMNS = "{mark:1} {at:>10} {answered:>10}  {member:16} {api:17} {request:52} {answer}"
UUID = re.compile(r"([0-9a-f]{4})[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")


def table(requests: Sequence[ObservedRequest], wrong: str, began_ms: float = 0.0) -> Iterator[str]:
    """Yield a heading, and a line a request; times are ms after `began_ms`, `wrong` is marked."""
    yield COLUMNS.format(
        mark="", at="at ms", answered="answered", member="member", api="request", request="",
        answer="answer",
    )  # fmt: skip
    for seen in requests:
        answered = f"{seen.answered_ms - began_ms:.1f}" if seen.response is not None else "-"
        yield COLUMNS.format(
            mark=">" if seen.id == wrong else "",
            at=f"{seen.at_ms - began_ms:.1f}",
            answered=answered,
            member=_cut(seen.client_id, 16),
            api=f"{seen.api} v{seen.api_version}",
            request=_cut(request_text(seen), 52),
            answer=response_text(seen),
        ).rstrip()


def request_text(seen: ObservedRequest) -> str:
    """Show what a request asks for."""
    show = _REQUESTS.get(seen.api)
    return "" if show is None else " ".join(part for part in show(seen.request) if part)


def response_text(seen: ObservedRequest) -> str:
    """Show what was answered."""
    if seen.response is None:
        return "no answer"
    show = _RESPONSES.get(seen.api)
    more = () if show is None else show(seen.response)
    return " ".join(part for part in (_error(seen.response), *more) if part)


def short(member_id: str | None) -> str:
    """Shorten a member id to what tells members apart."""
    return UUID.sub(r"\1", member_id or "")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _who(body: Body) -> str:
    instance = body.get("groupInstanceId")
    member = short(body.get("memberId"))
    return f"{member or '(no id)'}{f' of {instance}' if instance is not None else ''}"


def _error(body: Body) -> str:
    if "errorCode" in body:
        return name_of(body["errorCode"])
    for key in ("groups", "results"):
        if key in body:
            return ", ".join(name_of(part["errorCode"]) for part in body[key])
    codes = {part["errorCode"]: None for topic in body["topics"] for part in topic["partitions"]}
    return ", ".join(map(name_of, codes))


def _join(body: Body) -> Iterator[str]:
    yield _who(body)
    yield ",".join(protocol["name"] for protocol in body["protocols"])
    yield f"session {body['sessionTimeoutMs']}"
    if "rebalanceTimeoutMs" in body:
        yield f"rebalance {body['rebalanceTimeoutMs']}"


def _joined(body: Body) -> Iterator[str]:
    if body["generationId"] >= 0:
        yield f"generation {body['generationId']}"
    yield body.get("protocolName") or ""
    if body.get("memberId"):
        yield f"as {short(body['memberId'])}"
    if body.get("leader"):
        yield f"leader {short(body['leader'])}"
    if body.get("skipAssignment"):
        yield "skip assignment"
    if body.get("members"):
        yield f"[{', '.join(short(member['memberId']) for member in body['members'])}]"


def _in_generation(body: Body) -> Iterator[str]:
    yield _who(body)
    generation = generation_in(body)
    yield f"generation {-1 if generation is None else generation}"


def _sync(body: Body) -> Iterator[str]:
    yield from _in_generation(body)
    if body.get("assignments"):
        yield f"gives {len(body['assignments'])}"


def _synced(body: Body) -> Iterator[str]:
    if body.get("assignment"):
        yield f"share {_cut(body['assignment'], 12)}"


def _leave(body: Body) -> Iterator[str]:
    yield ", ".join(_who(member) for member in body.get("members", (body,)))


def _left(body: Body) -> Iterator[str]:
    for member in body.get("members") or ():
        yield f"{_who(member)}: {name_of(member['errorCode'])}"


def _described(body: Body) -> Iterator[str]:
    for group in body["groups"]:
        yield group["groupState"]
        yield f"[{', '.join(short(member['memberId']) for member in group['members'])}]"


_Show = Callable[[Body], Iterator[str]]

_REQUESTS: dict[str, _Show] = {
    "JOIN_GROUP": _join,
    "SYNC_GROUP": _sync,
    "HEARTBEAT": _in_generation,
    "LEAVE_GROUP": _leave,
    "OFFSET_COMMIT": _in_generation,
}
_RESPONSES: dict[str, _Show] = {
    "JOIN_GROUP": _joined,
    "SYNC_GROUP": _synced,
    "LEAVE_GROUP": _left,
    "DESCRIBE_GROUPS": _described,
}
