"""Replays a coordinator epoch from start to end, and goes on after a violation.

The theory is in `README.md` beside this module. When a stretch has no explanation, the replay
assumes as little as possible to be wrong: one answer, while the oracle's state is right. If that
does not explain what follows up to the next census (the JoinGroup response that names the whole
group to its leader), everything up to the census is a consequence, and the replay takes the group
up again from the census.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat

from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Service, State
from reference_coordinator.replay.adoption import from_census, latest_joins, next_census
from reference_coordinator.replay.backtracking import (
    FURTHEST_BACK,
    excuse_one,
    explain_part,
    has_unanswered,
    look_back,
)
from reference_coordinator.replay.candidates import Candidate, Due, Mismatch
from reference_coordinator.replay.clock import Clock
from reference_coordinator.replay.conditions import Conditions
from reference_coordinator.replay.coordinator_epochs import CoordinatorEpoch, StoredRecords
from reference_coordinator.replay.evidence import Evidence, ObservedRequest
from reference_coordinator.replay.fast_path import fast_forward
from reference_coordinator.replay.hints import Hints, hinted
from reference_coordinator.replay.hypothesis import Hypothesis
from reference_coordinator.replay.lateness import Lateness
from reference_coordinator.replay.other_rules import Place, Trail
from reference_coordinator.replay.overdue import overdue_line
from reference_coordinator.replay.reactions import Reactions
from reference_coordinator.replay.result import Checked, Output
from reference_coordinator.replay.search import Search, explain
from reference_coordinator.replay.stretches import Stretches

SEPARATE_WRONG_ANSWERS = 3
"""Up to so many wrong answers before the next census are violations of their own."""


class EvidenceToComeError(Exception):
    """What is to come may make a difference."""


@dataclass(slots=True)
class EpochReplay:
    """The replay of one coordinator epoch, as far as it has come.

    It adds its output to `outcome` and `records`. `rules` and `evidence` are of the whole group,
    the latter without requests; `joins` are all of its JoinGroups. `wanted` requests are waited
    for.
    """

    epoch: CoordinatorEpoch
    rules: Conditions
    evidence: Evidence
    joins: Sequence[ObservedRequest]
    records: StoredRecords
    first_alone: bool
    wanted: int
    outcome: Output = field(default_factory=Output)
    begun: bool = False
    ended: bool = False
    stored_record: GroupRecord | None = None
    """What the coordinator loaded, once this has begun."""
    conditions: Conditions = field(init=False)
    parts: Stretches = field(default_factory=Stretches.none)
    checkpoints: deque[Place] = field(default_factory=lambda: deque(maxlen=FURTHEST_BACK))
    certain: bool = True
    """Whether all that is unexplained so far is known to have no explanation."""
    hypothesis: Hypothesis | None = None
    """What is known before what is left of the epoch."""
    goes_on: bool = False
    """Whether more evidence of the epoch is to come."""
    reads_before: int = 0
    """How often rules that differ had been read before this epoch."""
    trail: Trail | None = None
    """What it leaves for a second replay, if such rules are noted."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing can come of the epoch: it has no requests, and loads no group."""
        loads = self.epoch.serves or self.epoch.loaded_ms < float("inf")
        return not (loads or self.epoch.requests or self.begun)

    @property
    def is_over(self) -> bool:
        """Whether the broker gave the group up, and stores no record of it any more."""
        hypothesis = self.hypothesis
        return hypothesis is not None and (
            hypothesis.group.service is Service.ABSENT and not hypothesis.timers.running
        )

    def run(self, first: Trail | None = None) -> None:
        """Replay the epoch, or what is left of it, to its end; `first` is what another one left."""
        usable = first is not None and first.begins_with(self.stored_record) and self._is_at_begin
        if first is None or first.end is None or not usable:
            end_ms = self.epoch.last_ms + 3 * self.rules.tolerance.early
            self._end(self._explain(end_ms))
            return
        self._look_at(first.conditions.hints)
        self.parts, place = first.parts, first.begin
        while (start := first.next_start(place.stretch)) is not None:
            first.give(self.outcome, self.records.stored, place, start)
            hypothesis = start.hypothesis.fork()
            hypothesis.conditions, hypothesis.reactions = self.conditions, Reactions()
            place_or_end = self._go_on(start.stretch, hypothesis, first)
            if isinstance(place_or_end, Hypothesis):
                self._end(place_or_end)
                return
            place = place_or_end
        first.give(self.outcome, self.records.stored, place, first.end)

    @property
    def _is_at_begin(self) -> bool:
        """Whether the epoch is to be replayed from its begin, with a known record."""
        return self.hypothesis is None and not self.records.uncertain

    def _place(self, index: int, hypothesis: Hypothesis) -> Place:
        outcome, kept = self.outcome, len(self.records.stored)
        return Place(index, hypothesis, outcome.mark(), outcome.steps, kept)

    def _end(self, hypothesis: Hypothesis) -> None:
        """Let timers expire after the last stretch, and close what is open.

        They expire up to the last line of the broker, in a Stable group alone: in another a request
        may wait that is in no log, and that keeps its member's session from ending.
        """
        if hypothesis.group.state is State.STABLE and not hypothesis.unanswered:
            end = [_end(self.epoch.ended_ms)]
            hypothesis = explain(hypothesis, end, float("-inf")).hypothesis or hypothesis
        if self.conditions.hints.by_key and not self.records.uncertain:
            overdue = overdue_line(hypothesis, self.epoch)
            self.outcome.expected_lines += [] if overdue is None else [overdue]
        hypothesis.output.close("open", hypothesis.clock.now_ms)
        hypothesis = self._commit(hypothesis)
        if self.trail is not None:
            reads = self.rules.profile.reads - self.reads_before
            self.trail.ended(self._place(len(self.trail.parts), hypothesis), reads)

    def run_to(self, end_ms: float, quiet_ms: float) -> bool:
        """Replay the evidence of the epoch that has come in; the next request comes at `end_ms`.

        False, and nothing is changed, where what is to come may make a difference: something is
        under way then, may happen by itself before `quiet_ms`, or has no explanation yet.
        """
        hypothesis = self.hypothesis and self.hypothesis.fork()
        before = self.certain, self.outcome.steps
        mark, records = self.outcome.mark(), self.records.mark()
        self.checkpoints.clear()
        self.goes_on = True
        try:
            after = self._explain(end_ms)
            if after.is_settled(quiet_ms):
                self.hypothesis = self._commit(after)
                return True
        except EvidenceToComeError:
            pass
        finally:
            self.goes_on = False
        self.hypothesis, (self.certain, self.outcome.steps) = hypothesis, before
        self.outcome.back_to(mark)
        self.records.back_to(records)
        return False

    def _explain(self, end_ms: float) -> Hypothesis:
        """Explain the evidence, stretch by stretch; return the last hypothesis.

        The last stretch is the end at `end_ms`. It is explained too, unless the evidence goes on.
        """
        self._look_at(Hints.of(self.epoch.hints))
        conditions = self.conditions
        requests, events = hinted(self.epoch.requests, conditions.hints), self.epoch.epoch_events
        tolerance, lateness = conditions.tolerance, conditions.lateness
        self.parts = Stretches.of(requests, events, tolerance, lateness, _end(end_ms))
        index, hypothesis = self._begin()
        if conditions.profile.differing and self._is_at_begin and not self.goes_on:
            begin = self._place(index, hypothesis)
            self.trail = Trail(self.parts, conditions, self.outcome, self.records.stored, begin)
        after = self._go_on(index, hypothesis)
        assert isinstance(after, Hypothesis)
        return after

    def _go_on(
        self, index: int, hypothesis: Hypothesis, first: Trail | None = None
    ) -> Hypothesis | Place:
        """Explain what is left; return the last hypothesis, or where it is one of the first's."""
        parts, to_come, begun = self.parts, int(self.goes_on), index
        profile, has_lines = self.rules.profile, bool(self.conditions.hints.by_key)
        while index < len(parts) - to_come:
            index = fast_forward(hypothesis, parts, index, len(parts) - 1)
            if hypothesis.output.checked:
                self._commit(hypothesis)
            if index == len(parts) - to_come:
                break
            if first is not None and index > begun and (met := first.meets(index, hypothesis)):
                return met
            reads = profile.reads
            search = explain_part(hypothesis, parts, index)
            if self.trail is not None:
                reads = profile.reads - reads
                self.trail.explained(self._place(index, hypothesis), reads)
            if search.hypothesis is None or not has_lines:  # else nothing is tried again
                place = self._place(index, hypothesis)
                if search.hypothesis is None:
                    place = self._look_back(place, search)
                if search.hypothesis is None:
                    self.outcome.steps += search.steps
                    index, hypothesis = self._go_on_after_violation(hypothesis, index, search)
                    self.checkpoints.clear()
                    self.trail = first = None
                    continue
                overtaken = search.hypothesis.timers.overtaken.keys()
                if (
                    search.hypothesis.group is not hypothesis.group
                    or overtaken > hypothesis.timers.overtaken.keys()
                    or has_unanswered(parts[place.stretch])
                ):
                    self.checkpoints.append(place)
            self.outcome.steps += search.steps
            hypothesis = self._commit(search.hypothesis, reordered=search.reordered)
            index += 1
        return hypothesis

    def _begin(self) -> tuple[int, Hypothesis]:
        """Return the first stretch to explain, and what is known before it."""
        if self.hypothesis is not None:
            self.hypothesis.conditions = self.conditions
            return 0, self.hypothesis
        group = self.rules.protocol.new_group(self.evidence.group)
        if not self.epoch.serves:
            group = replace(group, service=Service.ABSENT)
        hypothesis = Hypothesis.of(self.conditions, group)
        if not self.records.uncertain or self.epoch.incarnation == 0:
            return 0, hypothesis
        return self._resume(hypothesis, 0, self._next_census(self.epoch.loaded_ms))

    def _next_census(self, after_ms: float) -> ObservedRequest | None:
        census = next_census(self.epoch.requests, after_ms)
        if census is None and self.goes_on:
            raise EvidenceToComeError
        return census

    def _look_back(self, failed: Place, search: Search) -> Place:
        """Try other explanations of earlier stretches; return from which on there is one."""
        places = [*self.checkpoints, failed]
        first = look_back(places, self.parts, search)
        if first is None:
            return failed
        self.outcome.back_to(places[first].mark)
        del self.records.stored[places[first].kept :]
        self.checkpoints = deque(places[:first], FURTHEST_BACK)
        return places[first]

    def end(self) -> None:
        """Forget all but what came out of it."""
        self.ended, self.begun, self.hypothesis = True, False, None
        self.conditions, self.parts = self.rules, Stretches.none()
        self.checkpoints.clear()
        self.epoch.requests, self.epoch.hints = [], []

    def _look_at(self, hints: Hints) -> None:
        """Take what is known of the broker in the evidence of the epoch that has come in."""
        epoch, stalls = self.epoch, self.evidence.stalls
        self.conditions = replace(
            self.rules,
            stored_record=self.stored_record,
            incarnation=epoch.incarnation,
            lateness=Lateness.of(epoch.stalls),
            answer_lateness=Lateness.of([*epoch.stalls, *(one for one in stalls if one.proven)]),
            anywhere=Lateness.of(stalls),
            requests=epoch.requests,
            loads_closed=epoch.loads_closed,
            hints=hints,
        )

    def _commit(self, hypothesis: Hypothesis, *, reordered: bool = False) -> Hypothesis:
        """Add the output of a hypothesis to the outcome; it keeps the rebalance under way."""
        self.outcome.add(hypothesis.output)
        self.outcome.bind("order", reordered)
        self.records.stored += zip(repeat(self.epoch.incarnation), hypothesis.output.stored)
        hypothesis.output = Output(row=hypothesis.output.row)
        return hypothesis

    def _go_on_after_violation(
        self, hypothesis: Hypothesis, index: int, failed: Search
    ) -> tuple[int, Hypothesis]:
        """Go on after a stretch without explanation."""
        before, kept = self.outcome.mark(), len(self.records.stored)
        if failed.mismatch is None:
            failed.mismatch = self._unexplained(self.parts[index][0])
        failed.exhausted = self.certain = failed.exhausted and self.certain
        if self.first_alone:
            self.outcome.violations.append(failed.violation(float("inf")))
            return len(self.parts), failed.furthest or hypothesis
        if self.epoch.may_load_otherwise(failed.mismatch.at_ms):
            self.outcome.bind("unseen_takeover")
            return self._resume(hypothesis, index, self.epoch.first_census)
        census = self._next_census(failed.mismatch.at_ms)
        until = census.answered_ms if census else float("inf")
        if failed.exhausted:
            resumed = self._excuse(hypothesis, index, failed, until)
            if resumed is not None:
                return resumed
            self.outcome.back_to(before)
            del self.records.stored[kept:]
        self.outcome.violations.append(failed.violation(until))
        if failed.furthest is not None:  # the timeline is that of the order that came furthest
            reached = failed.furthest.output
            hypothesis.output = replace(
                hypothesis.output,
                row=reached.row,
                rows=reached.rows,
                expected_lines=reached.expected_lines,
            )
        return self._resume(hypothesis, index, census)

    def _unexplained(self, first: Candidate) -> Mismatch:
        """Name what could not even be tried."""
        seen = first.cause
        if not isinstance(seen, ObservedRequest):
            if self.goes_on:
                raise EvidenceToComeError
            seen = self.epoch.requests[-1]
        return Mismatch(seen.id, first.at_ms, "unexplained", "an order of events", "none found")

    def _excuse(
        self, hypothesis: Hypothesis, index: int, search: Search, until: float
    ) -> tuple[int, Hypothesis] | None:
        """Try to explain everything up to the census with a few answers assumed to be wrong."""
        parts = self.parts
        for _ in range(SEPARATE_WRONG_ANSWERS):
            found = excuse_one(hypothesis, parts, index, search)
            if found is None or found.hypothesis is None or found.hypothesis.excused is None:
                return None
            excused = found.hypothesis.excused
            found.hypothesis.excused = None
            found.hypothesis.output.checked.remove(Checked(excused.request, True))
            hypothesis = self._commit(found.hypothesis)
            self.outcome.checked.append(Checked(excused.request, False))
            self.outcome.violations.append(search.violation(excused.at_ms, excused))
            index += 1
            while index < len(parts) and parts.earliest_ms[parts.cuts[index]] <= until:
                search = explain_part(hypothesis, parts, index)
                if search.hypothesis is None:
                    break
                hypothesis = self._commit(search.hypothesis)
                index += 1
            else:
                return index, hypothesis
        return None

    def _resume(
        self, hypothesis: Hypothesis, index: int, census: ObservedRequest | None
    ) -> tuple[int, Hypothesis]:
        """Skip everything up to the census, and take the group up from there."""
        outcome, parts = self.outcome, self.parts
        until = census.answered_ms if census else float("inf")
        hypothesis.output.close("unsure", hypothesis.clock.now_ms)
        outcome.rows += hypothesis.output.rows
        outcome.expected_lines += hypothesis.output.expected_lines
        given_up = [
            cause
            for at_ms, cause in parts.causes_from(index)
            if at_ms < until and isinstance(cause, ObservedRequest)
        ]
        unsure = [
            seen for seen in (*hypothesis.pending_requests.values(), *given_up) if seen.response
        ]
        outcome.checked += [Checked(seen.id, False) for seen in unsure]
        self.records.skip()
        if census is None:
            return len(parts), Hypothesis.of(hypothesis.conditions, hypothesis.group)
        outcome.bind("census")
        group, timers = from_census(self.evidence.group, census, *latest_joins(self.joins, until))
        fresh = Hypothesis.of(hypothesis.conditions, group, Clock(until, until))
        fresh.timers.running = {t: Due(at_ms, at_ms, at_ms) for t, at_ms in timers.items()}
        fresh.timers.first_ms = min(timers.values(), default=until)
        parts.skip(index, until)  # the caller goes on with the rest
        return index, fresh


def _end(at_ms: float) -> Candidate:
    """Mark the end of the evidence, by which every request was answered."""
    return Candidate(at_ms, at_ms, at_ms, None)
