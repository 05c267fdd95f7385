"""Fetched offsets: what OffsetFetch answers, against what was committed last.

A commit that was answered without an error before a fetch arrived is what the fetch gives, unless a
later one may have been stored: one that was under way, or failed in a way that leaves its record
open. On one broker times tell the order; over a failover the leader epochs of the partition's loads
do, so that clocks need not agree: what one coordinator stored, the next one loads.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, NamedTuple

from kafka_protocol.bodies import partitions_in
from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.replay import ObservedRequest
from reports.judgement.breaches import Breach, breach
from reports.judgement.clients.offsets import partitions_of
from reports.judgement.coordinators.coordinator_epochs import CoordinatorEpochs
from reports.judgement.run.deleted_topics import Deletions, of_partition

Json = dict[str, Any]

NO_OFFSET = -1
"""What a fetch gives where no offset is stored."""
NOT_STORED = (
    Error.UNKNOWN_MEMBER_ID,
    Error.ILLEGAL_GENERATION,
    Error.FENCED_INSTANCE_ID,
    Error.REBALANCE_IN_PROGRESS,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
)
"""The answers to commits that the coordinator refused before it wrote anything."""
LOADED_MS = 50.0
"""How much later than the first answers of a coordinator its line about the load may be."""
RETENTION_MS = 60_000.0
"""The shortest `offsets.retention.minutes`, after which offsets of an empty group are deleted."""
KEPT = 64
"""How many commits of a partition are remembered for fetches to come."""


class Commit(NamedTuple):
    """A commit of one partition; `epoch` is the leader epoch in which its broker took it."""

    offset: int
    seen: ObservedRequest
    error: int
    epoch: int | None

    def before(self, other: ObservedRequest, epoch: int | None) -> bool:
        """Whether it was answered before another request was acted on."""
        return _before(self.seen, self.epoch, other, epoch)

    def after(self, other: ObservedRequest, epoch: int | None) -> bool:
        """Whether another request was answered before it was acted on."""
        return _before(other, epoch, self.seen, self.epoch)


def _before(
    one: ObservedRequest, epoch: int | None, other: ObservedRequest, of: int | None
) -> bool:
    if one.broker != other.broker or epoch != of:
        return epoch is not None and of is not None and epoch < of
    if one.connection == other.connection:  # a broker serves its requests one by one
        return one.serial < other.serial
    return one.answered_ms < other.earliest_ms


@dataclass(slots=True)
class FetchedOffsets:
    """The commits and the fetches of one group, as they come in."""

    epochs: CoordinatorEpochs
    counts: Counter[str] = field(default_factory=Counter)
    deleted: Deletions = field(default_factory=dict)
    """The topics that faults delete, and their offsets with them."""
    _commits: dict[str, list[Commit]] = field(default_factory=lambda: defaultdict(list))
    _forgotten_ms: dict[str, float] = field(default_factory=dict)
    """When the last commit of a partition was answered that is no more remembered."""
    _waiting: list[ObservedRequest] = field(default_factory=list)

    def add(
        self,
        requests: Iterable[ObservedRequest],
        fetches: Sequence[ObservedRequest],
        partition: int | None,
        known_ms: float,
        unanswered: Iterable[ObservedRequest] = (),
    ) -> Iterator[Json]:
        """Take requests of the group, whose offsets `partition` holds; yield rows of `BREACHES`.

        Whatever comes in later happens after `known_ms`. A commit that is `unanswered` may have
        been stored at any time.
        """
        for seen in unanswered:
            if seen.api == "OFFSET_COMMIT":
                for name, one in partitions_in(seen.request["topics"]):
                    open_ = Commit(one["committedOffset"], seen, Error.UNKNOWN_SERVER_ERROR, None)
                    self._commits[name].append(open_)
        for seen in requests:
            if seen.api == "OFFSET_COMMIT":
                epoch = self._epoch(seen, partition)
                for name, offset, error in partitions_of(seen):
                    # a broker that has loaded nothing so far cannot store
                    if not error or (error not in NOT_STORED and epoch is not None):
                        self._commits[name].append(Commit(offset, seen, error, epoch))
        self._waiting += fetches
        yield from self.end(partition, known_ms)
        for name, commits in self._commits.items():
            if len(commits) > KEPT:
                commits.sort(key=lambda one: one.seen.answered_ms)
                self._forgotten_ms[name] = commits[-KEPT - 1].seen.answered_ms
                del commits[:-KEPT]

    def end(self, partition: int | None, known_ms: float = inf) -> Iterator[Json]:
        """Judge the fetches of before a time; yield rows as `add`."""
        ready = [one for one in self._waiting if one.answered_ms < known_ms]
        self._waiting = [one for one in self._waiting if one.answered_ms >= known_ms]
        for fetch in ready:
            epoch = self._epoch(fetch, partition)
            for name, offset in fetched(fetch):
                if fetch.earliest_ms > self._forgotten_ms.get(name, -inf):
                    yield from self._compared(fetch, epoch, name, offset)

    def _compared(
        self, fetch: ObservedRequest, epoch: int | None, name: str, offset: int
    ) -> Iterator[Json]:
        differs = partial(
            breach,
            Breach.FETCHED_DIFFERS,
            fetch.answered_ms,
            observed=f"{fetch.client_id} fetched offset {offset} of {name}",
            shown_by=fetch,
        )
        possible = [one for one in self._commits[name] if not one.after(fetch, epoch)]
        sure = [one for one in possible if one.error == NO_ERROR and one.before(fetch, epoch)]
        deletion = of_partition(self.deleted, name)
        if deletion is not None:
            kept = [
                one for one in sure if not deletion.ends(one.seen.earliest_ms, fetch.answered_ms)
            ]
            if sure and not kept:
                # an old one that a coordinator still gives is a doubt: it may have loaded the
                # partition when the topic was gone already, and nothing said so
                self.counts["fetched"] += 1
                is_old = any(one.offset == offset for one in possible)
                if offset != NO_OFFSET and not (is_old and fetch.earliest_ms <= deletion.known_ms):
                    yield differs(f"{name} has no offset: its topic was deleted", proven=False)
            sure = kept
        if not sure:
            return
        self.counts["fetched"] += 1
        last = max(sure, key=lambda one: (one.epoch or 0, one.seen.earliest_ms))
        open_ = {one.offset for one in possible if not one.before(last.seen, last.epoch)}
        if offset in open_:
            return
        if offset > max(open_) and self._ended(last.seen, fetch):
            self.counts["fetched_unlogged"] += 1
            return
        # a commit of a transaction (KIP-98) is not logged
        known = offset == NO_OFFSET or any(one.offset == offset for one in possible)
        expired = offset == NO_OFFSET and last.seen.answered_ms < fetch.earliest_ms - RETENTION_MS
        yield differs(
            f"{name} is at offset {last.offset}, committed by request {last.seen.id}",
            proven=(known or offset < min(open_)) and not expired,
        )

    def _ended(self, last: ObservedRequest, fetch: ObservedRequest) -> bool:
        """Whether a broker ended meanwhile, whose last commits may be stored and in no log."""
        return any(
            event.kind == "ended" and last.at_ms <= event.at_ms <= fetch.answered_ms
            for event in self.epochs.of_brokers
        )

    def _epoch(self, seen: ObservedRequest, partition: int | None) -> int | None:
        loads = () if partition is None else self.epochs.loads.get(partition, ())
        until_ms = seen.answered_ms + LOADED_MS
        mine = [one for one in loads if one.broker == seen.broker and one.at_ms <= until_ms]
        return mine[-1].epoch if mine else None


def fetched(fetch: ObservedRequest) -> Iterator[tuple[str, int]]:
    """Yield the partitions and offsets that an OffsetFetch of one group was answered with."""
    response = fetch.response_fields
    for group in response.get("groups", (response,)):
        if group.get("errorCode", NO_ERROR) != NO_ERROR:
            continue
        for name, one in partitions_in(group["topics"]):
            if one["errorCode"] == NO_ERROR:
                yield name, one["committedOffset"]
