"""Replays one group: its evidence, whole or as it comes in, epoch by epoch.

Of a long group that comes in in order of time, only what is still open is kept: what has been
replayed is forgotten wherever nothing was under way, and the oracle's state carries over. The rows
are those that the whole evidence gives.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from operator import attrgetter

from reference_coordinator.classic import CLASSIC, ClassicProtocol
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Service
from reference_coordinator.replay.adoption import newest_joins
from reference_coordinator.replay.alternatives import GivenIds
from reference_coordinator.replay.coordinator_epochs import (
    CoordinatorEpoch,
    Span,
    Spans,
    StoredRecords,
)
from reference_coordinator.replay.evidence import Evidence, Hint, ObservedRequest, Tolerance
from reference_coordinator.replay.hints import NEW_ID_SEEMS_LATE_MS, Hints, hinted
from reference_coordinator.replay.lateness import Lateness
from reference_coordinator.replay.other_rules import Trail
from reference_coordinator.replay.replay import Replayer
from reference_coordinator.replay.result import Checked, Outcome, Replay, Violation
from reference_coordinator.replay.unlogged_returns import (
    may_have_stored_more,
    unlogged_returns,
    with_new_ids,
)

CHUNK = 20_000
"""How many requests of an epoch are replayed at once, where more are to come: some ten megabytes,
and enough that the few seconds that are looked at twice do not count."""
SEEN_AHEAD_MS = NEW_ID_SEEMS_LATE_MS + 2_000.0
"""How far ahead the evidence has to be known: as late as a line may come that tells when a request
was acted on, and as a timer may run out or an answer may be sent."""

GONE = ("unloaded",)
"""After these events a broker stores no record of the group any more."""
EVER_MS = 1e300
"""Later than any time."""


@dataclass(slots=True)
class EpochReplay:
    """The replay of one epoch, as far as it has come; `wanted` requests are waited for."""

    span: Span
    records: StoredRecords
    wanted: int
    outcome: Outcome = field(default_factory=Outcome)
    replayer: Replayer | None = None
    ended: bool = False
    trail: Trail | None = None
    done_ms: float = float("-inf")
    """Up to when events and hints have been replayed."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing can come of the epoch: it has no requests, and loads no group."""
        span = self.span
        loads = not span.broker or span.loaded_ms < float("inf")
        return not (loads or span.requests or self.replayer)

    @property
    def is_over(self) -> bool:
        """Whether the broker gave the group up, and stores no record of it any more."""
        hypothesis = None if self.replayer is None else self.replayer.hypothesis
        return hypothesis is not None and (
            hypothesis.group.service is Service.ABSENT and not hypothesis.timers.running
        )


class GroupReplay:
    """The replay of one group by a profile; `evidence` is what is known of it beforehand.

    With `first_alone` it ends at the first violation. The `step` of `protocol` is the coordinator
    that the brokers are compared with.
    """

    def __init__(
        self,
        evidence: Evidence,
        profile: Profile,
        tolerance: Tolerance | None = None,
        *,
        first_alone: bool = False,
        protocol: ClassicProtocol = CLASSIC,
        chunk: int = CHUNK,
        first: "GroupReplay | None" = None,
    ) -> None:
        """Begin; the requests and hints of `evidence` are left out of account.

        `first` is the finished replay of the same evidence by a `NotedRules` with those rules as
        `differing` in which this profile differs; see `other_rules`.
        """
        self.tolerance = tolerance or Tolerance()
        self._profile, self._protocol, self._chunk = profile, protocol, chunk
        self._first_alone = first_alone
        self._trails = {} if first is None else first.trails
        self._spans = Spans(evidence, self.tolerance, protocol)
        self._joins: list[ObservedRequest] = []
        self._given_ids = GivenIds()
        self._everything = replace(evidence, requests=(), hints=())
        self._epochs: dict[tuple[str, float], EpochReplay] = {}
        self._records = StoredRecords()

    def add(
        self,
        requests: Sequence[ObservedRequest],
        hints: Iterable[Hint],
        known_ms: float = float("-inf"),
    ) -> None:
        """Take more of the evidence; requests and hints are in order of time.

        Whatever is still to come happens after `known_ms`.
        """
        self._spans.add(requests, hints)
        joins = [seen for seen in requests if seen.api == "JOIN_GROUP"]
        self._joins += joins
        self._given_ids.add(joins)
        if known_ms > float("-inf"):
            self._joins.sort(key=attrgetter("at_ms", "id"))
            for epoch in self._in_turn(known_ms):
                self._advance(epoch, known_ms)
            if len(self._joins) > self._chunk:
                waits_ms = min((seen.at_ms for seen in self.waiting), default=known_ms)
                self._joins = newest_joins(self._joins, min(waits_ms, known_ms - SEEN_AHEAD_MS))

    @property
    def waiting(self) -> Iterator[ObservedRequest]:
        """The requests that have not been replayed yet."""
        return chain.from_iterable(span.requests for span in self._spans.in_order())

    @property
    def violations(self) -> Iterator[Violation]:
        """The violations found so far."""
        return chain.from_iterable(epoch.outcome.violations for epoch in self._epochs.values())

    @property
    def fullest_record(self) -> GroupRecord | None:
        """The last of the group's records with the most members; None if none was written."""
        found = None
        for epoch in self._epochs.values():
            for _, stored in epoch.records.stored:
                record = stored.record
                if record and (found is None or len(record.members) >= len(found.members)):
                    found = record
        return found

    def checked(self) -> list[Checked]:
        """Give out the responses that were checked since the last time."""
        found = [checked for epoch in self._ordered() for checked in epoch.outcome.checked]
        for epoch in self._ordered():
            epoch.outcome.checked.clear()
        return found

    def finish(self) -> Replay:
        """Replay what is left; return the result, without what `checked` gave out before."""
        whole = Outcome()
        for epoch in self._ordered():
            if not epoch.ended:
                self._finish(epoch)
            whole.add(epoch.outcome)
            if self._first_alone and whole.violations:
                break
        return whole.result()

    def _ordered(self) -> list[EpochReplay]:
        """List the epochs, in the order in which brokers took over."""
        for span in self._spans.in_order():
            key = span.broker, span.start_ms
            if key not in self._epochs:
                # what an epoch without a load stores is never loaded: those come last
                records = self._records if span.incarnation else StoredRecords()
                self._epochs[key] = EpochReplay(span, records, self._chunk)
        return [self._epochs[span.broker, span.start_ms] for span in self._spans.in_order()]

    def _in_turn(self, known_ms: float) -> Iterator[EpochReplay]:
        """Yield the epochs that may go on: an epoch begins with the record of those before it."""
        waits = False
        for epoch in self._ordered():
            loads = epoch.span.incarnation > 0
            if epoch.ended or (loads and waits):
                continue
            if epoch.span.end_ms < known_ms:
                self._finish(epoch)
                continue
            yield epoch
            waits |= loads and not epoch.is_over

    def _replayer(self, epoch: EpochReplay) -> Replayer:
        everything = replace(self._everything, requests=tuple(self._joins))
        reads_before = self._profile.reads
        loaded = epoch.span.epoch()
        if epoch.replayer is None:
            epoch.replayer = Replayer(
                everything,
                loaded,
                self._profile,
                self.tolerance,
                epoch.outcome,
                epoch.records,
                self._loaded_by(epoch, loaded),
                self._first_alone,
                self._protocol,
                self._given_ids,
                reads_before=reads_before,
            )
        if epoch.done_ms > float("-inf"):
            left = tuple(s for s in loaded.epoch_events if s.at_ms >= epoch.done_ms)
            loaded = replace(loaded, epoch_events=left)
        epoch.replayer.everything, epoch.replayer.epoch = everything, loaded
        return epoch.replayer

    def _loaded_by(self, epoch: EpochReplay, loaded: CoordinatorEpoch) -> GroupRecord | None:
        """Return the record that an epoch begins with, as its first responses show it."""
        if not epoch.records.stored:
            return None
        span = epoch.span
        record = epoch.records.loaded_by(loaded, self._spans.takeovers())
        befores = (s for s in self._spans.in_order() if s.incarnation == span.incarnation - 1 > 0)
        before = next(befores, None)
        if record is None or not may_have_stored_more(before, span.loaded_ms, self._profile):
            return record
        new_ids = unlogged_returns(record, span.requests, self._given_ids, span.loaded_ms)
        if not new_ids:
            return record
        epoch.outcome.bound["unlogged_return"] += len(new_ids)
        return with_new_ids(record, new_ids)

    def _finish(self, epoch: EpochReplay) -> None:
        """Replay what is left of an epoch."""
        if not epoch.is_empty:
            replayer = self._replayer(epoch)
            replayer.run(self._trails.get((epoch.span.broker, epoch.span.start_ms)))
            epoch.trail = replayer.trail
        epoch.ended = True
        epoch.replayer = None
        epoch.span.requests, epoch.span.hints = [], []

    @property
    def trails(self) -> dict[tuple[str, float], Trail]:
        """What it left of epochs for a second replay, by broker and begin."""
        found = ((key, epoch.trail) for key, epoch in self._epochs.items())
        return {key: trail for key, trail in found if trail is not None}

    def _advance(self, epoch: EpochReplay, known_ms: float) -> None:
        """Replay an epoch up to a time at which nothing is under way, if there is such a time.

        It is cut only where lines tell of the group: without any, later evidence may speak for
        another explanation of all before.
        """
        span = epoch.span
        leaves = any(epoch.done_ms <= s.at_ms < known_ms for s in span.inside if s.kind in GONE)
        if (len(span.requests) < epoch.wanted and not leaves) or not span.hints:
            return
        placed = hinted(span.requests, Hints.of(span.hints))
        cut = self._cut(epoch, placed, known_ms - SEEN_AHEAD_MS, leaves=leaves)
        if cut is not None:
            count, end_ms = cut
            before = {seen.id for seen in placed[:count]}
            replayer = self._replayer(epoch)
            replayer.epoch = replace(
                replayer.epoch,
                requests=tuple(seen for seen in span.requests if seen.id in before),
                epoch_events=tuple(s for s in replayer.epoch.epoch_events if s.at_ms < end_ms),
            )
            if replayer.run_to(end_ms, EVER_MS if count == len(placed) else end_ms):
                epoch.done_ms, epoch.wanted = end_ms, self._chunk
                span.requests = [seen for seen in span.requests if seen.id not in before]
                late = [hint for hint in span.hints if hint.at_ms >= end_ms - SEEN_AHEAD_MS]
                span.hints = late or span.hints[-1:]
                return
        epoch.wanted = max(epoch.wanted, len(span.requests)) * 3 // 2

    def _cut(
        self, epoch: EpochReplay, placed: Sequence[ObservedRequest], by_ms: float, *, leaves: bool
    ) -> tuple[int, float] | None:
        """Return how many requests are over when the next one comes, and when that is.

        It is as late as it can be, up to `by_ms`. If the broker `leaves` the group all may be over.
        """
        reach = [*accumulate((max(seen.latest_ms, seen.answered_ms) for seen in placed), max)]
        windows = list(self._windows(epoch))
        end_ms, count = (by_ms if leaves else float("inf")), len(placed)
        while count > 0:
            apart = reach[count - 1] < end_ms <= by_ms
            if apart and not any(from_ms < end_ms <= to_ms for from_ms, to_ms in windows):
                return count, end_ms
            count -= 1
            end_ms = min(end_ms, placed[count].earliest_ms)
        return None

    def _windows(self, epoch: EpochReplay) -> Iterator[tuple[float, float]]:
        """Yield the times in which what a broker logged about its partition may have happened."""
        early, lateness = self.tolerance.early, Lateness.of(epoch.span.stalls)
        events = epoch.span.epoch().epoch_events
        for event in events:
            loads = (s.at_ms for s in events if s.kind == "loading" and s.at_ms <= event.at_ms)
            begun_ms = max(loads, default=event.at_ms) if event.kind == "loaded" else event.at_ms
            yield begun_ms - early, lateness.latest(event.at_ms, self.tolerance.timer) + early


def replay(
    evidence: Evidence,
    profile: Profile,
    tolerance: Tolerance | None = None,
    *,
    first_alone: bool = False,
    protocol: ClassicProtocol = CLASSIC,
) -> Replay:
    """Replay one group's evidence under a profile.

    With `first_alone` the replay ends at the first violation. The `step` of `protocol` is the
    coordinator that the brokers are compared with. A mutant takes its place by
    `replace(CLASSIC, step=mutant)`; `classic.mutants` has them.
    """
    whole = GroupReplay(evidence, profile, tolerance, first_alone=first_alone, protocol=protocol)
    whole.add(evidence.requests, evidence.hints)
    return whole.finish()
