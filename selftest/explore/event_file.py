"""A trace as an event file, for `groupquake oracle replay` and for those who want to send it.

Requests of one instant stand two milliseconds apart. A trace with a failover, a failed write or an
operator's requests other than LeaveGroup has no event file: clients alone do not see all of it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kafka_protocol.errors import NO_ERROR
from reference_coordinator.classic.effects import Answer
from reference_coordinator.classic.events import Event, RecordWritten, TimerFired
from reference_coordinator.classic.releases import NEWEST, default_coordinator
from reference_coordinator.driving.bodies import response_body
from reference_coordinator.event_files.reading import FORMAT
from selftest.explore.scene import GROUP, Stepped
from selftest.timing import TRACE_STEP_MS

OF_MEMBERS = ("JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP", "OFFSET_COMMIT")


def event_file(steps: Iterable[Stepped], profile: str, settings: Mapping[str, int]) -> str:
    """Write a trace as JSON lines; "" if it has no event file. `settings` are the broker's."""
    lines: list[dict[str, Any]] = []
    asked = {}
    connections: Counter[str] = Counter()
    at_ms = 0.0
    for each in steps:
        at_ms = max(at_ms + TRACE_STEP_MS, each.event.at_ms)
        if each.asked is not None and each.asked.api in OF_MEMBERS:
            sender = each.asked.client_id
            waits = [line for line in lines if line["client_id"] == sender]
            connections[sender] += bool(waits) and "response" not in waits[-1]
            lines.append({
                "at_ms": at_ms, "id": each.asked.id,
                "connection": f"{sender}-{connections[sender]}", "api": each.asked.api,
                "api_version": each.asked.api_version, "client_id": sender,
                "client_host": each.asked.client_host, "request": each.asked.request,
            })  # fmt: skip
            asked[each.asked.id] = each.asked, lines[-1]
        elif each.asked is not None or not _clients_see(each.event):
            return ""
        for effect in each.effects:
            if isinstance(effect, Answer):
                request, line = asked[effect.request]
                line["answered_at_ms"] = at_ms + TRACE_STEP_MS / 2
                line["response"] = response_body(effect.response, request)
    release = profile if profile[0].isdigit() else NEWEST.name
    kafka, _, coordinator = release.partition("-")
    header = {
        "format": FORMAT, "kafka": kafka if kafka.count(".") > 1 else f"{kafka}.0",
        "coordinator": coordinator or default_coordinator(kafka), "config": dict(settings),
        "group": GROUP, "sequence": 0,
    }  # fmt: skip
    return "".join(
        json.dumps(line) + "\n"
        for line in [header, *lines, {"at_ms": at_ms + TRACE_STEP_MS, "end": True}]
    )


def _clients_see(event: Event) -> bool:
    if isinstance(event, RecordWritten):
        return event.error is NO_ERROR
    return isinstance(event, TimerFired)
