"""What clients saw: which member owned each partition when, and when a member was stopped.

Source is the client history. It is shown beside the brokers' logs: a member that was fenced or
evicted believes that it owns its partitions until a response says otherwise. `owners` judges it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from math import fsum
from operator import itemgetter
from typing import Any

from reports.judgement.run.history import ClientEvent, in_order

Json = dict[str, Any]

DUPLICATE = ".duplicate"
"""Stands behind the name of a member that was started twice."""

OWNERSHIP = """
    group STRING, partition STRING, member STRING, kind STRING, from_ms DOUBLE, until_ms DOUBLE,
    ended_as STRING, moved BOOLEAN, unowned_ms DOUBLE, overlap_ms DOUBLE, overlaps STRING
"""
"""One row for each assignment of a partition: its member owned it in this time.

A member owns a partition from `assigned` until the partition is revoked or lost, or the client
ends; `closing` counts as the end, since the client polls no more. `ended_as` is `open` where
ownership never ended. `moved` means that the last owner had another name: a static member that gets
its own partitions back moves nothing, nor does a second process of the same member. `unowned_ms` is
how long the partition had no owner before, `overlap_ms` how long it had two, and `overlaps` names
the earlier owner."""
STOPS = """
    group STRING, member STRING, kind STRING, from_ms DOUBLE, until_ms DOUBLE, ended_as STRING,
    partitions INT, stopped_ms DOUBLE
"""
"""When members were stopped: they had partitions and lost all of them.

A member loses them in a rebalance, or when it learns or assumes that it is no member any more. The
stop lasts until its next assignment, even an empty one, or until its client ends. An eager assignor
stops every member in every rebalance. A cooperative one revokes only what moves: the member goes on
with the rest and is not stopped; `unowned_ms` measures the time of the moved partitions for both.
Starting up, closing and being fenced are no stops."""
HANDOVERS = "group STRING, at_ms DOUBLE, moved INT, unowned_ms DOUBLE"
"""The partitions that members of a group were assigned at one instant: how many of them moved, and
the sum of the times that they had no owner."""
TABLES = {"ownership": OWNERSHIP, "stops": STOPS, "handovers": HANDOVERS}

GONE_AS: Mapping[str, str] = {
    "fenced": "fenced", "killed": "killed", "closing": "closed", "closed": "closed",
    "created": "vanished",
}  # fmt: skip
"""How the ownership of a client ends with it: another `created` without an end of the first client
means that it is unknown how that one ended."""
TAKEN = ("revoked", "lost")
_EVENTS = frozenset({*GONE_AS, *TAKEN, "assigned"})


def about_members(events: Iterable[ClientEvent]) -> Iterator[ClientEvent]:
    """Yield the events by which members come, go, are given partitions or lose them."""
    return (event for event in events if event.event in _EVENTS)


@dataclass(slots=True)
class _Client:
    """What a client owns, event after event; rows of the tables, once they are whole."""

    held: list[Json] = field(default_factory=list)
    stops: list[Json] = field(default_factory=list)
    _assigned: dict[str, ClientEvent] = field(default_factory=dict)
    """By partition that it owns."""
    _stopped: list[ClientEvent] = field(default_factory=list)
    _is_over: bool = False
    """Whether its process has ended, or is about to."""

    def saw(self, event: ClientEvent) -> None:
        """Take the next event."""
        gone_as = GONE_AS.get(event.event)
        if gone_as is not None:
            self.ends(event.at_ms, gone_as)
            self._is_over = event.event != "created"
            return
        self._gives_up(event.partitions, event.at_ms, event.event)
        if event.event == "assigned":
            self._goes_on(event.at_ms, event.event)
            self._assigned |= dict.fromkeys(event.partitions, event)
        elif event.partitions and not self._assigned and not self._is_over:
            self._stopped.append(event)

    def ends(self, at_ms: float, ended_as: str) -> None:
        """End whatever goes on."""
        self._gives_up([*self._assigned], at_ms, ended_as)
        self._goes_on(at_ms, ended_as)

    def _gives_up(self, partitions: Iterable[str], at_ms: float, ended_as: str) -> None:
        for partition in partitions:
            if (given := self._assigned.pop(partition, None)) is not None:
                row = {"partition": partition, **_span(given, at_ms, ended_as)}
                self.held.append(row)

    def _goes_on(self, at_ms: float, ended_as: str) -> None:
        """End its stop, if it is stopped."""
        for event in self._stopped if ended_as != "fenced" else ():
            row = _span(event, at_ms, ended_as)
            lost = {
                "partitions": len(event.partitions),
                "stopped_ms": round(at_ms - event.at_ms, 1),
            }
            self.stops.append(row | lost)
        self._stopped.clear()


def _span(began: ClientEvent, until_ms: float, ended_as: str) -> Json:
    """Return the columns that holdings and stops have in common."""
    return {
        "member": began.client, "kind": began.kind, "from_ms": began.at_ms, "until_ms": until_ms,
        "ended_as": ended_as,
    }  # fmt: skip


def rows(events: Iterable[ClientEvent]) -> Iterator[tuple[str, Json]]:
    """Yield the rows of `TABLES` about one group, each with the name of its table, in order."""
    clients: dict[str, _Client] = defaultdict(_Client)
    last_ms = 0.0
    for event in sorted(events, key=in_order):
        clients[event.client].saw(event)
        last_ms = event.at_ms
    for client in clients.values():
        client.ends(last_ms, "open")
    held = [row for client in clients.values() for row in client.held]
    owned = list(_in_succession(held))
    yield from (("ownership", row) for row in owned)
    stops = [row for client in clients.values() for row in client.stops]
    yield from (("stops", row) for row in sorted(stops, key=itemgetter("from_ms", "member")))
    yield from (("handovers", row) for row in _handovers(owned))


def _in_succession(held: Iterable[Json]) -> Iterator[Json]:
    """Complete the rows of `OWNERSHIP` by what was before each of them."""
    order = itemgetter("partition", "from_ms", "until_ms", "member")
    for _, of_partition in groupby(sorted(held, key=order), key=itemgetter("partition")):
        former: str | None = None
        last_ms, last = float("-inf"), ""  # when the last owner's time ends, and who that is
        for row in of_partition:
            name = row["member"].removesuffix(DUPLICATE)
            from_ms, until_ms = row["from_ms"], row["until_ms"]
            is_shared = last_ms > from_ms
            yield row | {
                "moved": former not in (None, name),
                # to the precision of the history, so that sums do not depend on their order
                "unowned_ms": round(max(0.0, from_ms - last_ms), 1) if former else 0.0,
                "overlap_ms": round(min(until_ms, last_ms) - from_ms, 1) if is_shared else 0.0,
                "overlaps": last if is_shared else None,
            }
            former = name
            last_ms, last = max((last_ms, last), (until_ms, row["member"]))


def _handovers(owned: Iterable[Json]) -> Iterator[Json]:
    """Sum up rows of `OWNERSHIP` by when they begin."""
    at = itemgetter("from_ms")
    for at_ms, together in groupby(sorted(owned, key=at), key=at):
        given = list(together)
        yield {
            "at_ms": at_ms,
            "moved": sum(row["moved"] for row in given),
            "unowned_ms": round(fsum(row["unowned_ms"] for row in given), 1),
        }
