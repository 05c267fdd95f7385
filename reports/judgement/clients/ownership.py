"""Who owned each partition when, by the clients' own account; and no partition has two owners.

Source is the client history, as it is compared with the brokers' answers. A member that was fenced
or evicted believes that it owns its partitions until a response says otherwise.

The protocol promises one owner: a member gives up what it loses before it joins the generation that
gives it to another (eager), or before the generation after it (cooperative, KIP-429). So the former
owner must have given up, if it joined the generation of the new one. One that did not join it
(evicted, removed, absent), or whose instance id the new owner has now, is out. It owns its
partitions until its next answer says so; that is counted apart.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from math import fsum, inf
from operator import itemgetter
from typing import Any

from reference_coordinator.replay import ObservedRequest
from reports.judgement.breaches import AboutClient, Breach, breach
from reports.judgement.clients.client_answers import in_words
from reports.judgement.clients.offsets import stored
from reports.judgement.rows import Json
from reports.judgement.run.history import ClientEvent
from reports.timing import OWNED_TWICE_MS, OWNED_TWICE_PROVEN_MS

DUPLICATE = ".duplicate"  # `scenarios.setup.DUPLICATE`; executors have no `scenarios`

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
UNTIL_ANSWERED = "owned_twice_until_answered"
"""Counts the partitions that a member which is out goes on to own beside their new owner."""
REMEMBERED = 8  # how many generations and answers of a member are remembered


@dataclass(slots=True)
class _Overlap:
    """Partitions that two clients own since `event`, and what gave them to the second."""

    former: str
    event: ClientEvent
    sync: ObservedRequest
    partitions: frozenset[str]

    def row(self, partitions: frozenset[str], until_ms: float) -> AboutClient:
        """Return the row about some of them that its former owner gave up at a time, or never."""
        since_ms, some = self.event.at_ms, in_words(partitions)
        how_long = "to the end" if until_ms == inf else f"for {until_ms - since_ms:.0f} ms"
        row = breach(
            Breach.OWNED_TWICE,
            since_ms,
            f"{self.former} gives up {some} before {self.event.client} is assigned it",
            f"{self.former} and {self.event.client} both own {some} {how_long}",
            shown_by=self.sync,
            history=self.event.place,
            proven=until_ms - since_ms > OWNED_TWICE_PROVEN_MS,
        )
        return self.former, row


def _last_few() -> defaultdict[str, deque[Any]]:
    return defaultdict(partial(deque, maxlen=REMEMBERED))


@dataclass(slots=True)
class Owners:
    """Which client of a group owns which partitions, event after event."""

    counts: Counter[str]
    held: dict[str, dict[str, ClientEvent]] = field(default_factory=lambda: defaultdict(dict))
    """The partitions of each client, written `topic-number`, and what assigned them to it."""
    _owner: dict[str, str] = field(default_factory=dict)
    _joined: dict[str, deque[tuple[int, float]]] = field(default_factory=_last_few)
    _instance: dict[str, str | None] = field(default_factory=dict)
    _overlaps: list[_Overlap] = field(default_factory=list)
    _out: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    """The partitions that clients which are out go on to own, and since when another does, ms."""
    _knows_ms: dict[str, deque[float]] = field(default_factory=_last_few)
    _spans: list[Json] = field(default_factory=list)
    _stops: list[Json] = field(default_factory=list)
    _stopped: dict[str, list[ClientEvent]] = field(default_factory=lambda: defaultdict(list))
    """What took all partitions from clients that are stopped."""
    _ended: set[str] = field(default_factory=set)  # the clients whose process has begun to end
    _last_ms: float = 0.0

    def joined(self, join: ObservedRequest) -> None:
        """Note a JoinGroup that was answered NONE."""
        generation = join.response_fields["generationId"]
        self._joined[join.client_id].append((generation, join.answered_ms))
        self._instance[join.client_id] = join.request.get("groupInstanceId")

    def answered(self, client: str, at_ms: float) -> None:
        """Note an answer that says to a client that it is out."""
        self._knows_ms[client].append(at_ms)

    def assigned(self, event: ClientEvent, sync: ObservedRequest | None) -> None:
        """Give partitions to a client; `sync` was answered with them, if that is known."""
        client, by_former = event.client, defaultdict[str, set[str]](set)
        for partition in event.partitions:
            former = self._owner.get(partition, client)
            if former != client and partition in self.held[former]:
                by_former[former].add(partition)
            self._owner[partition] = client
        self._take(event, event.partitions)
        self._go_on(event)
        self.held[client] |= dict.fromkeys(event.partitions, event)
        if sync is None:
            return
        for former, partitions in by_former.items():
            if self._is_out(former, client, sync):
                self.counts[UNTIL_ANSWERED] += len(partitions)
                self._out[former].update(dict.fromkeys(partitions, sync.answered_ms))
            else:
                self._overlaps.append(_Overlap(former, event, sync, frozenset(partitions)))

    def _is_out(self, former: str, owner: str, sync: ObservedRequest) -> bool:
        instance = self._instance.get(owner)
        if instance is not None and instance == self._instance.get(former):
            return True
        generation = sync.request["generationId"]
        return not any(
            of == generation and answered_ms <= sync.answered_ms
            for of, answered_ms in self._joined[former]
        )

    def committed(self, event: ClientEvent, commit: ObservedRequest) -> Iterator[AboutClient]:
        """Judge a commit of a client that is out, and knows it."""
        out = self._out.get(event.client)
        if not out:
            return
        knows_ms = [at_ms for at_ms in self._knows_ms[event.client] if at_ms < commit.earliest_ms]
        names = [
            name
            for name, _ in stored(commit)[0]
            if name in out and any(out[name] < at_ms for at_ms in knows_ms)
        ]
        if names:
            del self._out[event.client]
            some = in_words(names)
            row = breach(
                Breach.OWNED_TWICE,
                event.at_ms,
                f"{event.client} gives up {some} once an answer says that it is out",
                f"{event.client} commits {some}, which {self._owner[min(names)]} owns",
                shown_by=commit,
                history=event.place,
            )
            yield event.client, row

    def gave_up(self, event: ClientEvent) -> Iterator[AboutClient]:
        """Take partitions from a client: some, or all where its process begins or ends.

        Yield a row for each owner before that gave them up too late.
        """
        client, is_gone = event.client, event.event in GONE_AS
        partitions = frozenset(self.held[client]) if is_gone else event.partitions
        self._take(event, partitions)
        if is_gone:
            self._go_on(event)
            if event.event == "created":
                self._ended.discard(client)
            else:
                self._ended.add(client)
        elif partitions and not self.held[client] and client not in self._ended:
            self._stopped[client].append(event)
        for overlap in self._overlaps:
            both = overlap.partitions & partitions if overlap.former == client else frozenset()
            overlap.partitions -= both
            if both and event.at_ms - overlap.event.at_ms > OWNED_TWICE_MS:
                yield overlap.row(both, event.at_ms)
        self._overlaps = [one for one in self._overlaps if one.partitions]

    def _take(self, event: ClientEvent, partitions: Iterable[str]) -> None:
        """End what a client owns of some partitions; forget that another owns them."""
        self._last_ms, client = event.at_ms, event.client
        for partition in partitions:
            self._out[client].pop(partition, None)
            if given := self.held[client].pop(partition, None):
                span = {"partition": partition, **_began(given), **_ended(event.at_ms, event.event)}
                self._spans.append(span)

    def _go_on(self, event: ClientEvent) -> None:
        """End the time in which a client is stopped: it goes on, or its process begins or ends."""
        stopped = self._stopped.pop(event.client, ())
        if event.event != "fenced":
            self._stops += (_stop(one, event.at_ms, event.event) for one in stopped)

    def end(self) -> Iterator[AboutClient]:
        """Yield the rows of those that never gave up."""
        return (overlap.row(overlap.partitions, inf) for overlap in self._overlaps)

    def rows(self) -> Iterator[tuple[str, Json]]:
        """Yield the rows of `TABLES`, by table; what goes on ends with the last event."""
        over = _ended(self._last_ms, "open")
        spans = [
            *self._spans,
            *(
                {"partition": partition, **_began(given), **over}
                for mine in self.held.values()
                for partition, given in mine.items()
            ),
        ]
        owned = list(_in_succession(spans))
        still = (one for stopped in self._stopped.values() for one in stopped)
        stops = [*self._stops, *(_stop(one, self._last_ms, "open") for one in still)]
        yield from (("ownership", row) for row in owned)
        yield from (("stops", row) for row in sorted(stops, key=itemgetter("from_ms", "member")))
        yield from (("handovers", row) for row in _handovers(owned))


def _ended(at_ms: float, name: str) -> Json:
    return {"until_ms": at_ms, "ended_as": GONE_AS.get(name, name)}


def _stop(lost: ClientEvent, until_ms: float, name: str) -> Json:
    stopped_ms = round(until_ms - lost.at_ms, 1)
    ended = _ended(until_ms, name)
    return {**_began(lost), **ended, "partitions": len(lost.partitions), "stopped_ms": stopped_ms}


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
