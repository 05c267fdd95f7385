"""What clients saw: which member owned each partition when, and when a member was stopped.

Source is the client history. It is shown beside the brokers' logs: a member that was fenced or
evicted believes that it owns its partitions until a response says otherwise. `owners` judges it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import fsum
from operator import itemgetter
from typing import Any

from reports.judgement.run.history import ClientEvent, in_order

Json = dict[str, Any]

DUPLICATE = ".duplicate"  # stands behind the name of a member that was started twice

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
    "created": "vanished", "open": "open",
}  # fmt: skip
"""How the ownership of a client ends with it: another `created` without an end of the first client
means that it is unknown how that one ended."""
_EVENTS = frozenset({*GONE_AS, "revoked", "lost", "assigned"})


def about_members(events: Iterable[ClientEvent]) -> Iterator[ClientEvent]:
    """Yield the events by which members come, go, are given partitions or lose them."""
    return (event for event in events if event.event in _EVENTS)


def rows(events: Iterable[ClientEvent]) -> Iterator[tuple[str, Json]]:
    """Yield the rows of `TABLES` about one group, each with the name of its table, in order."""
    by_client: dict[str, list[ClientEvent]] = defaultdict(list)
    last_ms = 0.0
    for event in sorted(events, key=in_order):
        by_client[event.client].append(event)
        last_ms = event.at_ms
    found: dict[str, list[Json]] = {"ownership": [], "stops": []}
    for mine in by_client.values():
        for table, row in _spans(mine, last_ms):
            found[table].append(row)
    owned = list(_in_succession(found["ownership"]))
    yield from (("ownership", row) for row in owned)
    stops = sorted(found["stops"], key=itemgetter("from_ms", "member"))
    yield from (("stops", row) for row in stops)
    yield from (("handovers", row) for row in _handovers(owned))


def _spans(events: Sequence[ClientEvent], last_ms: float) -> Iterator[tuple[str, Json]]:
    """Yield what a client owned when, and when it was stopped; whatever goes on ends in the end."""
    assigned: dict[str, ClientEvent] = {}
    stopped: list[ClientEvent] = []
    is_over = False
    end = replace(events[-1], at_ms=last_ms)
    for event, name in (*((one, one.event) for one in events), (end, "open")):
        is_gone = name in GONE_AS
        ended = {"until_ms": event.at_ms, "ended_as": GONE_AS.get(name, name)}
        for partition in [*assigned] if is_gone else event.partitions:
            if given := assigned.pop(partition, None):
                yield "ownership", {"partition": partition, **_began(given), **ended}
        if is_gone or name == "assigned":
            for one in stopped if name != "fenced" else ():
                stopped_ms = round(event.at_ms - one.at_ms, 1)
                lost = {"partitions": len(one.partitions), "stopped_ms": stopped_ms}
                yield "stops", {**_began(one), **ended, **lost}
            stopped.clear()
        if is_gone:
            is_over = name != "created"
        elif name == "assigned":
            assigned |= dict.fromkeys(event.partitions, event)
        elif event.partitions and not assigned and not is_over:
            stopped.append(event)


def _began(event: ClientEvent) -> Json:
    return {"member": event.client, "kind": event.kind, "from_ms": event.at_ms}


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
