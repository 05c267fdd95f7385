"""The client history: lines of `history.jsonl` in; what clients saw, event by event, out."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from operator import attrgetter
from typing import Any

EVENTS = (
    "fenced", "closing", "revoked", "lost", "killed", "closed", "created", "assigned", "committed",
    "unanswered",
)  # fmt: skip
"""The events about members that are judged; those of one instant happen in this order."""
ENDS = ("fenced", "closing", "closed", "killed")
"""The events with which a process ends."""
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
    """Return the event of a line with the fields `LINE`; None if it is about no member's group.

    None, too, if a value is none that a client writes, such as a time that is no number.
    """
    texts = [line.get(name) for name in ("member_id", "instance_id", "api")]
    times: list[Any] = [line.get("at_ms"), line.get("sent_at_ms") or 0.0]
    named = [line.get("member"), line.get("group")]
    partitions, offsets = line.get("partitions") or [], line.get("offsets") or 0
    if (
        line.get("event") not in EVENTS
        or not all(isinstance(name, str) and name for name in named)
        or not all(type(time) in (int, float) and isfinite(time) for time in times)
        or not (isinstance(partitions, list) and all(isinstance(p, str) for p in partitions))
        or not (type(offsets) is int and all(text is None or type(text) is str for text in texts))
    ):
        return None
    sent_at_ms = line.get("sent_at_ms")
    return ClientEvent(
        float(line["at_ms"]),
        EVENTS.index(line["event"]),
        line["member"],
        frozenset(partitions),
        texts[0] or None,
        offsets,
        texts[1] or None,
        texts[2] or "",
        inf if sent_at_ms is None else float(sent_at_ms),
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
