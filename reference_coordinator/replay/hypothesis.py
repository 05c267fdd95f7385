"""One possible history of a group: the oracle's state, its timers, and the requests that wait.

A hypothesis takes one candidate at a time (`take`) and says whether the observed responses are
those of the oracle. `search` forks hypotheses; nothing here decides the order of events.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    Choices,
    Event,
    Loaded,
    LoadStarted,
    RecordWritten,
    RequestsEnabled,
    Timer,
    TimerFired,
    Unloaded,
)
from reference_coordinator.classic.state import Group, State
from reference_coordinator.replay.candidates import (
    Candidate,
    Mismatch,
    differences,
    given_again,
    wrong_time,
)
from reference_coordinator.replay.clock import ArmedTimers, Clock, renamed_timer
from reference_coordinator.replay.conditions import Conditions
from reference_coordinator.replay.evidence import EpochEvent, ObservedRequest
from reference_coordinator.replay.expected_lines import expected_lines
from reference_coordinator.replay.failed_writes import (
    LOGGED,
    STORED,
    Outcome,
    PendingWrites,
    awaited_outcome,
    empty_write_failed,
    failure_in,
    may_wait,
    outcome_of,
    times_out_ms,
    unobserved_outcome,
)
from reference_coordinator.replay.line_instants import LinesMay, keep_to_lines, printed
from reference_coordinator.replay.member_ids import (
    UnnamedMembers,
    named,
    rename,
    renamed,
    with_member_id,
)
from reference_coordinator.replay.outside_errors import has_of_broker, of_the_broker, of_the_group
from reference_coordinator.replay.pending_requests import PendingRequests, choices_of
from reference_coordinator.replay.reactions import Reactions
from reference_coordinator.replay.result import ExpectedLine, Output, Stored

OUT_OF_LINE = Mismatch("", 0.0, "line", "", "")
"""Rejects an order in which the time of a step contradicts the times of its log lines."""


@dataclass
class Hypothesis:
    """See the module. It covers one coordinator epoch, under its `conditions`.

    `unanswered` are requests without a response that have not been acted on. `penalty` counts what
    is not the likeliest. `excused` is the wrong answer that the hypothesis was to accept, if any.
    """

    conditions: Conditions
    group: Group
    clock: Clock = field(default_factory=Clock)
    timers: ArmedTimers = field(default_factory=ArmedTimers)
    writes: PendingWrites = field(default_factory=PendingWrites)
    pending_requests: PendingRequests = field(default_factory=PendingRequests)
    unanswered: tuple[ObservedRequest, ...] = ()
    unnamed: UnnamedMembers = field(default_factory=UnnamedMembers)
    output: Output = field(default_factory=Output)
    penalty: int = 0
    excused: Mismatch | None = None
    reactions: Reactions = field(default_factory=Reactions)
    lines_may: LinesMay = LinesMay.BIND
    """How far its steps may depart from lines."""

    @classmethod
    def of(cls, conditions: Conditions, group: Group, clock: Clock | None = None) -> "Hypothesis":
        """Begin with a group and no timers."""
        keeps_overtaken = conditions.profile.overtaken_expiry_counts
        timers = ArmedTimers(conditions.tolerance.early, keeps_overtaken)
        return cls(conditions, group, clock or Clock(), timers)

    def fork(self) -> "Hypothesis":
        """Copy what an event may change."""
        forked = Hypothesis.__new__(Hypothesis)
        vars(forked).update(vars(self))  # `dataclasses.replace` takes many times as long
        forked.clock = self.clock.fork()
        forked.timers = self.timers.fork()
        forked.writes = self.writes.fork()
        forked.pending_requests = self.pending_requests.fork()
        forked.output = self.output.fork()
        return forked

    def answered_before(self, at_ms: float, connection: str | None) -> list[ObservedRequest]:
        """Return the pending requests that were answered, for certain, before a time.

        Or before another request of their connection was taken.
        """
        early_ms = self.conditions.tolerance.early
        return self.pending_requests.answered_before(at_ms - early_ms, connection)

    def is_settled(self, until_ms: float) -> bool:
        """Tell whether nothing is under way, and nothing happens by itself up to a time."""
        between = self.group.state in (State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE)
        waits = self.writes or self.pending_requests or self.unanswered
        return not (between or waits or self.timers.may_expire(until_ms))

    def take(self, candidate: Candidate, until_ms: float, excuse: str = "") -> Mismatch | None:
        """Let a candidate happen, by `until_ms`; return the first answer that is not as observed.

        A wrong answer to the request named by `excuse` is accepted.
        """
        if candidate.cause is None or self._came_to_nothing(candidate.cause):
            return None
        self.clock.advance(candidate, until_ms)
        at_ms = self.clock.now_ms
        if self.timers.overtaken:
            self._drop_ended_sessions(candidate)
        event: Event
        match candidate.cause:
            case ObservedRequest() as seen:
                self.pending_requests.add(seen)
                choices = self._choices(candidate)
                event = self.conditions.protocol.event_of(seen, at_ms, choices)
            case Timer() as timer:
                if not candidate.overtaken:
                    self.timers.expire(timer, candidate)
                self.output.bind("timer_instant", candidate.hinted)
                event = TimerFired(at_ms, timer, self._choices(candidate), candidate.of_pending)
            case str() as request:
                seen = self.writes.pop(request)[0]
                unobserved = unobserved_outcome(self.conditions) if candidate.timed_out else None
                written = self._bound(unobserved or outcome_of(seen, self.conditions), seen)
                self.output.bind("record_write")
                event = RecordWritten(at_ms, request, written, self._choices(candidate))
            case EpochEvent() as epoch_event:
                event = self._epoch_event(epoch_event)
        return self._step(event, candidate, until_ms, excuse)

    def _step(
        self, event: Event, candidate: Candidate, until_ms: float, excuse: str
    ) -> Mismatch | None:
        before, conditions = self.group, self.conditions
        self.group, effects = conditions.protocol.step(before, event, conditions.profile)
        if self.group is before:  # then search tries no other place for it; see `search.explain`
            self.clock.latest_ms = candidate.latest_ms
        else:
            self.timers.drop_stale(before, self.group, event)
        by_line_ms = float("-inf")
        if self.group is not before or isinstance(event, TimerFired):
            lines = list(expected_lines(before, self.group, event, effects))
            for line, subject, says in lines:
                window = self.clock.now_ms, candidate.earliest_ms, candidate.latest_ms
                due = ExpectedLine(line, subject, *window, says, conditions.incarnation)
                self.output.expected_lines.append(due)
            keys = printed(lines, effects)
            by_line_ms = keep_to_lines(
                self.clock, keys, candidate, until_ms, conditions, self.lines_may
            )
            if by_line_ms == float("inf"):
                return OUT_OF_LINE
        if answers := [effect for effect in effects if isinstance(effect, Answer)]:
            mismatch, decided = None, (by_line_ms, self._decided_by(answers, candidate))
            for answer in answers:  # their times narrow down when all of this happened
                mismatch = self._check(answer, candidate, decided, excuse) or mismatch
            if mismatch is not None:
                return mismatch
        for effect in effects:
            if not isinstance(effect, Answer):
                self.absorb(effect, candidate)
        self._answer_with_failure(candidate.cause)
        return None

    def absorb(self, effect: Effect, cause: Candidate) -> None:
        """Take over an effect of a cause, other than an answer."""
        match effect:
            case Arm(timer=timer, deadline_ms=deadline_ms):
                self.arm(timer, deadline_ms, cause)
            case Disarm(timer=timer):
                self.disarm(timer, cause)
            case Persist() if empty_write_failed(effect, self.clock.now_ms, self.conditions):
                self.output.bind("failed_write")
                self.output.bind(LOGGED)
            case Persist():
                self.output.stored.append(Stored(self.clock.now_ms, effect.record, effect.request))
                if pending := self.pending_requests.get(effect.request or ""):
                    self.writes.start(pending, self.clock, self.conditions)
            case Bound():
                self.output.bind(effect.kind)
                seen = cause.cause
                given = isinstance(seen, ObservedRequest) and seen.response_fields.get("memberId")
                own = effect.kind == "member_id" and effect.value != given
                if own and isinstance(seen, ObservedRequest):
                    prefix = effect.value.removesuffix(f"?{seen.id}")
                    self.unnamed = self.unnamed.with_member(effect.value, prefix)
            case Transition():
                self.output.follow(effect, cause, self.clock.now_ms, self.conditions.incarnation)
            case AssignmentReceived():
                self.output.assigned(effect, self.clock.now_ms)

    def arm(self, timer: Timer, deadline_ms: float, cause: Candidate) -> None:
        """Start or restart a timer."""
        if self.unnamed.names:
            timer = renamed_timer(timer, self.unnamed.names)
        of_pending = timer.member_id in self.group.pending_joins
        self.timers.arm(timer, deadline_ms, self.clock, cause, of_pending)

    def disarm(self, timer: Timer, cause: Candidate) -> None:
        """Stop a timer, if it runs."""
        self.timers.disarm(renamed_timer(timer, self.unnamed.names), cause)

    def _drop_ended_sessions(self, candidate: Candidate) -> None:
        """Forget overtaken timers that would have expired by now, or that expire with this."""
        conditions = self.conditions
        self.timers.overtaken = {
            timer: due
            for timer, due in self.timers.overtaken.items()
            if conditions.latest_expiry(due.latest_ms) >= self.clock.earliest_ms
            and not (candidate.overtaken and candidate.cause == timer)
            and timer.member_id in self.group.members
        }

    def _decided_by(self, answers: Sequence[Answer], cause: Candidate) -> float:
        """Return by when answers are decided: before what comes next, all by the first of them."""
        latest_ms = min(cause.latest_ms, self.clock.latest_ms)
        if len(answers) < 2:
            return latest_ms
        first_ms = min(
            (
                seen.answered_ms
                for answer in answers
                for seen in (self.pending_requests.get(answer.request),)
                if seen is not None and seen.response
                if self.conditions.observed(seen).error == answer.response.error
            ),
            default=float("inf"),
        )
        return min(latest_ms, max(cause.earliest_ms, first_ms + self.conditions.tolerance.early))

    def _check(
        self, answer: Answer, cause: Candidate, decided: tuple[float, float], excuse: str
    ) -> Mismatch | None:
        """Compare an answer with what was observed, and its time with that of its cause.

        It is `decided` within a time, by lines and others; the failure of a write shows later.
        """
        seen = self.pending_requests.remove(answer.request)
        if seen is None or seen.response is None:
            return None
        self.output.explain(seen.id)
        conditions = self.conditions
        observed = conditions.observed(seen)
        ours = conditions.protocol.as_sent(answer.response, seen.api_version)
        if self.unnamed.prefixes:
            ours = self._name(ours, observed)
        unequal = () if ours == observed else differences(ours, observed)
        if unequal and ours == of_the_group(seen, conditions.profile.settings.max_metadata_size):
            unequal = ()
            self.output.bind("partition_error")
            self.output.bind("broker_error", has_of_broker(seen))
        if unequal and conditions.may_find_dead(seen, ours, observed):
            unequal = ()
            self.output.bind("unloaded_meanwhile")
        mismatch, tolerance = None, conditions.tolerance
        at_once = isinstance(cause.cause, ObservedRequest) and cause.cause.id == seen.id
        if unequal and not (
            may_wait(ours, seen, at_once=at_once) and self._write_failed(seen, cause.cause)
        ):
            mismatch = Mismatch(
                seen.id,
                seen.answered_ms,
                "answer",
                "; ".join(f"{field}={ours}" for field, ours, _ in unequal),
                "; ".join(f"{field}={theirs}" for field, _, theirs in unequal),
            )
        elif seen.id in conditions.given_ids.repeats and not self.unnamed.names_another(seen.id):
            mismatch = given_again(seen)
        elif seen.answered_ms < cause.earliest_ms - tolerance.early:
            mismatch = wrong_time(seen, "answered_early", cause.earliest_ms)
        elif seen.answered_ms < decided[0]:
            mismatch = wrong_time(seen, "answered_early", decided[0])
        elif conditions.is_late(seen, cause.latest_ms if unequal else decided[1]):
            mismatch = wrong_time(seen, "answered_late", decided[1])
        else:
            self.clock.happened_by(seen.answered_ms + tolerance.early)
            self.writes.outlive_answer(seen, conditions)
        if mismatch is not None and seen.id == excuse:
            self.excused = mismatch
            self.group = rename(self.group, answer.response, observed)
            return None
        return mismatch

    def _came_to_nothing(self, cause: object) -> bool:
        """Let a request pass that the broker answered without its coordinator."""
        if not isinstance(cause, ObservedRequest) or not cause.response:
            return False
        if (kind := of_the_broker(cause, self.conditions.observed(cause))) is None:
            return False
        self.output.explain(cause.id)
        self.output.bind(kind)
        return True

    def _name(self, ours: Response, theirs: Response) -> Response:
        """Take the ids of unnamed members over from a response that names them."""
        ours = renamed(ours, self.unnamed.names)
        for made, given in named(ours, theirs, self.unnamed.prefixes):
            if given in self.conditions.given_ids:
                continue
            if made in self.group.members and given not in self.group.members:
                self.group = with_member_id(self.group, made, given)
            self.unnamed = self.unnamed.with_name(made, given)
            self.timers.rename(self.unnamed.names)
        return renamed(ours, self.unnamed.names)

    def _epoch_event(self, epoch_event: EpochEvent) -> Event:
        """Turn what a broker logged about its partition into an event of the coordinator."""
        now_ms, conditions = self.clock.now_ms, self.conditions
        if epoch_event.kind == "loaded":
            closed = conditions.loads_closed
            self.unnamed = UnnamedMembers.of_record(conditions.stored_record)
            return Loaded(now_ms, conditions.stored_record, requests_disabled=closed)
        if epoch_event.kind == "opened":
            return RequestsEnabled(now_ms)
        self.writes.clear()
        if epoch_event.kind == "loading":
            self.timers.clear()
            return LoadStarted(now_ms)
        return Unloaded(now_ms)

    def _choices(self, candidate: Candidate) -> Choices:
        return choices_of(self.group, self.pending_requests, self.unnamed, candidate)

    def unobserved_time_outs(self) -> dict[str, tuple[float, float]]:
        """Return when writes may time out though their requests have an answer."""
        return self.writes.unobserved_time_outs(self.group, self.pending_requests, self.conditions)

    def _bound(self, outcome: Outcome, seen: ObservedRequest) -> Error:
        """Bind the outcome of a write."""
        if outcome is not STORED:
            due_ms = times_out_ms(seen, self.conditions)
            self.output.fail_write(outcome.why, seen, due_ms, self.clock.now_ms)
        return outcome.error

    def _answer_with_failure(self, cause: object) -> None:
        """Let a request that would wait be answered with the failure of an earlier write."""
        if (
            not isinstance(cause, ObservedRequest)
            or cause.id not in self.pending_requests
            or not cause.response
        ):
            return
        waits = self.conditions.profile.answers_wait_for_writes and cause.id not in self.writes
        if waits and self._write_failed(cause, cause):
            self.pending_requests.remove(cause.id)
            self.output.explain(cause.id)

    def _write_failed(self, seen: ObservedRequest, cause: object) -> bool:
        """Tell whether an answer is the failure of a write that it had to wait for."""
        if failure_in(seen, self.conditions) is Error.NONE:
            return False
        if seen.api == "OFFSET_COMMIT" or cause == seen.id:  # its own
            return self._bound(outcome_of(seen, self.conditions), seen) is not Error.NONE
        if not self.conditions.profile.answers_wait_for_writes:
            return False
        under_way = [write for write, _ in self.writes.values()]
        unobserved = any(self.unobserved_time_outs())
        outcome = awaited_outcome(seen, under_way, self.conditions, unobserved=unobserved)
        return self._bound(outcome, seen) is not Error.NONE
