"""The client history: lines of `history.jsonl` in; what clients saw, event by event, out."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from operator import attrgetter
from typing import Any

EVENTS = (
    "fenced", "closing", "revoked", "lost", "killed", "closed", "created", "assigned", "committed",
    "unanswered",
)  # fmt: skip
"""The events about members that are judged; those of one instant happen in this order."""
LINE = """
    at_ms DOUBLE, member STRING, group STRING, event STRING, partitions ARRAY<STRING>,
    member_id STRING, offsets INT, instance_id STRING, api STRING, sent_at_ms DOUBLE
"""
"""The fields of a line that are read (`loadtest.history`)."""


@dataclass(frozen=True, slots=True)
class ClientEvent:
    """What a client saw: `partitions` are written `topic-number`, `offsets` counts those stored.

    `api` and `sent_at_ms` are those of a request that was never answered.
    """

    at_ms: float
    order: int
    client: str
    partitions: frozenset[str] = frozenset()
    member_id: str | None = None
    offsets: int = 0
    instance_id: str | None = None
    api: str = ""
    sent_at_ms: float = inf

    @property
    def event(self) -> str:
        """The name of the event."""
        return EVENTS[self.order]

    @property
    def place(self) -> str:
        """Where it stands in the history."""
        return f"history.jsonl: {self.event} of {self.client} at {self.at_ms:.1f}"


in_order = attrgetter("at_ms", "order", "client")
"""Orders events by time."""


def event_of(line: Mapping[str, Any]) -> ClientEvent | None:
    """Return the event of a line with the fields `LINE`; None if it is about no member's group."""
    at_ms, client, event = line.get("at_ms"), line.get("member"), line.get("event")
    if event not in EVENTS or at_ms is None or not client or line.get("group") is None:
        return None
    return ClientEvent(
        float(at_ms),
        EVENTS.index(event),
        client,
        frozenset(line.get("partitions") or ()),
        line.get("member_id") or None,
        line.get("offsets") or 0,
        line.get("instance_id") or None,
        line.get("api") or "",
        inf if line.get("sent_at_ms") is None else float(line["sent_at_ms"]),
    )


def events_by_group(lines: Iterable[str]) -> dict[str, list[ClientEvent]]:
    """Read lines; return the events of each group in order. A line that is no JSON is passed over.

    Spark does the same with the lines of a run (`reports.ingest.group_pass`).
    """
    events: dict[str, list[ClientEvent]] = defaultdict(list)
    for text in lines:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and (event := event_of(line)) is not None:
            events[line["group"]].append(event)
    return {group: sorted(found, key=in_order) for group, found in events.items()}
