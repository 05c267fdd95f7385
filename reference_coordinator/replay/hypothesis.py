"""One possible course of events: the oracle's group with its timers and parked requests.

A world takes one candidate at a time (`take`) and says whether the observed answers bear it out.
Search forks worlds; nothing here decides the order.

Evidence tells windows, not instants. A world steps through the likeliest instants, and keeps the
first and the last that each may have been: a timer's window begins and ends with that of the event
that started it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import (
    Answer,
    Arm,
    AssignmentReceived,
    Bound,
    Disarm,
    Effect,
    Persist,
    Response,
    Transition,
)
from reference_coordinator.classic.events import (
    NO_CHOICES,
    Choices,
    Event,
    Loaded,
    LoadStarted,
    RecordWritten,
    RequestsEnabled,
    Timer,
    TimerFired,
    TimerKind,
    Unloaded,
)
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Group, State
from reference_coordinator.classic.step import Step, step
from reference_coordinator.replay.adoption import rename, with_member_id
from reference_coordinator.replay.candidates import Candidate, Due, Mismatch
from reference_coordinator.replay.comparing import as_sent, differences
from reference_coordinator.replay.evidence import (
    EpochEvent,
    ObservedRequest,
    Outage,
    Tolerance,
)
from reference_coordinator.replay.expected_lines import expected_lines
from reference_coordinator.replay.lateness import NEVER_LATE, Lateness
from reference_coordinator.replay.naming import named, renamed
from reference_coordinator.replay.offered_choices import offered_choices
from reference_coordinator.replay.outcomes import outcome_of
from reference_coordinator.replay.output import Output
from reference_coordinator.replay.pending_requests import PendingRequests
from reference_coordinator.replay.reactions import Reactions
from reference_coordinator.replay.result import ExpectedLine, Row
from reference_coordinator.replay.stale_timers import drop_stale_timers
from reference_coordinator.replay.wire import answer_of, event_of

_NEVER = float("inf")

WITHOUT_CHOICES = frozenset({"HEARTBEAT", "OFFSET_COMMIT", "DELETE_GROUPS"})
"""Requests whose events have no choices; nor has a SyncGroup, unless it shows who leads."""


@dataclass
class Hypothesis:
    """See the module. It covers one epoch of one broker, which loads `stored_record`.

    The last event happened in [earliest_ms, latest_ms], most likely at now_ms. `unanswered` are
    requests without a response that have not been acted on; `unnamed` are members that such
    requests made, with how their ids begin, and `names` the ids that they turned out to have.
    `overtaken` are the sessions that may end though they were restarted. `penalty` counts what is
    not the likeliest. `relaxed` windows are those of each event by itself: more may happen than
    can, so that what does not happen even then is impossible; and there is less to search.
    """

    profile: Profile
    tolerance: Tolerance
    group: Group
    stored_record: GroupRecord | None = None
    incarnation: int = 0
    lateness: Lateness = NEVER_LATE
    """What holds up this broker, and so its timers."""
    answer_lateness: Lateness = NEVER_LATE
    """What holds up any broker, and so answers: they wait for writes, and these for replicas."""
    outages: tuple[Outage, ...] = ()
    earliest_ms: float = 0.0
    now_ms: float = 0.0
    latest_ms: float = 0.0
    timers: dict[Timer, Due] = field(default_factory=dict)
    overtaken: Mapping[Timer, Due] = field(default_factory=dict)
    next_timer: Timer | None = None
    next_timer_ms: float = _NEVER
    """No timer runs out before; `next_timer` is the one that does then, if it is still to."""
    writes: dict[str, tuple[ObservedRequest, Due]] = field(default_factory=dict)
    pending_requests: PendingRequests = field(default_factory=PendingRequests)
    unanswered: tuple[ObservedRequest, ...] = ()
    unnamed: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    output: Output = field(default_factory=Output)
    penalty: int = 0
    relaxed: bool = False
    loads_closed: bool = False
    excused: Mismatch | None = None
    step: Step = step
    reactions: Reactions = field(default_factory=Reactions)

    def fork(self) -> "Hypothesis":
        """Copy what a step may change."""
        forked = Hypothesis.__new__(Hypothesis)
        vars(forked).update(vars(self))  # `dataclasses.replace` takes many times as long
        forked.timers = dict(self.timers)
        forked.writes = dict(self.writes)
        forked.pending_requests = self.pending_requests.fork()
        forked.output = self.output.fork()
        return forked

    def answered_before(self, at_ms: float, connection: str | None) -> list[ObservedRequest]:
        """Return the parked requests that were answered, for certain, before a time.

        Or before another request of their connection was taken.
        """
        return self.pending_requests.answered_before(at_ms - self.tolerance.early, connection)

    def may_expire(self, until_ms: float) -> bool:
        """Tell whether a timer may run out by a time."""
        limit = until_ms + self.tolerance.early
        if self.overtaken:
            return True
        if self.next_timer_ms > limit:
            return False
        due = self.timers.get(self.next_timer) if self.next_timer else None
        if due is None or due.earliest_ms > self.next_timer_ms:
            self.next_timer = min(self.timers, key=self.timers.__getitem__, default=None)
            self.next_timer_ms = (
                self.timers[self.next_timer].earliest_ms if self.next_timer else _NEVER
            )
        return self.next_timer_ms <= limit

    def take(self, candidate: Candidate, until_ms: float, excuse: str = "") -> Mismatch | None:
        """Let a candidate happen, by `until_ms`; return the first answer that is not as observed.

        The answer of the request named by `excuse` is not held against the world.
        """
        if candidate.cause is None:
            return None
        at_ms = self.now_ms = max(self.now_ms, min(candidate.at_ms, until_ms))
        if self.relaxed:
            self.earliest_ms, self.latest_ms = candidate.earliest_ms, candidate.latest_ms
        else:
            self.earliest_ms = max(self.earliest_ms, candidate.earliest_ms)
            self.latest_ms = min(candidate.latest_ms, until_ms)
        self._drop_ended_sessions(candidate)
        event: Event
        match candidate.cause:
            case ObservedRequest() as seen:
                self.pending_requests.add(seen)
                event = event_of(seen, at_ms, self._choices(seen, candidate))
            case Timer() as timer:
                if not candidate.overtaken:
                    self.overtake(timer, candidate)
                    del self.timers[timer]
                self.output.bind("timer_instant", candidate.hinted)
                event = TimerFired(at_ms, timer, self._choices(), candidate.of_pending)
            case str() as request:
                written = self._written(self.writes.pop(request)[0])
                self.output.bind("record_write")
                event = RecordWritten(at_ms, request, written, self._choices())
            case EpochEvent() as epoch_event:
                event = self._epoch_event(epoch_event)
        return self._step(event, candidate, excuse)

    def _step(self, event: Event, candidate: Candidate, excuse: str) -> Mismatch | None:
        before = self.group
        self.group, effects = self.step(before, event, self.profile)
        if self.group is before:  # then search tries no other place for it; see `search.explain`
            self.latest_ms = candidate.latest_ms
        else:
            drop_stale_timers(self.timers, before, self.group, event)
            self.output.expected_lines += [
                ExpectedLine(line, subject, self.now_ms, candidate.earliest_ms, candidate.latest_ms)
                for line, subject in expected_lines(before, self.group, event)
            ]
        mismatch = None
        for effect in effects:  # when they were sent narrows down when all of this happened
            if isinstance(effect, Answer):
                mismatch = self._check(effect, candidate, excuse) or mismatch
        for effect in effects:
            if not isinstance(effect, Answer):
                self.absorb(effect, candidate)
        self._fail(candidate.cause)
        return mismatch

    def absorb(self, effect: Effect, cause: Candidate) -> None:
        """Take over what a cause had for effect, other than answers."""
        match effect:
            case Arm(timer=timer, deadline_ms=deadline_ms):
                self.arm(timer, deadline_ms, cause)
            case Disarm(timer=timer):
                self.disarm(timer, cause)
            case Persist():
                self.output.stored.append((self.now_ms, effect.record))
                if effect.request is not None and effect.request in self.pending_requests:
                    self.writes[effect.request] = self._write(self.pending_requests[effect.request])
            case Bound():
                self.output.bind(effect.kind)
                seen = cause.cause
                given = isinstance(seen, ObservedRequest) and seen.response_fields.get("memberId")
                if effect.kind == "member_id" and isinstance(seen, ObservedRequest) and not given:
                    prefix = effect.value.removesuffix(f"?{seen.id}")
                    self.unnamed = {**self.unnamed, effect.value: prefix}
            case Transition():
                self._follow(effect, cause)
            case AssignmentReceived():
                self.output.assigned(effect, self.now_ms)

    def arm(self, timer: Timer, deadline_ms: float, cause: Candidate) -> None:
        """Start a timer, or start it anew; its window is as wide as that of its cause."""
        if self.names:
            timer = self.known(timer)
        if self.next_timer_ms - self.tolerance.early <= cause.latest_ms:
            self.overtake(timer, cause)
        delay_ms = deadline_ms - self.now_ms
        earliest_ms = self.earliest_ms + delay_ms
        pending = timer.member_id in self.group.pending_joins
        self.timers[timer] = Due(earliest_ms, deadline_ms, self.latest_ms + delay_ms, pending)
        if earliest_ms < self.next_timer_ms:
            self.next_timer, self.next_timer_ms = timer, earliest_ms

    def disarm(self, timer: Timer, cause: Candidate) -> None:
        """Stop a timer, if it runs."""
        timer = self.known(timer)
        if timer in self.timers and self.timers[timer].of_pending:
            self.overtake(timer, cause)
        self.timers.pop(timer, None)

    def overtake(self, timer: Timer, cause: Candidate) -> None:
        """Note a session that runs out, or is restarted when it may have: that may end it later."""
        if timer.kind is not TimerKind.SESSION or not self.profile.overtaken_expiry_counts:
            return
        due = self.timers.get(timer)
        if due is not None and due.earliest_ms - self.tolerance.early <= cause.latest_ms:
            self.overtaken = {**self.overtaken, timer: due}

    def _drop_ended_sessions(self, candidate: Candidate) -> None:
        """Forget the sessions that would have ended by now, or that end with this."""
        if self.overtaken:
            self.overtaken = {
                timer: due
                for timer, due in self.overtaken.items()
                if self.lateness.latest(due.latest_ms, self.tolerance.timer) >= self.earliest_ms
                and not (candidate.overtaken and candidate.cause == timer)
                and timer.member_id in self.group.members
            }

    def _write(self, seen: ObservedRequest) -> tuple[ObservedRequest, Due]:
        """Tell when a write will be done: by the answer that waits for it, if it came."""
        if seen.response is None:
            latest_ms = self.answer_lateness.latest(self.latest_ms, self.tolerance.reply)
            return seen, Due(self.earliest_ms, self.now_ms, latest_ms)
        done_ms = max(seen.answered_ms, self.now_ms)
        return seen, Due(self.earliest_ms, done_ms, done_ms + self.tolerance.early)

    def known(self, timer: Timer) -> Timer:
        """Return a timer under the name that its member turned out to have."""
        name = self.names.get(timer.member_id)
        return timer if name is None else Timer(timer.kind, name)

    def _check(self, answer: Answer, cause: Candidate, excuse: str) -> Mismatch | None:
        seen = self.pending_requests.remove(answer.request)
        if seen is None or seen.response is None:
            return None
        self.output.answered.append(seen.id)
        observed, ours = answer_of(seen), as_sent(answer.response, seen.api_version)
        if self.unnamed:
            ours = self._name(ours, observed)
        unequal = () if ours == observed else differences(ours, observed)
        mismatch = None
        if unequal and not self._write_failed(seen):
            mismatch = Mismatch(
                seen.id,
                seen.answered_ms,
                "answer",
                "; ".join(f"{field}={ours}" for field, ours, _ in unequal),
                "; ".join(f"{field}={theirs}" for field, _, theirs in unequal),
            )
        elif seen.answered_ms < cause.earliest_ms - self.tolerance.early:
            mismatch = self._wrong_time(seen, "answered_early", cause.earliest_ms)
        elif seen.answered_ms > self.answer_lateness.latest(cause.latest_ms, self.tolerance.reply):
            mismatch = self._wrong_time(seen, "answered_late", cause.latest_ms)
        elif not self.relaxed:
            self.latest_ms = min(self.latest_ms, seen.answered_ms + self.tolerance.early)
        if mismatch is not None and seen.id == excuse:
            self.excused = mismatch
            self.group = rename(self.group, answer.response, observed)
            return None
        return mismatch

    def _name(self, ours: Response, theirs: Response) -> Response:
        """Take over from an answer which ids members were given that nobody was told of."""
        ours = renamed(ours, self.names)
        for old, new in named(ours, theirs, self.unnamed):
            if old in self.group.members and new not in self.group.members:
                self.group = with_member_id(self.group, old, new)
            self.names = {**self.names, old: new}
            self.timers = {self.known(timer): due for timer, due in self.timers.items()}
        return renamed(ours, self.names)

    def _wrong_time(self, seen: ObservedRequest, rule: str, due_ms: float) -> Mismatch:
        late = seen.answered_ms - due_ms
        word = "later" if late > 0 else "earlier"
        return Mismatch(
            seen.id, seen.answered_ms, rule, "an answer at its time", f"{abs(late):.0f} ms {word}"
        )

    def _epoch_event(self, epoch_event: EpochEvent) -> Event:
        """Turn a broker's coming and going as the coordinator into an event."""
        if epoch_event.kind == "loaded":
            closed = self.loads_closed
            return Loaded(self.now_ms, self.stored_record, requests_disabled=closed)
        if epoch_event.kind == "opened":
            return RequestsEnabled(self.now_ms)
        self.writes.clear()
        if epoch_event.kind == "loading":
            self.timers.clear()
            return LoadStarted(self.now_ms)
        return Unloaded(self.now_ms)

    def _follow(self, transition: Transition, cause: Candidate) -> None:
        """Write a transition into the expected timeline."""
        self.output.transitions.append(transition)
        if transition.after is not State.PREPARING_REBALANCE:
            self.output.follow(transition, self.now_ms)
            return
        self.output.begin(
            Row(
                incarnation=self.incarnation,
                old_generation=transition.generation,
                started_ms=self.now_ms,
                earliest_ms=cause.earliest_ms,
                latest_ms=cause.latest_ms,
                reason=str(transition.reason),
                member_id=transition.member_id,
            )
        )

    def _written(self, seen: ObservedRequest) -> Error:
        """Bind the outcome of a write."""
        if (outcome := outcome_of(seen, self.outages, self.profile)) is not Error.NONE:
            self.output.bind("failed_write")
        return outcome

    def _fail(self, cause: object) -> None:
        """Let a request that would wait be answered with the failure of what was written before."""
        if (
            not isinstance(cause, ObservedRequest)
            or cause.id not in self.pending_requests
            or not cause.response
        ):
            return
        waits = self.profile.answers_wait_for_writes and cause.id not in self.writes
        if waits and self._write_failed(cause):
            self.pending_requests.remove(cause.id)
            self.output.answered.append(cause.id)

    def _choices(
        self, seen: ObservedRequest | None = None, candidate: Candidate | None = None
    ) -> Choices:
        if seen is not None and (
            seen.api in WITHOUT_CHOICES
            or (seen.api == "SYNC_GROUP" and self.group.leader is not None)
        ):
            return NO_CHOICES
        found = offered_choices(self.group, self.pending_requests, self.unnamed, seen)
        if candidate is None or not (candidate.leader or candidate.protocol):
            return found
        leader, protocol = candidate.leader or found.leader, candidate.protocol or found.protocol
        return replace(found, leader=leader, protocol=protocol)

    def next_writes(self) -> list[str]:
        """Name the writes that may be done next: they keep their order where answers wait for it.

        One that fails may fail before others are done.
        """
        requests = list(self.writes)
        if len(requests) < 2 or not self.profile.answers_wait_for_writes:
            return requests
        first, *others = requests
        ends = {r: outcome_of(self.writes[r][0], self.outages, self.profile) for r in others}
        return [first, *(request for request in others if ends[request] is not Error.NONE)]

    def _write_failed(self, seen: ObservedRequest) -> bool:
        """Tell whether an answer is what became of a write that it had to wait for."""
        waits = seen.api == "OFFSET_COMMIT" or self.profile.answers_wait_for_writes
        return waits and self._written(seen) is not Error.NONE
