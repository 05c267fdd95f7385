"""Coordinator epochs: the evidence of a group, cut where another coordinator takes over.

Each broker has its own view of which broker coordinates a group. A broker that was paused goes on
answering for the group from memory until it learns that it was replaced. Epochs may therefore
overlap, and each is replayed by itself. One epoch hands the group's stored record to the next.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from operator import attrgetter

from kafka_protocol.append_errors import AppendError
from kafka_protocol.errors import Error
from reference_coordinator.classic import ClassicProtocol
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.replay.adoption import next_census
from reference_coordinator.replay.evidence import (
    EpochEvent,
    Evidence,
    Hint,
    HintKind,
    ObservedRequest,
    Stall,
)
from reference_coordinator.replay.lateness import Lateness, lateness_of
from reference_coordinator.replay.result import Stored
from reference_coordinator.timing import LEARNS_MS, Tolerance

NOT_REPLAYED = frozenset(("opened", *AppendError))
"""Kinds of epoch events that are no events of the coordinator where they stand."""


@dataclass(slots=True)
class CoordinatorEpoch:
    """What one broker did for the group in [start_ms, end_ms), from one load, or its start, on.

    Requests and hints come in. `of_broker` are all epoch events of the broker in order of time.
    Without a `broker` the evidence has no epoch events, and one epoch is all there is.
    `incarnation` numbers the finished loads of all brokers, from 1 on and in order of time; it is 0
    if the broker did not finish loading in this epoch.
    """

    broker: str
    start_ms: float = float("-inf")
    end_ms: float = float("inf")
    of_broker: tuple[EpochEvent, ...] = ()
    stalls: tuple[Stall, ...] = ()
    incarnation: int = 0
    requests: list[ObservedRequest] = field(default_factory=list)
    hints: list[Hint] = field(default_factory=list)
    received_ms: float | None = None
    """When the first request came to the broker process that runs at the end."""
    since_ms: float = float("-inf")
    """Up to when its events have been replayed."""
    until_ms: float = float("inf")
    """Up to when they are to be replayed."""
    inside: list[EpochEvent] = field(init=False)

    def __post_init__(self) -> None:
        """Look at the events of the epoch."""
        within = (s for s in self.of_broker if self.start_ms <= s.at_ms < self.end_ms)
        self.inside = [s for s in within if s.kind not in NOT_REPLAYED]

    def _when(self, kind: str) -> list[float]:
        return [event.at_ms for event in self.inside if event.kind == kind]

    @property
    def key(self) -> tuple[str, float]:
        """What tells it from the others of its group."""
        return self.broker, self.start_ms

    @property
    def serves(self) -> bool:
        """Whether the broker coordinates the group from the beginning: nothing shows loads."""
        return not self.broker

    @property
    def loaded_ms(self) -> float:
        """When the broker had loaded the group; infinity if it did not."""
        return min(self._when("loaded"), default=float("inf"))

    @property
    def takes_over_ms(self) -> float:
        """When the broker began to load; what its predecessor writes after that does not count."""
        return min(self._when("loading"), default=self.loaded_ms)

    @property
    def ended_ms(self) -> float:
        """The last that is known of the broker process, if it ends in this epoch."""
        return max(self._when("ended"), default=float("-inf"))

    @property
    def opens_ms(self) -> float:
        """From when on the broker process takes requests; -inf if unknown.

        An `opened` event shows it, and so does a request.
        """
        since_ms = self._process_start_ms
        opened = [s.at_ms for s in self.of_broker if s.kind == "opened" and s.at_ms >= since_ms]
        received = [] if self.received_ms is None else [self.received_ms]
        return min([*opened[:1], *received]) if opened else float("-inf")

    @property
    def _process_start_ms(self) -> float:
        starts = (s.at_ms for s in self.of_broker if s.kind == "started" and s.at_ms < self.end_ms)
        return max(starts, default=float("inf"))

    @property
    def loads_closed(self) -> bool:
        """Whether the broker loads the group before it takes requests."""
        return self.loaded_ms < self.opens_ms

    @property
    def events(self) -> list[EpochEvent]:
        """The events of the coordinator."""
        events = [event for event in self.inside if event.kind != "ended"]
        if self.loaded_ms < self.opens_ms < self.end_ms:
            events.append(EpochEvent(self.opens_ms, self.broker, "opened"))
        return events

    @property
    def epoch_events(self) -> list[EpochEvent]:
        """Those that are to be replayed."""
        return [event for event in self.events if self.since_ms <= event.at_ms < self.until_ms]

    @property
    def last_ms(self) -> float:
        """When the last that changed the group in this epoch happened."""
        answers = [seen.answered_ms if seen.response else seen.at_ms for seen in self.requests]
        hints = [hint.at_ms for hint in self.hints if hint.kind is not HintKind.NOBODY_REJOINED]
        return max(answers + hints + [event.at_ms for event in self.epoch_events], default=0.0)

    @property
    def first_census(self) -> ObservedRequest | None:
        """The first answer after the load that names the whole group."""
        return next_census(self.requests, self.loaded_ms)

    def may_load_otherwise(self, at_ms: float) -> bool:
        """Tell whether what is wrong at a time may be that another record was loaded than is known.

        Where another epoch was before, and no line tells when the coordinator took the group over,
        a timer may have expired before that, and an answer may be lost. The first census ends that.
        """
        unseen = (event.kind == "loaded" and not event.is_logged for event in self.inside)
        if self.incarnation <= 1 or not any(unseen):
            return False
        census = self.first_census
        return census is None or at_ms <= census.answered_ms

    def was_killed(self, by_ms: float) -> bool:
        """Tell whether the broker had ended by a time, and never gave the group up."""
        return any(at_ms <= by_ms for at_ms in self._when("ended")) and not self._when("unloaded")

    def resign(self, loads: Iterable[EpochEvent], late: Lateness, learns_ms: float) -> None:
        """Let the broker give the group up after another one loaded it in a higher epoch.

        `loads` are those of all brokers, `late` what may hold this one up, `learns_ms` how long it
        may take to learn of it. Nothing is added where the broker gives the group up in time by its
        own lines, or ends.
        """
        mine = next((s.epoch for s in self.inside if s.kind == "loaded"), None)
        if mine is None:
            return
        higher = (s for s in loads if s.broker != self.broker and (s.epoch or 0) > mine)
        over_ms = max(min((s.at_ms for s in higher), default=float("inf")), self.loaded_ms)
        at_ms = late.latest(over_ms, learns_ms)
        gone = self._when("unloaded") + self._when("ended")
        if at_ms < self.end_ms and all(gone_ms > at_ms for gone_ms in gone):
            self.inside.append(EpochEvent(at_ms, self.broker, "unloaded"))
            self.inside.sort(key=attrgetter("at_ms"))

    def receive(self, requests: Sequence[ObservedRequest]) -> None:
        """Take what belongs here of the broker's requests."""
        if self.received_ms is None:
            since_ms = self._process_start_ms
            received = (seen.earliest_ms for seen in requests if seen.at_ms >= since_ms)
            self.received_ms = next(received, None)
        start_ms, end_ms = self.start_ms, self.end_ms
        self.requests += [seen for seen in requests if start_ms <= seen.at_ms < end_ms]


class CoordinatorEpochs:
    """The epochs of a group, known by the epoch events alone; requests and hints come in.

    `protocol` reads responses.
    """

    def __init__(self, evidence: Evidence, tolerance: Tolerance, protocol: ClassicProtocol) -> None:
        """Take the epoch events and stalls of an evidence."""
        self._evidence, self._protocol = evidence, protocol
        self._early, self._line = tolerance.early, tolerance.line
        self._of: dict[str, list[CoordinatorEpoch]] = {}
        self._in_order: list[CoordinatorEpoch] = []
        self._loads: dict[str, list[float]] = {}
        if not evidence.epoch_events:
            self._of[""] = [CoordinatorEpoch("", stalls=evidence.stalls)]
        for broker in {s.broker for s in evidence.epoch_events}:
            self._add_broker(broker)
        loads = [s for s in evidence.epoch_events if s.kind == "loaded"]
        unaware = (one.unaware for one in evidence.partings)
        late = lateness_of(self._of, (*evidence.stalls, *evidence.loading, *unaware))
        for epoch in self.in_order():
            epoch.resign(loads, late[epoch.broker], LEARNS_MS + evidence.reconnects_ms)
        loaded = [epoch for epoch in self.in_order() if epoch.loaded_ms < float("inf")]
        for number, epoch in enumerate(loaded, 1):
            epoch.incarnation = number

    def in_order(self) -> list[CoordinatorEpoch]:
        """List them in the order in which brokers took over; those that did not come last."""
        if not self._in_order:
            epochs = (epoch for broker in sorted(self._of) for epoch in self._of[broker])
            self._in_order = sorted(epochs, key=attrgetter("loaded_ms"))  # equal: the lower broker
        return self._in_order

    def takeovers(self) -> dict[int, float]:
        """Return from when on what is written before each load does not count, by its number.

        That is when the broker begins to load, or when the one before it was cut off.
        """
        found: dict[int, float] = {}
        before = ""
        for epoch in self.in_order():
            if epoch.incarnation:
                cuts = (p for p in self._evidence.partings if p.broker == before != epoch.broker)
                times = [one.lost_from(epoch.takes_over_ms) for one in cuts]
                found[epoch.incarnation] = min([epoch.takes_over_ms, *times])
                before = epoch.broker
        return found

    def add(self, requests: Iterable[ObservedRequest], hints: Iterable[Hint]) -> None:
        """Put requests and hints, both in order of time, where they belong."""
        whole = self._of.get("")
        if whole is not None:
            whole[0].requests += requests
            whole[0].hints += hints
            return
        of_brokers = defaultdict(list)
        for seen in requests:
            of_brokers[seen.broker].append(seen)
        for broker, mine in of_brokers.items():
            if broker not in self._of:
                self._add_broker(broker)
            if loads := self._loads[broker]:
                mine[:] = [
                    self._once_it_loads(seen) if seen.at_ms < loads[-1] else seen for seen in mine
                ]
            for epoch in self._of[broker]:
                epoch.receive(mine)
        for hint in hints:
            known = [self._of.get(hint.broker, [])] if hint.broker else self._of.values()
            for epoch in chain.from_iterable(known):
                if epoch.start_ms <= hint.at_ms < epoch.end_ms:
                    epoch.hints.append(hint)

    def _once_it_loads(self, seen: ObservedRequest) -> ObservedRequest:
        """Move a request to the begin of the load that its error names, if it may have come then.

        The coordinator marks the partition before it prints that it loads it (3.9 Scala:
        GroupMetadataManager.loadGroupsAndOffsets).
        """
        latest_ms = seen.latest_ms + self._line
        load_ms = next(
            (at for at in self._loads[seen.broker] if seen.at_ms < at <= latest_ms), None
        )
        if load_ms is None or seen.response is None:
            return seen
        if self._protocol.response_of(seen).error != Error.COORDINATOR_LOAD_IN_PROGRESS:
            return seen
        sent_ms = max(load_ms, seen.latest_ms)
        answered_ms = max(sent_ms, seen.answered_ms)
        return replace(seen, at_ms=load_ms, latest_ms=sent_ms, answered_ms=answered_ms)

    def _add_broker(self, broker: str) -> None:
        self._in_order = []
        events = sorted(_of(self._evidence.epoch_events, broker), key=attrgetter("at_ms"))
        self._loads[broker] = [s.at_ms for s in events if s.kind == "loading"]
        cuts = [s.at_ms - self._early for s in events if s.kind in ("started", "loading")]
        self._of[broker] = [
            CoordinatorEpoch(
                broker, start_ms, end_ms, tuple(events), tuple(_of(self._evidence.stalls, broker))
            )
            for start_ms, end_ms in pairwise([float("-inf"), *cuts, float("inf")])
        ]


def _of(items: Iterable, broker: str) -> list:  # type: ignore[type-arg]
    return [item for item in items if item.broker == broker]


@dataclass(slots=True)
class StoredRecords:
    """The group's records as they were written: the incarnation of the writer, and the write.

    A record that could not be appended counts for nothing. `skipped_at` is how many entries there
    were when the replay skipped evidence for the last time, if it did.
    """

    stored: list[tuple[int, Stored]] = field(default_factory=list)
    skipped_at: int | None = None

    @property
    def uncertain(self) -> bool:
        """Whether the replay skipped evidence, and has seen no record written since."""
        return self.skipped_at is not None and not any(self._written(self.skipped_at))

    def skip(self) -> None:
        """Note that evidence is skipped."""
        self.skipped_at = len(self.stored)

    def mark(self) -> tuple[int, int | None]:
        """Remember how far they came, for `back_to`."""
        return len(self.stored), self.skipped_at

    def back_to(self, mark: tuple[int, int | None]) -> None:
        """Forget what came since."""
        count, self.skipped_at = mark
        del self.stored[count:]

    def loaded_by(
        self, epoch: CoordinatorEpoch, takeovers: Mapping[int, float]
    ) -> GroupRecord | None:
        """Return the record that an epoch begins with, None if there is none.

        It is the last one that was written before another broker took over; `takeovers` tells when
        each incarnation did. What a replaced coordinator writes after that does not count.
        """
        found = None
        for writer, stored in self._written(0):
            over = takeovers.get(writer + 1, float("inf"))
            if writer < epoch.incarnation and stored.at_ms <= over:
                found = stored.record
        return found

    def _written(self, first: int) -> Iterator[tuple[int, Stored]]:
        """Yield the entries from a place on whose records were appended."""
        failed = {stored.request for _, stored in self.stored if stored.failed}
        for writer, stored in self.stored[first:]:
            if stored.request is None or stored.request not in failed:
                yield writer, stored
