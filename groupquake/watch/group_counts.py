"""The lines about one group in, in order of time; its counts, and what has just happened, out.

What is kept is bounded: rebalances that are over are numbers, but for the last ones.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from reports.incident.group_incident import storms
from reports.incident.lines.reader import Line
from reports.incident.rebalances import UNENDED, Rebalance, Rebalances

KEPT = 100
"""How many rebalances and changes of a group are kept; twice as many before some are forgotten."""
CLIENTS, OTHERS = 100, "(others)"
"""How many clients of a group are counted each by its own name; and the name of all further."""


class Ended(msgspec.Struct, tag_field="event", tag="rebalance"):
    """A rebalance that is over; `ended_ms` is None where its end is not in the lines."""

    group: str
    at_ms: float
    ended_ms: float | None
    generation: int
    cause: str
    clients: list[str]
    ending: str
    broker: str


class Storm(msgspec.Struct, tag_field="event", tag="storm"):
    """A storm that has begun: so many rebalances of the group within `STORM_MS`."""

    group: str
    from_ms: float
    until_ms: float
    rebalances: int
    clients: list[str]


Event = Ended | Storm


class GroupView(NamedTuple):
    """What is shown of a group. `last_ms` is how long its last rebalance took that has an end."""

    name: str
    rebalances: int
    causes: Mapping[str, int]
    clients: Mapping[str, int]
    generation: int | None
    last_ms: float | None
    storms: int
    is_going_on: bool


class GroupCounts(msgspec.Struct):
    """What is counted of a group; `causes` and `clients` are of those no longer in `recent`.

    `events` says of how many rebalances the end was given out.
    """

    recent: Rebalances = msgspec.field(default_factory=Rebalances)
    causes: dict[str, int] = {}
    clients: dict[str, int] = {}
    generation: int | None = None
    last_ms: float | None = None
    storms: int = 0
    storm_until_ms: float | None = None
    events: int = 0

    def take(self, line: Line) -> Iterator[Event]:
        """Take the next line about the group; yield what has happened by it."""
        assert line.group is not None, "lines about no group are not counted"
        found = self.recent.found
        self.recent.take(line)
        generation = line.fields.get("generation", "")
        if generation.isdecimal() and len(generation) < 10:
            self.generation = int(generation)
        while self.events < len(found) and _is_over(found, self.events):
            over = found[self.events]
            self.events += 1
            self.last_ms = self.last_ms if over.took_ms is None else over.took_ms
            yield Ended(
                line.group, over.at_ms, over.ended_ms, over.generation, over.reason,
                over.clients, over.ending, over.broker,
            )  # fmt: skip
        yield from self._storm(line.group)
        if max(len(found), len(self.recent.changes)) >= 2 * KEPT:
            gone = self.recent.forget(KEPT)
            self.causes, self.clients = self._summed(gone)
            self.events -= len(gone)

    def _storm(self, group: str) -> Iterator[Storm]:
        """Yield the last storm, unless it is a part of the one before."""
        for storm in storms(self.recent.beginnings())[-1:]:
            until_ms, self.storm_until_ms = self.storm_until_ms, storm.until_ms
            if until_ms is None or storm.from_ms > until_ms:
                self.storms += 1
                of = Counter(name for one in self.recent.found[-5:] for name in one.clients)
                yield Storm(group, *storm, clients=[name for name, _ in of.most_common()])

    def view(self, name: str) -> GroupView:
        """Return what is shown of the group."""
        found = self.recent.found
        causes, clients = self._summed(found)
        going_on = bool(found) and not _is_over(found, len(found) - 1)
        return GroupView(
            name, sum(causes.values()), causes, clients, self.generation, self.last_ms,
            self.storms, going_on,
        )  # fmt: skip

    def _summed(self, more: Iterable[Rebalance]) -> tuple[dict[str, int], dict[str, int]]:
        """Return the counts by cause and by client, with those of more rebalances."""
        causes, clients = Counter(self.causes), Counter(self.clients)
        for one in more:
            causes[one.reason] += 1
            for client in one.clients:
                is_named = client in clients or len(clients) < CLIENTS
                clients[client if is_named else OTHERS] += 1
        return causes, clients


def _is_over(found: list[Rebalance], number: int) -> bool:
    """Tell whether a rebalance has its end, or will have none: another one follows it."""
    return found[number].ending not in UNENDED or number < len(found) - 1
