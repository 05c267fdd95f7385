"""One possible course of events: the oracle's group with its timers, parked requests and rows.

A world takes one candidate at a time (`take`) and says whether the observed answers bear it out.
Search forks worlds; nothing here decides the order.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from reference_coordinator.effects import (
    Answer,
    Arm,
    AssignmentReceived,
    Bound,
    Disarm,
    Effect,
    Persist,
    Transition,
)
from reference_coordinator.events import (
    Choices,
    Event,
    Loaded,
    LoadStarted,
    RecordWritten,
    Timer,
    TimerFired,
    Unloaded,
)
from reference_coordinator.profiles import Profile
from reference_coordinator.records import GroupRecord
from reference_coordinator.replay.adoption import rename
from reference_coordinator.replay.evidence import Observed, Serving, Tolerance
from reference_coordinator.replay.result import Row, Said
from reference_coordinator.replay.said import said
from reference_coordinator.replay.wire import answer_of, as_sent, differences, event_of
from reference_coordinator.state import Group, Service, State
from reference_coordinator.step import step


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may happen next: a request, a timer, a write's outcome, a serving."""

    earliest_ms: float
    at_ms: float
    latest_ms: float
    cause: Observed | Timer | str | Serving | None
    """An id stands for the write which that request waits for; None for the end of evidence."""
    hinted: bool = False


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An answer that is not the oracle's."""

    request: str
    at_ms: float
    rule: str
    expected: str
    observed: str


@dataclass(slots=True)
class World:
    """See the module. `ready` are what this stretch of evidence has yielded so far."""

    profile: Profile
    tolerance: Tolerance
    group: Group
    owner: str | None = None
    now_ms: float = 0.0
    timers: dict[Timer, float] = field(default_factory=dict)
    soonest_ms: float = float("inf")
    writes: dict[str, Observed] = field(default_factory=dict)
    parked: dict[str, Observed] = field(default_factory=dict)
    stored: GroupRecord | None = None
    incarnation: int = 0
    row: Row | None = None
    rows: list[Row] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    bound: Counter[str] = field(default_factory=Counter)
    excused: Mismatch | None = None

    def fork(self) -> "World":
        """Copy what a step may change."""
        return replace(
            self,
            timers=dict(self.timers),
            writes=dict(self.writes),
            parked=dict(self.parked),
            rows=list(self.rows),
            said=list(self.said),
            answered=list(self.answered),
            bound=Counter(self.bound),
        )

    def overdue(self, at_ms: float) -> list[Observed]:
        """Return the parked requests that were answered, for certain, before a time."""
        limit = at_ms - self.tolerance.early
        return [seen for seen in self.parked.values() if seen.answered_ms < limit]

    def take(self, candidate: Candidate, excuse: str = "") -> Mismatch | None:
        """Let a candidate happen; return the first answer that is not as observed.

        The answer of the request named by `excuse` is not held against the world.
        """
        self.now_ms = max(self.now_ms, candidate.at_ms)
        at_ms = self.now_ms
        event: Event
        match candidate.cause:
            case Observed() as seen:
                self.parked[seen.id] = seen
                if seen.broker != self.owner and self.owner is not None:
                    return self._elsewhere(seen, candidate, excuse)
                event = event_of(seen, at_ms, self._choices(seen))
            case Timer() as timer:
                del self.timers[timer]
                self.bound["timer_instant"] += candidate.hinted
                event = TimerFired(at_ms, timer, self._choices())
            case str() as request:
                del self.writes[request]
                self.bound["record_write"] += 1
                event = RecordWritten(at_ms, request, choices=self._choices())
            case Serving() as serving:
                return self._serve(serving, candidate, excuse)
            case None:
                return None
        return self._step(event, candidate, excuse)

    def _step(self, event: Event, candidate: Candidate, excuse: str) -> Mismatch | None:
        before = self.group
        self.group, effects = step(before, event, self.profile)
        self.said += [
            Said(line, subject, self.now_ms, candidate.earliest_ms, candidate.latest_ms)
            for line, subject in said(before, self.group, event)
        ]
        mismatch = None
        for effect in effects:
            mismatch = self._absorb(effect, candidate, excuse) or mismatch
        return mismatch

    def _absorb(self, effect: Effect, cause: Candidate, excuse: str) -> Mismatch | None:
        match effect:
            case Answer():
                return self._check(effect, cause, excuse)
            case Arm():
                self.timers[effect.timer] = effect.deadline_ms
                self.soonest_ms = min(self.soonest_ms, effect.deadline_ms)
            case Disarm():
                self.timers.pop(effect.timer, None)
            case Persist():
                self.stored = effect.record
                if effect.request is not None and effect.request in self.parked:
                    self.writes[effect.request] = self.parked[effect.request]
            case Bound():
                self.bound[effect.kind] += 1
            case Transition():
                self._follow(effect, cause)
            case AssignmentReceived():
                if self.row is not None:
                    self.row = replace(
                        self.row,
                        leader=effect.leader,
                        assigned_ms=self.now_ms,
                        assigned_members=effect.members,
                        static_members=effect.static_members,
                        ended_as="assigned",
                        ended_ms=self.now_ms,
                    )
        return None

    def _check(self, answer: Answer, cause: Candidate, excuse: str) -> Mismatch | None:
        seen = self.parked.pop(answer.request, None)
        if seen is None:
            return None
        self.answered.append(seen.id)
        observed = answer_of(seen)
        unequal = differences(as_sent(answer.response, seen.api_version), observed)
        mismatch = None
        if unequal:
            mismatch = Mismatch(
                seen.id,
                seen.answered_ms,
                "answer",
                "; ".join(f"{field}={ours}" for field, ours, _ in unequal),
                "; ".join(f"{field}={theirs}" for field, _, theirs in unequal),
            )
        elif seen.answered_ms < cause.earliest_ms - self.tolerance.early:
            mismatch = self._mistimed(seen, "answered_early", cause.earliest_ms)
        elif seen.answered_ms > cause.latest_ms + self.tolerance.reply:
            mismatch = self._mistimed(seen, "answered_late", cause.latest_ms)
        if mismatch is not None and seen.id == excuse:
            self.excused = mismatch
            self.group = rename(self.group, answer.response, observed)
            return None
        return mismatch

    def _mistimed(self, seen: Observed, rule: str, due_ms: float) -> Mismatch:
        late = seen.answered_ms - due_ms
        word = "later" if late > 0 else "earlier"
        return Mismatch(
            seen.id, seen.answered_ms, rule, "an answer at its time", f"{abs(late):.0f} ms {word}"
        )

    def _elsewhere(self, seen: Observed, candidate: Candidate, excuse: str) -> Mismatch | None:
        """Check what a broker answers that does not coordinate the group."""
        absent = Group(self.group.group_id, service=Service.ABSENT)
        event = event_of(seen, self.now_ms, Choices())
        mismatch = None
        for effect in step(absent, event, self.profile)[1]:
            if isinstance(effect, Answer):
                mismatch = self._check(effect, candidate, excuse)
        return mismatch

    def _serve(self, serving: Serving, candidate: Candidate, excuse: str) -> Mismatch | None:
        event: Event
        if serving.kind == "loading":
            self.owner = serving.broker
            self.timers.clear()
            self.writes.clear()
            event = LoadStarted(self.now_ms)
        elif serving.kind == "loaded":
            self.owner = serving.broker
            self.incarnation += 1
            self.close("superseded")
            event = Loaded(self.now_ms, self.stored)
        elif serving.broker != self.owner:
            return None
        else:
            self.writes.clear()
            event = Unloaded(self.now_ms)
        return self._step(event, candidate, excuse)

    def _follow(self, moved: Transition, cause: Candidate) -> None:
        """Write a transition into the expected timeline."""
        if moved.after is State.PREPARING_REBALANCE:
            self.close("superseded")
            self.row = Row(
                incarnation=self.incarnation,
                old_generation=moved.generation,
                started_ms=self.now_ms,
                earliest_ms=cause.earliest_ms,
                latest_ms=cause.latest_ms,
                reason=str(moved.reason),
                member_id=moved.member_id,
            )
        elif self.row is None:
            return
        elif moved.after is State.COMPLETING_REBALANCE:
            self.row = replace(
                self.row,
                joined_ms=self.now_ms,
                generation=moved.generation,
                members=moved.members,
            )
        elif moved.after is State.EMPTY:
            self.row = replace(
                self.row,
                joined_ms=self.now_ms,
                generation=moved.generation,
                members=0,
                ended_as="empty",
                ended_ms=self.now_ms,
            )

    def close(self, ended_as: str) -> None:
        """Put the row under way, if any, on the timeline; `ended_as` if it has not ended yet."""
        if self.row is None:
            return
        if self.row.ended_as == "open":
            self.row = replace(self.row, ended_as=ended_as, ended_ms=self.now_ms)
        self.rows.append(self.row)
        self.row = None

    def _choices(self, seen: Observed | None = None) -> Choices:
        """Offer what was observed for the things Kafka leaves open."""
        leader = protocol = ""
        waiting = [p for p in self.parked.values() if p.api == "JOIN_GROUP"]
        for other in sorted(waiting, key=lambda p: p.answered_ms):
            if other.response["errorCode"] == 0:
                leader = other.response.get("leader") or ""
                protocol = other.response.get("protocolName") or ""
                break
        given = ""
        if seen is not None and seen.api == "JOIN_GROUP":
            given = seen.response.get("memberId") or ""
        return Choices(given, leader, protocol)
