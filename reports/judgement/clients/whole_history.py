"""Whether a client history is whole: each member's processes begin and end in it.

A member writes `created` before it sends anything, and how its process ended: all 299 members of 54
runs did, most of these on a machine that was starved of CPU. What is missing is a doubt.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

from reference_coordinator.replay import ObservedRequest
from reports.judgement.breaches import Breach, breach
from reports.judgement.clients.client_answers import SEEN_MS
from reports.judgement.run.history import ENDS, ClientEvent

Json = dict[str, Any]


@dataclass(slots=True)
class WholeHistory:
    """The first requests of one group's `members`, and how their processes begin and end."""

    members: Collection[str] = ()
    _first: dict[str, tuple[float, ObservedRequest]] = field(default_factory=dict)
    _created_ms: dict[str, float] = field(default_factory=dict)
    _running: dict[str, ClientEvent] = field(default_factory=dict)

    def sent(self, seen: ObservedRequest, arrived_ms: float) -> None:
        """Take a request."""
        client = seen.client_id
        if client in self.members and arrived_ms < self._first.get(client, (inf, None))[0]:
            self._first[client] = arrived_ms, seen

    def reported(self, events: Iterable[ClientEvent]) -> None:
        """Take events, in order of time."""
        for event in events:
            if event.event == "created":
                self._created_ms.setdefault(event.client, event.at_ms)
                self._running[event.client] = event
            elif event.event in ENDS:
                self._running.pop(event.client, None)

    def rows(self) -> Iterator[Json]:
        """Yield the rows of `BREACHES` about what is missing, without the group."""
        for client, (arrived_ms, seen) in sorted(self._first.items()):
            if self._created_ms.get(client, inf) > arrived_ms + SEEN_MS:
                expected = f"{client} says created before it sends its first request"
                yield _missing(arrived_ms, expected, shown_by=seen)
        for client, event in sorted(self._running.items()):
            if client in self.members:
                expected = f"{client} says how its process ended"
                yield _missing(event.at_ms, expected, history=event.place)


def _missing(at_ms: float, expected: str, **place: Any) -> Json:
    observed = "the history has nothing of it"
    return breach(Breach.DISAGREE, at_ms, expected, observed, proven=False, **place)
