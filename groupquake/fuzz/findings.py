"""Writes an unexplained sequence as an event file and as a readable text."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from groupquake.fuzz.sequence import Played
from kafka_protocol.errors import name_of
from loadtest.wire import Exchange
from reference_coordinator.replay import Violation

REQUEST_KEYS = (
    *("memberId", "groupInstanceId", "generationId", "generationIdOrMemberEpoch"),
    *("protocolType", "protocolName", "sessionTimeoutMs", "rebalanceTimeoutMs", "reason"),
)
RESPONSE_KEYS = (
    *("memberId", "generationId", "protocolName", "leader", "skipAssignment", "assignment"),
    *("groupState", "protocolData"),
)


def write(
    folder: Path, name: str, event_file: str, played: Played, violations: Sequence[Violation]
) -> Path:
    """Write both files; return the path of the text."""
    events = folder / f"{name}.jsonl"
    events.write_text(event_file)
    page = events.with_suffix(".txt")
    page.write_text(describe(played, violations, events))
    return page


def describe(played: Played, violations: Sequence[Violation], events: Path) -> str:
    """List the violations, then all exchanges, one a line."""
    violated = [
        f"{v.request} at {v.at_ms:.0f} ms ({v.rule}): expected {v.expected}; observed {v.observed}"
        for v in violations
    ]
    exchanges = [
        f"e{number:<4} {_line(exchange)}" for number, exchange in enumerate(played.log.exchanges, 1)
    ]
    again = f"groupquake oracle replay {events}"
    return "\n".join([f"sequence {played.number}", *violated, again, "", *exchanges, ""])


def _line(exchange: Exchange) -> str:
    answered = "-" if exchange.response is None else f"{exchange.answered_ms:.1f}"
    api = f"{exchange.connection:<7} {exchange.api} v{exchange.api_version}"
    request = f"{exchange.sent_ms:8.1f} {answered:>8}  {api} {_request(exchange.request)}"
    return f"{request} -> {_response(exchange)}"


def _request(body: Mapping[str, Any]) -> str:
    protocols = [f"{p['name']}:{p['metadata'][-6:]}" for p in body.get("protocols", ())]
    leaving = [f"({m['memberId']}, {m['groupInstanceId']})" for m in body.get("members", ())]
    shares = [f"{a['memberId']}={a['assignment'][-8:]}" for a in body.get("assignments", ())]
    return " ".join([*_shown(body, REQUEST_KEYS), *protocols, *leaving, *shares])


def _response(exchange: Exchange) -> str:
    if exchange.response is None:
        return "no response"
    body = exchange.response
    if "topics" in body:
        body = body["topics"][0]["partitions"][0]
    elif "groups" in body or "results" in body:
        body = (body.get("groups") or body["results"])[0]
    members = [
        f"({m['memberId']} {name_of(m['errorCode']) if 'errorCode' in m else ''})"
        for m in body.get("members") or ()
    ]
    return " ".join([name_of(body["errorCode"]), *_shown(body, RESPONSE_KEYS), *members])


def _shown(body: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    return [f"{key}={body[key]}" for key in keys if body.get(key) not in (None, "", False)]
