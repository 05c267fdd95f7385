"""Owners by the clients' own account: no partition has two at one instant.

As far as the protocol promises it: a member gives up what it loses before it joins the generation
that gives it to another (eager), or before the generation after it (cooperative, KIP-429). So the
former owner must have given up, if it joined the generation of the new one. One that did not join
it (evicted, removed, absent), or whose instance id the new owner has now, is out. It owns its
partitions until its next answer says so; that is counted apart.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

from reference_coordinator.replay import ObservedRequest
from reports.judgement.breaches import AboutClient, Breach, breach
from reports.judgement.clients.client_answers import in_words
from reports.judgement.clients.offsets import stored
from reports.judgement.run.history import ClientEvent
from reports.timing import OWNED_TWICE_MS, OWNED_TWICE_PROVEN_MS

Json = dict[str, Any]

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
    held: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The partitions of each client, written `topic-number`."""
    _owner: dict[str, str] = field(default_factory=dict)
    _joined: dict[str, deque[tuple[int, float]]] = field(default_factory=_last_few)
    _instance: dict[str, str | None] = field(default_factory=dict)
    _overlaps: list[_Overlap] = field(default_factory=list)
    _out: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    """The partitions that clients which are out go on to own, and since when another does, ms."""
    _knows_ms: dict[str, deque[float]] = field(default_factory=_last_few)

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
        client = event.client
        by_former: dict[str, set[str]] = defaultdict(set)
        for partition in event.partitions:
            former = self._owner.get(partition, client)
            if former != client and partition in self.held[former]:
                by_former[former].add(partition)
            self._owner[partition] = client
        self.held[client] |= event.partitions
        self._is_not_out_of(client, event.partitions)
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

    def gave_up(self, event: ClientEvent, partitions: frozenset[str]) -> Iterator[AboutClient]:
        """Take partitions from a client; yield a row if another had them already."""
        client = event.client
        self.held[client] -= partitions
        self._is_not_out_of(client, partitions)
        for overlap in self._overlaps:
            both = overlap.partitions & partitions if overlap.former == client else frozenset()
            overlap.partitions -= both
            if both and event.at_ms - overlap.event.at_ms > OWNED_TWICE_MS:
                yield overlap.row(both, event.at_ms)
        self._overlaps = [one for one in self._overlaps if one.partitions]

    def _is_not_out_of(self, client: str, partitions: frozenset[str]) -> None:
        """Forget that another owns what a client gave up, or was assigned again."""
        for partition in partitions:
            self._out[client].pop(partition, None)

    def end(self) -> Iterator[AboutClient]:
        """Yield the rows of those that never gave up."""
        return (overlap.row(overlap.partitions, inf) for overlap in self._overlaps)
