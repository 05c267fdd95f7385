"""The lines about one group in, in order of time; its counts, and storms as they begin, out.

What is kept is bounded: rebalances are numbers, but for the last ones.
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


class Storm(msgspec.Struct, tag_field="event", tag="storm"):
    """A storm that has begun: so many rebalances of the group within `STORM_MS`."""

    group: str
    from_ms: float
    until_ms: float
    rebalances: int
    clients: list[str]


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
    """What is counted of a group; `causes` and `clients` are of those no longer in `recent`."""

    recent: Rebalances = msgspec.field(default_factory=Rebalances)
    causes: dict[str, int] = {}
    clients: dict[str, int] = {}
    storms: int = 0
    storm_until_ms: float | None = None

    def take(self, line: Line) -> Iterator[Storm]:
        """Take the next line about the group; yield a storm that begins by it."""
        known = self._known()
        self.recent.take(line)
        # only a rebalance that was not known before can begin a storm, or go on with one
        found = storms(self.recent.beginnings()) if self._known() != known else []
        for storm in found[-1:]:
            until_ms, self.storm_until_ms = self.storm_until_ms, storm.until_ms
            if until_ms is None or storm.from_ms > until_ms:  # else it is a part of the last one
                self.storms += 1
                of = Counter(name for one in self.recent.found[-5:] for name in one.clients)
                yield Storm(
                    line.group or "", *storm, clients=[name for name, _ in of.most_common()]
                )
        if max(len(self.recent.found), len(self.recent.changes)) >= 2 * KEPT:
            self.causes, self.clients = self._summed(self.recent.forget(KEPT))

    def _known(self) -> tuple[int, int]:
        return len(self.recent.found), len(self.recent.chain.missing)

    def view(self, name: str) -> GroupView:
        """Return what is shown of the group."""
        found = self.recent.found
        causes, clients = self._summed(found)
        took_ms = (one.took_ms for one in reversed(found) if one.took_ms is not None)
        return GroupView(
            name, sum(causes.values()), causes, clients, self.recent.chain.generation,
            next(took_ms, None), self.storms, bool(found) and found[-1].ending in UNENDED,
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
