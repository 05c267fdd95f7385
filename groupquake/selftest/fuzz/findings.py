"""What is left of an unexplained sequence: an event file, and a page for people."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from groupquake.selftest.fuzz.sequence import Played
from kafka_protocol.errors import name_of
from loadtest.wire import Exchange
from reference_coordinator.replay import Violation

ASKED = (
    *("memberId", "groupInstanceId", "generationId", "generationIdOrMemberEpoch"),
    *("protocolType", "protocolName", "sessionTimeoutMs", "rebalanceTimeoutMs", "reason"),
)
TOLD = (
    *("memberId", "generationId", "protocolName", "leader", "skipAssignment", "assignment"),
    *("groupState", "protocolData"),
)


def write(
    folder: Path, name: str, event_file: str, played: Played, violations: Sequence[Violation]
) -> Path:
    """Write both files; return the page's path."""
    events = folder / f"{name}.jsonl"
    events.write_text(event_file)
    page = events.with_suffix(".txt")
    page.write_text(describe(played, violations, events))
    return page


def describe(played: Played, violations: Sequence[Violation], events: Path) -> str:
    """Tell what is unexplained, and what was said until then, a line each."""
    told = [
        f"{v.request} at {v.at_ms:.0f} ms ({v.rule}): expected {v.expected}; observed {v.observed}"
        for v in violations
    ]
    said = [
        f"e{number:<4} {_line(exchange)}" for number, exchange in enumerate(played.log.exchanges, 1)
    ]
    again = f"groupquake oracle replay {events}"
    return "\n".join([f"sequence {played.number}", *told, again, "", *said, ""])


def _line(said: Exchange) -> str:
    answered = "-" if said.response is None else f"{said.answered_ms:.1f}"
    request = f"{said.connection:<7} {said.api} v{said.api_version} {_senders(said.request)}"
    return f"{said.sent_ms:8.1f} {answered:>8}  {request} -> {_told(said)}"


def _senders(body: Mapping[str, Any]) -> str:
    protocols = [f"{p['name']}:{p['metadata'][-6:]}" for p in body.get("protocols", ())]
    leaving = [f"({m['memberId']}, {m['groupInstanceId']})" for m in body.get("members", ())]
    shares = [f"{a['memberId']}={a['assignment'][-8:]}" for a in body.get("assignments", ())]
    return " ".join([*_shown(body, ASKED), *protocols, *leaving, *shares])


def _told(said: Exchange) -> str:
    if said.response is None:
        return "no answer"
    body = said.response
    if "topics" in body:
        body = body["topics"][0]["partitions"][0]
    elif "groups" in body or "results" in body:
        body = (body.get("groups") or body["results"])[0]
    members = [
        f"({m['memberId']} {name_of(m['errorCode']) if 'errorCode' in m else ''})"
        for m in body.get("members") or ()
    ]
    return " ".join([name_of(body["errorCode"]), *_shown(body, TOLD), *members])


def _shown(body: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    return [f"{key}={body[key]}" for key in keys if body.get(key) not in (None, "", False)]
