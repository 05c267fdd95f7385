"""Replays one group: its evidence, whole or as it comes in, epoch by epoch.

Of a long group that comes in in order of time, only what is still open is kept: what has been
replayed is forgotten wherever nothing was under way, and the oracle's state carries over. The rows
are those that the whole evidence gives.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from operator import attrgetter

from reference_coordinator.classic import CLASSIC, ClassicProtocol
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.replay.adoption import newest_joins
from reference_coordinator.replay.conditions import Conditions
from reference_coordinator.replay.coordinator_epochs import (
    CoordinatorEpoch,
    CoordinatorEpochs,
    StoredRecords,
)
from reference_coordinator.replay.evidence import Evidence, Hint, ObservedRequest
from reference_coordinator.replay.hints import Hints, hinted
from reference_coordinator.replay.lateness import Lateness
from reference_coordinator.replay.member_ids import unlogged_returns, with_new_ids
from reference_coordinator.replay.other_rules import Trail
from reference_coordinator.replay.replay import EpochReplay
from reference_coordinator.replay.result import Checked, Output, Replay, Violation
from reference_coordinator.timing import SEEN_AHEAD_MS, Tolerance

CHUNK = 20_000
"""How many requests of an epoch are replayed at once, where more are to come: some ten megabytes,
and enough that the few seconds that are looked at twice do not count."""

EVER_MS = 1e300
"""Later than any time."""


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
        tolerance = tolerance or Tolerance()
        self._rules = Conditions(
            profile,
            tolerance,
            outages=evidence.outages,
            protocol=protocol,
            of_partition=evidence.epoch_events,
        )
        self._chunk, self._first_alone = chunk, first_alone
        self._trails = {} if first is None else first.trails
        self._epochs = CoordinatorEpochs(evidence, tolerance, protocol)
        self._joins: list[ObservedRequest] = []
        self._evidence = replace(evidence, requests=(), hints=())
        self._replays: dict[tuple[str, float], EpochReplay] = {}
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
        self._epochs.add(requests, hints)
        joins = [seen for seen in requests if seen.api == "JOIN_GROUP"]
        self._joins += joins
        self._rules.given_ids.add(joins)
        if known_ms > float("-inf"):
            self._joins.sort(key=attrgetter("at_ms", "id"))
            for one in self._in_turn(known_ms):
                self._advance(one, known_ms)
            if len(self._joins) > self._chunk:
                waits_ms = min((seen.at_ms for seen in self.waiting), default=known_ms)
                until_ms = min(waits_ms, known_ms - SEEN_AHEAD_MS)
                self._joins[:] = newest_joins(self._joins, until_ms)

    @property
    def waiting(self) -> Iterator[ObservedRequest]:
        """The requests that have not been replayed yet."""
        return chain.from_iterable(epoch.requests for epoch in self._epochs.in_order())

    @property
    def violations(self) -> Iterator[Violation]:
        """The violations found so far."""
        return chain.from_iterable(one.outcome.violations for one in self._replays.values())

    @property
    def fullest_record(self) -> GroupRecord | None:
        """The last of the group's records with the most members; None if none was written."""
        written = (stored for one in self._replays.values() for _, stored in one.records.stored)
        records = [stored.record for stored in written if stored.record is not None]
        return max(reversed(records), key=lambda record: len(record.members), default=None)

    def checked(self) -> list[Checked]:
        """Give out the responses that were checked since the last time."""
        found = [checked for one in self._ordered() for checked in one.outcome.checked]
        for one in self._ordered():
            one.outcome.checked.clear()
        return found

    def finish(self) -> Replay:
        """Replay what is left; return the result, without what `checked` gave out before."""
        whole = Output()
        for one in self._ordered():
            if not one.ended:
                self._finish(one)
            whole.add(one.outcome)
            if self._first_alone and whole.violations:
                break
        return whole.result()

    @property
    def trails(self) -> dict[tuple[str, float], Trail]:
        """What it left of epochs for a second replay, by broker and begin."""
        found = ((key, one.trail) for key, one in self._replays.items())
        return {key: trail for key, trail in found if trail is not None}

    def _ordered(self) -> list[EpochReplay]:
        """List the epochs, in the order in which brokers took over."""
        for epoch in self._epochs.in_order():
            if epoch.key not in self._replays:
                # what an epoch without a load stores is never loaded: those come last
                records = self._records if epoch.incarnation else StoredRecords()
                self._replays[epoch.key] = EpochReplay(
                    epoch,
                    self._rules,
                    self._evidence,
                    self._joins,
                    records,
                    self._first_alone,
                    self._chunk,
                )
        return [self._replays[epoch.key] for epoch in self._epochs.in_order()]

    def _in_turn(self, known_ms: float) -> Iterator[EpochReplay]:
        """Yield the epochs that may go on: an epoch begins with the record of those before it."""
        waits = False
        for one in self._ordered():
            loads = one.epoch.incarnation > 0
            if one.ended or (loads and waits):
                continue
            if one.epoch.end_ms < known_ms:
                self._finish(one)
                continue
            yield one
            waits |= loads and not one.is_over

    def _begin(self, one: EpochReplay) -> None:
        """Find the record that an epoch begins with, as its first responses show it."""
        if one.begun:
            return
        one.begun, one.reads_before = True, self._rules.profile.reads
        if not one.records.stored:
            return
        epoch = one.epoch
        record = one.records.loaded_by(epoch, self._epochs.takeovers())
        befores = (e for e in self._epochs.in_order() if e.incarnation == epoch.incarnation - 1 > 0)
        before = next(befores, None)
        if (
            record is not None
            and before is not None
            and self._rules.profile.return_is_stored
            and before.was_killed(epoch.loaded_ms)
        ):
            given_ids = self._rules.given_ids
            new_ids = unlogged_returns(record, epoch.requests, given_ids, epoch.loaded_ms)
            if new_ids:
                one.outcome.bind("unlogged_return", len(new_ids))
            record = with_new_ids(record, new_ids)
        one.stored_record = record

    def _finish(self, one: EpochReplay) -> None:
        """Replay what is left of an epoch."""
        if not one.is_empty:
            self._begin(one)
            one.run(self._trails.get(one.epoch.key))
        one.end()

    def _advance(self, one: EpochReplay, known_ms: float) -> None:
        """Replay an epoch up to a time at which nothing is under way, if there is such a time.

        It is cut only where lines tell of the group: without any, later evidence may speak for
        another explanation of all before.
        """
        epoch = one.epoch
        unloads = (event for event in epoch.inside if event.kind == "unloaded")
        leaves = any(epoch.since_ms <= event.at_ms < known_ms for event in unloads)
        if (len(epoch.requests) < one.wanted and not leaves) or not epoch.hints:
            return
        placed = hinted(epoch.requests, Hints.of(epoch.hints))
        cut = self._cut(epoch, placed, known_ms - SEEN_AHEAD_MS, leaves=leaves)
        if cut is not None:
            count, end_ms = cut
            self._begin(one)
            before = {seen.id for seen in placed[:count]}
            whole, epoch.until_ms = epoch.requests, end_ms
            epoch.requests = [seen for seen in whole if seen.id in before]
            done = one.run_to(end_ms, EVER_MS if count == len(placed) else end_ms)
            epoch.requests, epoch.until_ms = whole, float("inf")
            if done:
                epoch.since_ms, one.wanted = end_ms, self._chunk
                epoch.requests = [seen for seen in whole if seen.id not in before]
                late = [hint for hint in epoch.hints if hint.at_ms >= end_ms - SEEN_AHEAD_MS]
                epoch.hints = late or epoch.hints[-1:]
                return
        one.wanted = max(one.wanted, len(epoch.requests)) * 3 // 2

    def _cut(
        self,
        epoch: CoordinatorEpoch,
        placed: Sequence[ObservedRequest],
        by_ms: float,
        *,
        leaves: bool,
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

    def _windows(self, epoch: CoordinatorEpoch) -> Iterator[tuple[float, float]]:
        """Yield the times in which what a broker logged about its partition may have happened."""
        tolerance, lateness = self._rules.tolerance, Lateness.of(epoch.stalls)
        early, events = tolerance.early, epoch.events
        for event in events:
            loads = (s.at_ms for s in events if s.kind == "loading" and s.at_ms <= event.at_ms)
            begun_ms = max(loads, default=event.at_ms) if event.kind == "loaded" else event.at_ms
            yield begun_ms - early, lateness.latest(event.at_ms, tolerance.timer) + early


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
    `replace(CLASSIC, step=mutant)`.
    """
    whole = GroupReplay(evidence, profile, tolerance, first_alone=first_alone, protocol=protocol)
    whole.add(evidence.requests, evidence.hints)
    return whole.finish()
