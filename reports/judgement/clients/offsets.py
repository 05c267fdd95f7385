"""Committed offsets: those that go back without cause, and fetches that give others.

A member goes on from the offset that was committed last, so the offsets of a partition that its
owners commit never go back. A commit of a partition that is not the member's is a cause, and so is
one of no member (an operator's); they are not judged, and those of members are counted. A commit
that is sent again after a refusal may come after a later one, and one that waited in a connection
that its client had given up is acted on after one that the client sent later, on a new connection.

A commit that was answered without an error before an OffsetFetch arrived is what the fetch gives,
unless a later one may have been stored: one that was under way, or failed in a way that leaves its
record open. On one broker times tell the order; over a failover the leader epochs of the
partition's loads do, so that clocks need not agree: what one coordinator stored the next one loads.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import starmap
from math import inf
from typing import Any, NamedTuple

from kafka_protocol.bodies import generation_in, partitions_in
from kafka_protocol.errors import NO_ERROR, Error
from reference_coordinator.replay import ObservedRequest
from reports.judgement.breaches import AboutClient, Breach, breach
from reports.judgement.clients.foreign_commits import Foreign, Share, finding
from reports.judgement.rows import Json
from reports.judgement.run.disturbance import of_partition
from reports.judgement.run_context import RunContext
from reports.timing import LEARNED_MS, LOAD_LINE_LATE_MS, RETENTION_MS, WIRE_LATE_MS

NOT_THEIRS = "commits_of_others_partitions"
"""Counts the partitions that members committed though they were not assigned to them."""
AGAIN = (
    Error.REQUEST_TIMED_OUT,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
)
"""The errors after which clients send a commit again: librdkafka's OffsetCommit handler, Java's."""
GENERATIONS = 3
"""How many generations are known of which commits may come in: requests may overlap."""
REFUSED = 4  # how many refused offsets of a partition are kept
NO_OFFSET = -1  # what a fetch gives where no offset is stored
NOT_STORED = (
    Error.UNKNOWN_MEMBER_ID,
    Error.ILLEGAL_GENERATION,
    Error.FENCED_INSTANCE_ID,
    Error.REBALANCE_IN_PROGRESS,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
)  # the answers to commits that the coordinator refused before it wrote anything
KEPT = 64  # how many commits of a partition are remembered for fetches to come


def stored(commit: ObservedRequest) -> tuple[list[tuple[str, int]], int]:
    """Return what an OffsetCommit stored, and the last error of its answer, or 0."""
    kept, error = [], 0
    for name, offset, code in partitions_of(commit):
        if code:
            error = code
        else:
            kept.append((name, offset))
    return kept, error


def partitions_of(commit: ObservedRequest) -> Iterator[tuple[str, int, int]]:
    """Yield the partitions that an OffsetCommit was answered about: offset and error."""
    answered = partitions_in(commit.response_fields.get("topics", ()))
    errors = {name: one["errorCode"] for name, one in answered}
    for name, one in partitions_in(commit.request.get("topics", ())):
        code = errors.get(name)
        if code is not None and "committedOffset" in one:
            yield name, one["committedOffset"], code


def fetched(fetch: ObservedRequest) -> Iterator[tuple[str, int]]:
    """Yield the partitions and offsets that an OffsetFetch of one group was answered with."""
    response = fetch.response_fields
    for group in response.get("groups", (response,)):
        if group.get("errorCode", NO_ERROR) != NO_ERROR:
            continue
        for name, one in partitions_in(group["topics"]):
            if one["errorCode"] == NO_ERROR:
                yield name, one["committedOffset"]


class Commit(NamedTuple):
    """A commit of one partition; `epoch` is the leader epoch in which its broker took it."""

    offset: int
    seen: ObservedRequest
    error: int = NO_ERROR
    epoch: int | None = None

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
class Offsets:
    """The committed and the fetched offsets of one group; `partition` holds them, as far as known.

    `goes_on` tells whether a client's correlation ids go on over its connections.
    """

    context: RunContext
    goes_on: Callable[[str], bool] = lambda _: True
    counts: Counter[str] = field(default_factory=Counter)
    _shares: dict[int | None, dict[str, Share]] = field(default_factory=dict)
    """By generation, and by instance or dynamic member."""
    _foreign: dict[str, dict[str, Foreign]] = field(default_factory=lambda: defaultdict(dict))
    """By client and partition."""
    _last: dict[str, Commit] = field(default_factory=dict)
    """The last commit of each partition, with the lowest offset of those that overlap with it."""
    _refused: dict[str, deque[int]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=REFUSED))
    )  # by partition: the offsets of commits that may come again
    _commits: dict[str, list[Commit]] = field(default_factory=lambda: defaultdict(list))
    """By partition: those that a fetch to come may give."""
    _forgotten_ms: dict[str, float] = field(default_factory=dict)
    """When the last commit of a partition was answered that is no more remembered."""
    _waiting: list[ObservedRequest] = field(default_factory=list)

    def assigned(self, sync: ObservedRequest, share: frozenset[str] | None) -> None:
        """Note which partitions a member has in a generation; None if that cannot be read."""
        request = sync.request
        if request["generationId"] not in self._shares and len(self._shares) == GENERATIONS:
            del self._shares[next(iter(self._shares))]
        of_generation = self._shares.setdefault(request["generationId"], {})
        mine = Share(request["memberId"], sync.client_id, sync.answered_ms, share)
        of_generation[_member(request)] = mine

    def committed(
        self, commit: ObservedRequest, partition: int | None = None
    ) -> Iterator[AboutClient]:
        """Take a commit; yield its rows of `BREACHES`, without the group."""
        request = commit.request
        mine = self._shares.get(generation_in(request), {}).get(_member(request))
        is_known = mine is not None and mine.member_id == request.get("memberId", "")
        share = mine.partitions if mine is not None and is_known else None
        epoch = self._epoch(commit, partition)
        back = []
        for name, offset, error in partitions_of(commit):
            # a broker that has loaded nothing so far cannot store
            if not error or (error not in NOT_STORED and epoch is not None):
                self._commits[name].append(Commit(offset, commit, error, epoch))
            if error:
                continue
            lowest, last = offset, self._last.get(name)
            deletion = of_partition(self.context.deleted, name)
            if last and deletion and deletion.ends(last.seen.earliest_ms, commit.answered_ms):
                last = None
            if mine is not None and share is not None and name not in share:
                self.counts[NOT_THEIRS] += 1
                self._note_foreign(commit, mine, name, last.offset if last else offset, offset)
                lowest = min(offset, last.offset) if last else offset
            elif share is not None and last is not None:
                if self._may_be_sent_before(commit, last.seen):
                    lowest = min(offset, last.offset)
                elif offset < last.offset:
                    back.append((name, offset, last))
            self._last[name] = Commit(lowest, commit)
        sent_again = [one for one in back if one[1] in self._refused.get(one[0], ())]
        back = [one for one in back if one not in sent_again] or sent_again
        for name, offset, error in partitions_of(commit):
            if error in AGAIN:
                self._refused[name].append(offset)
        for name, offset, last in back[:1]:
            row = breach(
                Breach.OFFSET_WENT_BACK,
                commit.answered_ms,
                f"{name} goes on from offset {last.offset}, committed by request {last.seen.id}",
                f"{commit.client_id} committed {name} back from offset {last.offset:,} to"
                f" {offset:,}: the next owner reads {last.offset - offset:,} records again",
                shown_by=commit,
                proven=back != sent_again,
            )
            yield commit.client_id, row

    def _note_foreign(
        self, commit: ObservedRequest, mine: Share, name: str, before: int, after: int
    ) -> None:
        """Note a commit of a partition that is not its member's, if it is another's by now."""
        client, at_ms, generation = mine.client, commit.earliest_ms, generation_in(commit.request)
        held_up = any(
            one.excuses
            and client in one.clients
            and one.from_ms <= at_ms
            and mine.answered_ms <= one.until_ms + WIRE_LATE_MS
            for one in self.context.acts
        )
        newest = next(reversed(self._shares))
        if generation != newest or held_up or at_ms <= mine.answered_ms + LEARNED_MS:
            return
        for owner in self._shares[generation].values():
            if name in (owner.partitions or ()) and owner.client != client:
                found = self._foreign[client].get(name, Foreign(owner.client, newest))
                self._foreign[client][name] = found.and_then(commit, before, after)

    def findings(self) -> Iterator[Json]:
        """Yield rows of `CLIENT_FINDINGS`, one a client, without the group."""
        return starmap(finding, self._foreign.items())

    def _may_be_sent_before(self, commit: ObservedRequest, last: ObservedRequest) -> bool:
        """Tell whether a member may have sent a commit before one that was acted on first.

        librdkafka and Java go on with their numbers on each new connection to the coordinator;
        others may begin anew, so that theirs tell nothing. Seen on 4.3.0, where Java gave a
        connection up whose broker read it 3 s later.
        """
        if commit.earliest_ms <= last.answered_ms:
            return True
        senders = {(one.client_id, one.request.get("memberId") or "") for one in (commit, last)}
        is_old = commit.connection != last.connection and commit.serial < last.serial
        return is_old and len(senders) == 1 and self.goes_on(commit.client_id)

    def compare_fetches(
        self,
        fetches: Iterable[ObservedRequest],
        partition: int | None,
        known_ms: float = inf,
        unanswered: Iterable[ObservedRequest] = (),
    ) -> Iterator[Json]:
        """Take fetches; judge those of before `known_ms`, and yield rows of `BREACHES`.

        Whatever comes in later happens after `known_ms`. A commit that is `unanswered` may have
        been stored at any time.
        """
        for seen in unanswered:
            if seen.api == "OFFSET_COMMIT":
                for name, one in partitions_in(seen.request["topics"]):
                    open_ = Commit(one["committedOffset"], seen, Error.UNKNOWN_SERVER_ERROR)
                    self._commits[name].append(open_)
        self._waiting += fetches
        ready = [one for one in self._waiting if one.answered_ms < known_ms]
        self._waiting = [one for one in self._waiting if one.answered_ms >= known_ms]
        for fetch in ready:
            epoch = self._epoch(fetch, partition)
            for name, offset in fetched(fetch):
                if fetch.earliest_ms > self._forgotten_ms.get(name, -inf):
                    yield from self._compared(fetch, epoch, name, offset)
        for name, commits in self._commits.items():
            if len(commits) > KEPT:
                commits.sort(key=lambda one: one.seen.answered_ms)
                self._forgotten_ms[name] = commits[-KEPT - 1].seen.answered_ms
                del commits[:-KEPT]

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
        deletion = of_partition(self.context.deleted, name)
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
            for event in self.context.epochs.of_brokers
        )

    def _epoch(self, seen: ObservedRequest, partition: int | None) -> int | None:
        loads = () if partition is None else self.context.epochs.loads.get(partition, ())
        until_ms = seen.answered_ms + LOAD_LINE_LATE_MS
        mine = [one for one in loads if one.broker == seen.broker and one.at_ms <= until_ms]
        return mine[-1].epoch if mine else None


def _member(request: Mapping[str, Any]) -> str:
    """Return the instance id of a member, or its id, of a request."""
    return request.get("groupInstanceId") or request.get("memberId") or ""
