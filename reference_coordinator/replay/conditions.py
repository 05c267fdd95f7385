"""What stays the same for all hypotheses about one coordinator epoch."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

from kafka_protocol.errors import Error
from reference_coordinator.classic import CLASSIC, ClassicProtocol
from reference_coordinator.classic.effects import Response
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.replay.candidates import Due
from reference_coordinator.replay.evidence import EpochEvent, ObservedRequest, Outage
from reference_coordinator.replay.hints import Hints
from reference_coordinator.replay.lateness import NEVER_LATE, Lateness
from reference_coordinator.replay.member_ids import GivenIds
from reference_coordinator.timing import HELD_UP, SEEMS_AFTER_LINE_MS, Tolerance

WAIT_FOR_WRITES = frozenset({"HEARTBEAT", "LEAVE_GROUP", "DELETE_GROUPS"})
"""The requests, but commits, whose results a Java coordinator holds back with the writes before
them (`CoordinatorRuntime`, `deferredEventQueue`)."""
NO_REFUSALS = (Error.NONE, Error.REBALANCE_IN_PROGRESS)
REMEMBERED = 1_000
"""How many observed responses are kept: more than a stretch has, few in a long epoch."""


FINE = {
    "HEARTBEAT": (Error.NONE, Error.REBALANCE_IN_PROGRESS),
    "OFFSET_COMMIT": (Error.NONE,),
}
"""The answers that wait for earlier writes. Refusals do not wait."""


@dataclass(frozen=True, slots=True)
class Confirmations:
    """When the answers came, in order, which show that all earlier writes are confirmed; in ms.

    A Java coordinator holds every result back until the writes before it are confirmed, and
    completes results in order (`CoordinatorRuntime`, `deferredEventQueue`). So a fine Heartbeat or
    OffsetCommit shows that nothing that was handled before it waits any more. Answers of JoinGroup
    and SyncGroup show nothing: the group completes them itself. Records of a partition are
    confirmed in order. So an OffsetCommit that is fine shows that records which were written before
    its own are confirmed, on either coordinator.
    """

    earliest_ms: tuple[float, ...] = ()
    answered_ms: tuple[float, ...] = ()

    @classmethod
    def of(cls, requests: Iterable[ObservedRequest], protocol: ClassicProtocol) -> Self:
        """Pick them among requests of one coordinator epoch."""
        fine = sorted(
            (seen.earliest_ms, seen.answered_ms)
            for seen in requests
            if seen.api in FINE and seen.response
            if protocol.response_of(seen).error in FINE[seen.api]
        )
        return cls(tuple(at_ms for at_ms, _ in fine), tuple(at_ms for _, at_ms in fine))

    def within(self, from_ms: float, until_ms: float) -> bool:
        """Tell whether such a request came after a time, and was answered before another."""
        first = bisect_left(self.earliest_ms, from_ms)
        beyond = bisect_left(self.earliest_ms, until_ms)
        return any(at_ms < until_ms for at_ms in self.answered_ms[first:beyond])


@dataclass(frozen=True)
class Conditions:
    """The rules of the replay, and what is known of the broker in this epoch.

    The `step` of `protocol` is the coordinator that the broker is compared with. `stored_record` is
    the group record that the broker loads; `loads_closed` says that it loads before it takes
    requests.
    """

    profile: Profile
    tolerance: Tolerance
    stored_record: GroupRecord | None = None
    incarnation: int = 0
    lateness: Lateness = NEVER_LATE
    """What holds up this broker, and so its timers."""
    answer_lateness: Lateness = NEVER_LATE
    """What holds up answers: they wait for writes, and these for replicas. These are all stalls of
    this broker, and the proven ones of the others: a broker without requests shows no sign."""
    anywhere: Lateness = NEVER_LATE
    """All stalls of all brokers: what may hold up a write that the evidence does not show."""
    requests: Sequence[ObservedRequest] = ()
    """All requests of the epoch; few writes fail, so they are seldom looked through."""
    outages: tuple[Outage, ...] = ()
    loads_closed: bool = False
    hints: Hints = field(default_factory=Hints)
    protocol: ClassicProtocol = CLASSIC
    of_partition: Sequence[EpochEvent] = ()
    """What all brokers logged of the group's partition."""
    given_ids: GivenIds = field(default_factory=GivenIds)
    _observed: dict[str, Response] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def may_find_dead(self, seen: ObservedRequest, ours: Response, theirs: Response) -> bool:
        """Tell whether a refusal differs because the group was unloaded while the broker was at it.

        A Scala broker has let the request in, waits for the group's lock, and finds it Dead
        (`GroupCoordinator.onGroupUnloaded`): COORDINATOR_NOT_AVAILABLE, not NOT_COORDINATOR. It
        unloads a group some time after it says that it starts to (the line `unload_started`).
        """
        early, timer = self.tolerance.early, self.tolerance.timer
        return (
            self.profile.deleted_group_is_dead_first
            and ours.error == Error.NOT_COORDINATOR
            and replace(ours, error=Error.COORDINATOR_NOT_AVAILABLE) == theirs
            and any(
                (event.broker, event.kind) == (seen.broker, "unloaded")
                and seen.started_ms - early <= self.lateness.latest(event.at_ms, timer)
                and event.at_ms <= seen.handled_ms + early
                for event in self.of_partition
            )
        )

    def observed(self, seen: ObservedRequest) -> Response:
        """Return the observed response of a request, read once for all orders that are tried."""
        response = self._observed.get(seen.id)
        if response is None:
            if len(self._observed) >= REMEMBERED:
                self._observed.clear()
            response = self._observed[seen.id] = self.protocol.response_of(seen)
        return response

    @cached_property
    def failed_writes(self) -> frozenset[Error]:
        """The errors by which a response shows that a record write failed."""
        return self.profile.failed_writes

    @cached_property
    def has_lines(self) -> bool:
        """Whether coordinator lines tell of the group's partition."""
        loads = (event for event in self.of_partition if event.kind in ("loading", "loaded"))
        return any(event.is_logged for event in loads)

    @cached_property
    def confirmations(self) -> Confirmations:
        """The responses which show that earlier writes are confirmed; none of a Scala broker."""
        java = self.profile.answers_wait_for_writes
        return Confirmations.of(self.requests if java else (), self.protocol)

    @cached_property
    def commits(self) -> Confirmations:
        """The commits, of something, which show that records written before are confirmed."""
        commits = (seen for seen in self.requests if seen.api == "OFFSET_COMMIT")
        written = (s for s in commits if any(t["partitions"] for t in s.request["topics"]))
        return Confirmations.of(written, self.protocol)

    @cached_property
    def slow_commits(self) -> tuple[ObservedRequest, ...]:
        """The commits that took long, each of which is a write under way in that time.

        `PendingWrites` has no commits: they change no group.
        """
        long_ms = HELD_UP * self.profile.settings.commit_timeout_ms
        return tuple(
            seen
            for seen in self.requests
            if seen.api == "OFFSET_COMMIT" and seen.response
            if seen.answered_ms - seen.started_ms >= long_ms
        )

    def is_broken(self, from_ms: float, until_ms: float) -> bool:
        """Tell whether there was an outage at some time in a span."""
        return any(one.from_ms <= until_ms and one.until_ms >= from_ms for one in self.outages)

    def latest_expiry(self, due_ms: float) -> float:
        """Return until when a timer that is due at `due_ms` may expire."""
        return self.lateness.latest(due_ms, self.tolerance.timer)

    def latest_expiry_of(self, due: Due) -> float:
        """Return until when a timer may expire, all parts of one that was extended together.

        They may be twice as late as one timer, however many they are. Measured: 644 ms in three
        parts, on a broker that had just started.
        """
        latest_ms = self.latest_expiry(due.latest_ms)
        if due.on_time_ms == float("inf"):
            return latest_ms
        return min(latest_ms, self.latest_expiry(due.on_time_ms + self.tolerance.timer))

    def latest_by_line(self, at_ms: float) -> float:
        """Return until when what a line tells at `at_ms` may seem to happen, beside requests."""
        return self.lateness.latest(at_ms, self.tolerance.line + SEEMS_AFTER_LINE_MS)

    def on_time_expiry(self, due: Due) -> float:
        """Return the latest instant of a timer that is not late, but for stalls."""
        on_time_ms = min(due.on_time_ms, due.latest_ms)
        return self.latest_expiry(on_time_ms) - self.tolerance.timer

    def latest_time_out(self, handled_ms: float) -> float:
        """Return until when a request whose write times out may be answered.

        The timer is this broker's, whichever broker did not confirm the write.
        """
        slack_ms = self.profile.settings.commit_timeout_ms + self.tolerance.reply
        return self.lateness.latest(handled_ms, slack_ms)

    def latest_answer(self, due_ms: float) -> float:
        """Return until when an answer that is due at `due_ms` may be sent."""
        return self.answer_lateness.latest(due_ms, self.tolerance.reply)

    def latest_write(self, begun_ms: float) -> float:
        """Return until when a write that was begun may be done, unless it timed out before."""
        return self.answer_lateness.latest(begun_ms, self.profile.settings.commit_timeout_ms)

    def is_late(self, seen: ObservedRequest, due_ms: float) -> bool:
        """Tell whether an answer that is due at `due_ms` came later than a broker may be."""
        if seen.answered_ms <= self.latest_answer(due_ms):
            return False
        latest_ms = self.latest_answer(self.latest_write(due_ms))
        return not self.waits_for_write(seen) or seen.answered_ms > latest_ms

    def waits_for_write(self, seen: ObservedRequest) -> bool:
        """Tell whether an answer that leaves the group as it is may have waited for a write.

        A commit waits for its own write, unless that of a later commit was confirmed long before.
        On a Java coordinator others wait for the writes before them, unless a request that came
        later was answered long before. Refusals do not wait.
        """
        if self.observed(seen).error not in {*NO_REFUSALS, *self.failed_writes}:
            return False
        before_ms = seen.answered_ms - self.tolerance.reply
        if seen.api == "OFFSET_COMMIT":
            return not self.commits.within(seen.handled_ms, before_ms)
        if seen.api not in WAIT_FOR_WRITES or not self.profile.answers_wait_for_writes:
            return False
        return not self.confirmations.within(seen.handled_ms, before_ms)
