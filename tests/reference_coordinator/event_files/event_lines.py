"""Event files for tests: made up, or what the clients of a recording would have written down."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from reference_coordinator.event_files.reading import FORMAT, EventSequence, read
from reference_coordinator.replay import ObservedRequest
from reports.judgement.recording import Line, Recording
from tests.recorded.logs import observed as seen_of
from tests.reference_coordinator.replay.conftest import START, Scenario

EARLY_MS = 40.0
"""How far an arrival may be earlier than a log tells: its lines are written late (`reports`)."""
NOT_COORDINATOR_ERRORS = (14, 15, 16)
"""What a broker answers that does not coordinate the group, or does not yet."""


def header(**fields: Any) -> str:
    """Begin a sequence."""
    release = {"kafka": "4.3.0", "coordinator": "java", "config": {}}
    return json.dumps({"format": FORMAT, **release, "group": "g", "sequence": 0, **fields})


def end(at_ms: float) -> str:
    """End a sequence."""
    return json.dumps({"at_ms": at_ms, "end": True})


def as_line(seen: ObservedRequest, sent_ms: float, answered_ms: float) -> str:
    """Write a request down as its client saw it."""
    line: dict[str, Any] = {
        "at_ms": sent_ms,
        "id": seen.id,
        "connection": seen.connection,
        "api": seen.api,
        "api_version": seen.api_version,
        "client_id": seen.client_id,
        "client_host": seen.client_host,
        "request": seen.request,
    }
    if seen.response is not None:
        line |= {"answered_at_ms": answered_ms, "response": seen.response}
    return json.dumps(line)


def one(lines: Iterable[str]) -> EventSequence:
    """Read a file of one sequence."""
    (sequence,) = read(lines, "events")
    return sequence


def coordinator_of(recording: Recording, group: str) -> tuple[str, float]:
    """Return who coordinated a group first, and from when on."""
    loads = [s for s in recording.evidence(group).epoch_events if s.kind == "loaded"]
    first = min(loads, key=lambda event: event.at_ms)
    return first.broker, first.at_ms


def from_log(recording: Recording, group: str, lines: Iterable[Line]) -> list[str]:
    """Turn the lines about a group into an event file, those of one coordinator epoch."""
    broker, loaded_ms = coordinator_of(recording, group)
    observed = [
        (line.at_ms - line.request["totalTimeMs"] - EARLY_MS, line.at_ms, seen_of(line.row))
        for line in lines
        if line.request is not None and line.broker == broker
    ]
    observed = [
        (sent_ms, answered_ms, seen)
        for sent_ms, answered_ms, seen in observed
        if sent_ms + EARLY_MS > loaded_ms
        and seen.response_fields.get("errorCode") not in NOT_COORDINATOR_ERRORS
    ]
    began_ms = min(sent_ms for sent_ms, *_ in observed)
    environment = recording.environment
    return [
        header(
            kafka=environment["kafka_version"],
            coordinator=environment["coordinator"],
            config=environment["broker_config"],
            group=observed[0][2].request["groupId"],
        ),
        *_in_order(observed, began_ms),
        end(max(answered_ms for _, answered_ms, _ in observed) - began_ms),
    ]


def _in_order(
    observed: list[tuple[float, float, ObservedRequest]], began_ms: float
) -> Iterator[str]:
    """Yield the lines as they were sent; on a connection one after the other."""
    last: dict[str, float] = {}
    placed = []
    for sent_ms, answered_ms, seen in sorted(observed, key=lambda item: item[2].serial):
        at_ms = max(sent_ms, last.get(seen.connection, sent_ms))
        last[seen.connection] = at_ms
        placed.append((at_ms, answered_ms, seen))
    for sent_ms, answered_ms, seen in sorted(placed, key=lambda item: item[0]):
        yield as_line(seen, sent_ms - began_ms, answered_ms - began_ms)


def of_scenario(scenario: Scenario, end_ms: float = 60_000.0) -> list[str]:
    """Write a scenario as an event file; each request is acted on anywhere before its answer."""
    config = {"group.initial.rebalance.delay.ms": 500, "group.min.session.timeout.ms": 1_000}
    asked = sorted(scenario.requests, key=lambda seen: seen.at_ms)
    lines = (as_line(seen, seen.at_ms - START, seen.answered_ms - START) for seen in asked)
    return [header(config=config), *lines, end(end_ms)]
