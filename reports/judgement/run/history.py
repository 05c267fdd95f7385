"""The client history: lines of `history.jsonl` in; what clients saw, event by event, out."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from reports.judgement.run.journal import BACK_MS
from reports.judgement.run.json_form import Account, Entry, Form, entry

if TYPE_CHECKING:
    from reports.judgement.run.run_folder import RunFolder

EVENTS = (
    "fenced", "closing", "revoked", "lost", "killed", "closed", "created", "assigned", "committed",
    "unanswered",
)  # fmt: skip
"""The events about members that are judged; those of one instant happen in this order."""
ENDS = ("fenced", "closing", "closed", "killed")
"""The events with which a process ends."""
OTHERS = ("error", "produced", "hub_lag", "leased", "worker_lost")
"""The other events; with those above, all that `loadtest.history` writes."""
LINE = """
    at_ms DOUBLE, member STRING, group STRING, kind STRING, event STRING, partitions ARRAY<STRING>,
    member_id STRING, offsets INT, instance_id STRING, api STRING, sent_at_ms DOUBLE, max_ms DOUBLE
"""
"""The fields of a line that are read."""

_NUMBER = int | float
_EVERY: Form = {
    "at_ms": _NUMBER,
    "event": str,
    "partitions": list | None,
    "offsets": int | None,
    "sent_at_ms": _NUMBER | None,
    "max_ms": _NUMBER | None,
    **dict.fromkeys(("member", "group", "kind", "member_id", "instance_id", "api"), str | None),
}
_OF_CLIENT: Form = {"member": str}  # a producer has no group
_OF_MEMBER: Form = {"member": str, "group": str}
_OF_OWNER: Form = {**_OF_MEMBER, "partitions": list}
_FORMS: dict[str, Form] = {
    **dict.fromkeys(("created", "closing", "closed"), _OF_CLIENT),
    **dict.fromkeys(("assigned", "revoked", "lost", "fenced", "killed"), _OF_OWNER),
    "committed": {**_OF_MEMBER, "offsets": int},
    "unanswered": {**_OF_MEMBER, "api": str, "sent_at_ms": _NUMBER},
    "hub_lag": {"max_ms": _NUMBER},
}
"""The fields that an event cannot be without."""
_MOST = 1 << 31


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


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads lines of a history that was written between two times, in ms."""

    span: tuple[float, float] = (-inf, inf)

    @classmethod
    def of(cls, run: "RunFolder") -> "Reader":
        """Return what reads the history of a run, which machines with other clocks may write."""
        times = [entry["at_ms"] for entry in run.journal]
        first_ms, last_ms = min(times, default=-inf), max(times, default=inf)
        return cls((first_ms - BACK_MS, last_ms + BACK_MS if run.completed else inf))

    def __call__(self, line: bytes) -> Entry:
        """Return what a line says. Raises ValueError, in words, for what no client writes."""
        said = entry(line, _EVERY, _FORMS)
        if said["event"] not in (*EVENTS, *OTHERS):
            raise ValueError("no client knows its 'event'")
        if not self.span[0] <= said["at_ms"] <= self.span[1]:
            raise ValueError("'at_ms' is not while the run lasted")
        if not all(isinstance(one, str) for one in said.get("partitions") or ()):
            raise ValueError("'partitions' are not texts")
        if not 0 <= (said.get("offsets") or 0) < _MOST:
            raise ValueError("'offsets' is no count")
        if "" in (said.get("member"), said.get("group")):
            raise ValueError("a name is empty")
        return said


def event_of(said: Mapping[str, Any]) -> ClientEvent | None:
    """Return the event that a line of a history tells; None if it is about no member's group."""
    if said["event"] not in EVENTS or not said.get("group"):
        return None
    sent_at_ms = said.get("sent_at_ms")
    return ClientEvent(
        float(said["at_ms"]),
        EVENTS.index(said["event"]),
        said["member"],
        frozenset(said.get("partitions") or ()),
        said.get("member_id") or None,
        said.get("offsets") or 0,
        said.get("instance_id") or None,
        said.get("api") or "",
        inf if sent_at_ms is None else float(sent_at_ms),
    )


def events_by_group(
    lines: Iterable[bytes], reader: Reader, account: Account
) -> dict[str, list[ClientEvent]]:
    """Read lines; return the events of each group in order, and keep account of the lines.

    Spark does the same with the lines of a run (`reports.ingest.client_history`).
    """
    events: dict[str, list[ClientEvent]] = defaultdict(list)
    for said in account.entries(lines, reader):
        if (event := event_of(said)) is not None:
            events[said["group"]].append(event)
    return {group: sorted(found, key=in_order) for group, found in events.items()}
