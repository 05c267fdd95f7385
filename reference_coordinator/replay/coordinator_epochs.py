"""Coordinator epochs: the evidence of a group, cut where another coordinator takes over.

Each broker has its own view of which broker coordinates a group. A broker that was paused goes on
answering for the group from memory until it learns that it was replaced. Epochs may therefore
overlap, and each is replayed by itself. One epoch hands the group's stored record to the next.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kafka_protocol.errors import Error
from reference_coordinator.classic import ClassicProtocol
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.replay.evidence import EpochEvent, Evidence, Hint, ObservedRequest, Stall


@dataclass(frozen=True, slots=True)
class CoordinatorEpoch:
    """What one broker did for the group from one load, or its start, to the next.

    `incarnation` numbers the finished loads of all brokers, from 1 on and in order of time; it is 0
    if the broker did not finish loading in this epoch. `serves` tells whether the broker
    coordinates the group from the beginning, as is assumed where the evidence shows no loads.
    `ended_ms` is the last that is known of the broker process, if it ends in this epoch. The broker
    takes requests from `opens_ms` on.
    """

    incarnation: int
    loaded_ms: float
    requests: tuple[ObservedRequest, ...]
    hints: tuple[Hint, ...]
    epoch_events: tuple[EpochEvent, ...]
    stalls: tuple[Stall, ...]
    serves: bool = False
    ended_ms: float = float("-inf")
    opens_ms: float = float("-inf")

    @property
    def loads_closed(self) -> bool:
        """Whether the broker loads the group before it takes requests."""
        return self.loaded_ms < self.opens_ms

    @property
    def takes_over_ms(self) -> float:
        """When the broker began to load; what its predecessor writes after that does not count."""
        begins = (
            epoch_event.at_ms for epoch_event in self.epoch_events if epoch_event.kind == "loading"
        )
        return min(begins, default=self.loaded_ms)

    @property
    def end_ms(self) -> float:
        """When the last that is known of the group in this epoch happened."""
        answers = [r.answered_ms if r.response else r.at_ms for r in self.requests]
        lines = [hint.at_ms for hint in self.hints] + [load.at_ms for load in self.epoch_events]
        return max(answers + lines, default=0.0)


def coordinator_epochs(
    evidence: Evidence, early: float, protocol: ClassicProtocol
) -> list[CoordinatorEpoch]:
    """Cut the evidence into epochs, in the order in which brokers took over.

    `early` is how far the time of a request may lie too early, in ms. `protocol` reads responses.
    """
    if not evidence.epoch_events:
        whole = (evidence.requests, evidence.hints, (), evidence.stalls)
        return [CoordinatorEpoch(0, float("-inf"), *whole, serves=True)]
    parts = [
        part
        for broker in sorted(
            {seen.broker for seen in evidence.requests} | {s.broker for s in evidence.epoch_events}
        )
        for part in _of_broker(evidence, broker, early, protocol)
    ]
    parts.sort(key=lambda part: part.loaded_ms)  # of the same time: the lower broker first
    return [
        replace(part, incarnation=number if part.loaded_ms < float("inf") else 0)
        for number, part in enumerate(parts, 1)
    ]


def _of_broker(
    evidence: Evidence, broker: str, early: float, protocol: ClassicProtocol
) -> Iterator[CoordinatorEpoch]:
    """Cut what one broker did wherever it started or began to load."""
    epoch_events = sorted(
        _of(evidence.epoch_events, broker), key=lambda epoch_event: epoch_event.at_ms
    )
    cuts = [s.at_ms - early for s in epoch_events if s.kind in ("started", "loading")]
    loads = [s.at_ms for s in epoch_events if s.kind == "loading"]
    requests = [_once_it_loads(seen, loads, protocol) for seen in _of(evidence.requests, broker)]
    starts = [float("-inf"), *cuts]
    for start, end in zip(starts, [*cuts, float("inf")], strict=True):
        inside = [s for s in epoch_events if start <= s.at_ms < end and s.kind != "opened"]
        loaded_ms = next((s.at_ms for s in inside if s.kind == "loaded"), float("inf"))
        opens_ms = _opens(epoch_events, requests, end)
        if loaded_ms < opens_ms < end:
            inside.append(EpochEvent(opens_ms, broker, "opened"))
        ended = (s.at_ms for s in inside if s.kind == "ended")
        epoch = CoordinatorEpoch(
            0,
            loaded_ms,
            tuple(seen for seen in requests if start <= seen.at_ms < end),
            tuple(h for h in evidence.hints if h.broker in ("", broker) and start <= h.at_ms < end),
            tuple(s for s in inside if s.kind != "ended"),
            tuple(_of(evidence.stalls, broker)),
            ended_ms=max(ended, default=float("-inf")),
            opens_ms=opens_ms,
        )
        if epoch.requests or epoch.epoch_events:
            yield epoch


def _opens(
    epoch_events: Iterable[EpochEvent], requests: Iterable[ObservedRequest], before_ms: float
) -> float:
    """Return when the broker process that runs at a time began to take requests; -inf if unknown.

    An `opened` event shows it, and so does a request. Both are in order of time.
    """
    starts = [s.at_ms for s in epoch_events if s.kind == "started" and s.at_ms < before_ms]
    start = max(starts, default=float("inf"))
    opened = [s.at_ms for s in epoch_events if s.kind == "opened" and s.at_ms >= start]
    received = [seen.earliest_ms for seen in requests if seen.at_ms >= start]
    return min([*opened[:1], *received[:1]]) if opened else float("-inf")


def _once_it_loads(
    seen: ObservedRequest, loads: Iterable[float], protocol: ClassicProtocol
) -> ObservedRequest:
    """Move a request to the begin of the load that its error is about, if it may have come then."""
    load_ms = next((at for at in loads if seen.at_ms < at <= seen.latest_ms), None)
    if load_ms is None or seen.response is None:
        return seen
    loading = protocol.response_of(seen).error == Error.COORDINATOR_LOAD_IN_PROGRESS
    return replace(seen, at_ms=load_ms) if loading else seen


def _of(items: Iterable, broker: str) -> list:  # type: ignore[type-arg]
    return [item for item in items if item.broker == broker]


@dataclass(slots=True)
class StoredRecords:
    """The group's records as they were written: (time, incarnation of the writer, record).

    `uncertain` says that the replay skipped evidence and has seen no record written since.
    """

    stored: list[tuple[float, int, GroupRecord | None]] = field(default_factory=list)
    uncertain: bool = False

    def keep(self, at_ms: float, incarnation: int, record: GroupRecord | None) -> None:
        """Note a record that the coordinator of an epoch wrote."""
        self.stored.append((at_ms, incarnation, record))
        self.uncertain = False

    def loaded_by(
        self, epoch: CoordinatorEpoch, takeovers: Mapping[int, float]
    ) -> GroupRecord | None:
        """Return the record that an epoch begins with, None if there is none.

        It is the last one that was written before another broker took over; `takeovers` tells when
        each incarnation did. What a replaced coordinator writes after that does not count.
        """
        found = None
        for at_ms, writer, record in self.stored:
            over = takeovers.get(writer + 1, float("inf"))
            if writer < epoch.incarnation and at_ms <= over:
                found = record
        return found
