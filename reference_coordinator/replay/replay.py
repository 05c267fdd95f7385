"""Replaying a group's evidence from start to end, and going on after what cannot be explained.

When a stretch has no explanation, the least is assumed to be wrong: one answer, with the state
behind it as the oracle has it. Where that does not explain what follows up to the next full census
(the answer that tells a leader its members), everything up to the census is a consequence, and the
census is where the replay takes the group up again.
"""

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from kafka_protocol.errors import Error
from reference_coordinator.classic.profiles import Profile
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import Group, Service, State
from reference_coordinator.classic.step import Step, step
from reference_coordinator.replay.adoption import from_census, is_census
from reference_coordinator.replay.backtracking import Courses, explain_part, has_lost, impossible
from reference_coordinator.replay.candidates import Candidate, Due, Mismatch, next_if_any_ms
from reference_coordinator.replay.coordinator_epochs import Records, Term, terms
from reference_coordinator.replay.evidence import Evidence, Observed, Tolerance
from reference_coordinator.replay.fast_path import straight_on
from reference_coordinator.replay.hints import Hints, hinted
from reference_coordinator.replay.hypothesis import World
from reference_coordinator.replay.result import Checked, Mark, Outcome, Replay, Violation
from reference_coordinator.replay.search import (
    Search,
    candidates_of,
    explain,
    stretches,
)
from reference_coordinator.replay.uncollected import uncollected
from reference_coordinator.replay.yields import Yields

SEPARATE_LIES = 3
"""So many wrong answers before the next census count as so many lies; more are one derailment."""


LOOK_BACK = (3, 9, 27)
"""So many stretches that changed the group are tried anew, with the one without explanation."""
LOOK_BACK_STEPS = 4
"""So many times the steps of a search that may cost."""
FURTHEST_BACK = 32
"""So many are, if requests were lost in them."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A stretch that changed the group, or might have; and how everything was before it."""

    index: int
    world: World
    mark: Mark
    kept: int
    lost: bool


@dataclass(slots=True)
class Replayer:
    """One term of a group under way; what it yields is added to `outcome` and `records`.

    `everything` is the evidence of all terms, `finds` the record that this one loads.
    """

    everything: Evidence
    term: Term
    profile: Profile
    tolerance: Tolerance
    outcome: Outcome
    records: Records
    finds: GroupRecord | None
    first_alone: bool = False
    step: Step = step
    hints: Hints = field(init=False)
    turns: deque[Turn] = field(default_factory=lambda: deque(maxlen=FURTHEST_BACK))
    certain: bool = True
    """Whether nothing so far was given up unexplained that may have an explanation."""

    def __post_init__(self) -> None:
        """Sort the hints once."""
        self.hints = Hints.of(self.term.hints)

    def run(self) -> None:
        """Replay the term."""
        term = self.term
        requests = hinted(term.requests, self.hints)
        candidates = candidates_of(requests, term.servings, self.tolerance)
        parts = stretches([*candidates, _end(term.end_ms + 3 * self.tolerance.early)])
        service = Service.ACTIVE if term.serves else Service.ABSENT
        world = self._world(Group(self.everything.group, service=service))
        index = 0
        if self.records.lost and term.incarnation > 0:
            index, world = self._resume(world, parts, 0, self._census(term.loaded_ms))
        while index < len(parts):
            index = straight_on(world, parts, index, len(parts) - 1)
            until_ms = next_if_any_ms(parts, index)
            search = explain_part(world, parts[index], until_ms, self.hints)
            self.outcome.steps += search.steps
            turn = self._turn(index, world, has_lost(parts[index]))
            if search.world is None:
                turn = self._look_back(parts, turn, search)
            if search.world is None:
                index, world = self._diverge(world, parts, index, search)
                self.turns.clear()
                continue
            doubtful = turn.lost or search.world.overtaken.keys() > world.overtaken.keys()
            if doubtful or search.world.group is not world.group:
                self.turns.append(turn)
            world = self._commit(search.world, reordered=search.reordered)
            index += 1
        world = self._outlast(world)
        world.yields.close("open", world.now_ms)
        self._commit(world)

    def _turn(self, index: int, world: World, lost: bool) -> Turn:
        return Turn(index, world, self.outcome.mark(), len(self.records.stored), lost)

    def _look_back(self, parts: list[list[Candidate]], failed: Turn, search: Search) -> Turn:
        """Try whether what led to a stretch came about otherwise; then it has an explanation.

        Some choices show only later: whose session ended first, when two could have. Where there
        are lines of the coordinator, they tell. Where not all can be tried, it may still be certain
        that nothing would do.
        """
        turns = [*self.turns, failed]
        lost = [len(turns) - place for place, turn in enumerate(turns) if turn.lost]
        depths = [1] if self.hints.by_key else sorted({*LOOK_BACK, *lost[:1]})
        firsts = list(dict.fromkeys(max(len(turns) - depth, 0) for depth in depths))
        steps = LOOK_BACK_STEPS * self.tolerance.search
        for first in () if self.hints.by_key else firsts:
            if turns[first] is failed and not failed.lost:
                continue
            courses = Courses(parts, failed.index, self.hints, steps)
            search.world = courses.find(turns[first].world.fork(), turns[first].index)
            self.outcome.steps += steps - courses.steps
            search.exhausted &= courses.complete
            if search.world is not None:
                self._back_to(turns[first])
                self.turns = deque(turns[:first], FURTHEST_BACK)
                return turns[first]
        if not search.exhausted:
            turn = turns[firsts[-1]]
            since = range(turn.index, failed.index + 1)
            search.exhausted = impossible(turn.world, parts, since, self.hints, steps)
        return failed

    def _back_to(self, turn: Turn) -> None:
        """Forget what came since."""
        self.outcome.back_to(turn.mark)
        del self.records.stored[turn.kept :]

    def _world(self, group: Group, **state: Any) -> World:
        return World(
            self.profile,
            self.tolerance,
            group,
            self.finds,
            self.term.incarnation,
            self.term.stalls,
            self.everything.outages,
            loads_closed=self.term.loads_closed,
            step=self.step,
            **state,
        )

    def _outlast(self, world: World) -> World:
        """Let happen what was due after the group's last line, up to the last of its broker.

        Only where nobody waits: a request that still waits then is in no log, and keeps its
        member's session from ending.
        """
        if world.group.state is not State.STABLE or world.lost:
            return world
        end = [_end(self.term.ended_ms)]
        return explain(world, end, float("-inf"), self.hints).world or world

    def _commit(self, world: World, *, reordered: bool = False) -> World:
        """Take over what a world yielded."""
        outcome, yields = self.outcome, world.yields
        outcome.checked += [Checked(request, True) for request in yields.answered]
        outcome.rows += yields.rows
        outcome.said += yields.said
        outcome.moves += yields.moves
        for kind, times in yields.bound.items():
            outcome.bound[kind] += times
        outcome.bound["order"] += reordered
        for at_ms, record in yields.stored:
            self.records.keep(at_ms, self.term.incarnation, record)
        world.yields = Yields(row=yields.row)
        return world

    def _diverge(
        self, world: World, parts: list[list[Candidate]], index: int, failed: Search
    ) -> tuple[int, World]:
        """Go on after a stretch without explanation."""
        before = self.outcome.mark()
        kept = len(self.records.stored)
        if failed.mismatch is None:
            failed.mismatch = self._unexplained(parts[index][0])
        failed.exhausted = self.certain = failed.exhausted and self.certain
        if self.first_alone:
            self._violate(failed, float("inf"))
            return len(parts), failed.furthest or world
        census = self._census(failed.mismatch.at_ms)
        if failed.exhausted:
            went = self._excuse(world, parts, index, failed, census)
            if went is not None:
                return went
            self.outcome.back_to(before)
            del self.records.stored[kept:]
        until = census.answered_ms if census else float("inf")
        self._violate(failed, until)
        if failed.furthest is not None:  # what the order that came furthest made happen, happened
            led = failed.furthest.yields
            world.yields = replace(world.yields, row=led.row, rows=led.rows, said=led.said)
        return self._resume(world, parts, index, census)

    def _census(self, after_ms: float) -> Observed | None:
        """Find the next answer of the term that names the whole group."""
        answers = sorted(self.term.requests, key=lambda seen: seen.answered_ms)
        return next((r for r in answers if is_census(r) and r.answered_ms > after_ms), None)

    def _unexplained(self, first: Candidate) -> Mismatch:
        """Name what could not even be tried."""
        requests = self.term.requests
        seen = first.cause if isinstance(first.cause, Observed) else requests[-1]
        return Mismatch(seen.id, first.at_ms, "unexplained", "an order of events", "none found")

    def _excuse(
        self,
        world: World,
        parts: list[list[Candidate]],
        index: int,
        failed: Search,
        census: Observed | None,
    ) -> tuple[int, World] | None:
        """Try to explain everything up to the census with but a few answers wrong."""
        until = census.answered_ms if census else float("inf")
        search = failed
        for _ in range(SEPARATE_LIES):
            found = self._excuse_one(world, parts, index, search)
            if found is None or found.world is None or found.world.excused is None:
                return None
            excused = found.world.excused
            found.world.excused = None
            found.world.yields.answered.remove(excused.request)
            world = self._commit(found.world)
            self.outcome.checked.append(Checked(excused.request, False))
            self._violate(search, excused.at_ms, excused)
            index += 1
            while index < len(parts) and parts[index][0].earliest_ms <= until:
                search = explain_part(world, parts[index], next_if_any_ms(parts, index), self.hints)
                if search.world is None:
                    break
                world = self._commit(search.world)
                index += 1
            else:
                return index, world
        return None

    def _excuse_one(
        self, world: World, parts: list[list[Candidate]], index: int, failed: Search
    ) -> Search | None:
        """Find the one answer whose being wrong makes a stretch fit, the likeliest first."""
        asked = [c.cause for c in parts[index] if isinstance(c.cause, Observed)]
        suspects = list(dict.fromkeys(r.id for r in (*asked, *world.parked.values()) if r.response))
        likely = failed.mismatch.request if failed.mismatch else ""
        for suspect in sorted(suspects, key=lambda s: s != likely):
            search = explain_part(
                world, parts[index], next_if_any_ms(parts, index), self.hints, suspect
            )
            if search.world is not None:
                return search
        return None

    def _resume(
        self, world: World, parts: list[list[Candidate]], index: int, census: Observed | None
    ) -> tuple[int, World]:
        """Give everything up to the census up, and take the group from there."""
        outcome = self.outcome
        until = census.answered_ms if census else float("inf")
        world.yields.close("unsure", world.now_ms)
        outcome.rows += world.yields.rows
        outcome.said += world.yields.said
        rest = [c for part in parts[index:] for c in part]
        given_up = [c.cause for c in rest if c.at_ms < until and isinstance(c.cause, Observed)]
        unsure = [seen for seen in (*world.parked.values(), *given_up) if seen.response]
        outcome.checked += [Checked(seen.id, False) for seen in unsure]
        self.records.lost = True
        if census is None:
            return len(parts), self._world(world.group)
        outcome.bound["census"] += 1
        group, timers = from_census(self.everything.group, census, *self._joins(until))
        fresh = self._world(
            group,
            earliest_ms=until,
            now_ms=until,
            timers={timer: Due(at_ms, at_ms, at_ms) for timer, at_ms in timers.items()},
            soonest_ms=min(timers.values(), default=until),
        )
        # The caller walks `parts`; hand it the rest in place of what it had.
        parts[index:] = stretches([c for c in rest if c.at_ms >= until])
        return index, fresh

    def _joins(self, until_ms: float) -> tuple[dict[str, Observed], frozenset[str]]:
        """Collect each member's latest join, and the ids given out but not used yet."""
        joins: dict[str, Observed] = {}
        pending: set[str] = set()
        for seen in self.everything.requests:
            if seen.api != "JOIN_GROUP" or seen.at_ms > until_ms:
                continue
            member_id = seen.told.get("memberId") or ""
            error = seen.told.get("errorCode")
            if error == Error.NONE:
                joins[member_id] = seen
                pending.discard(member_id)
            elif error == Error.MEMBER_ID_REQUIRED and seen.answered_ms <= until_ms:
                pending.add(member_id)
        return joins, frozenset(pending)

    def _violate(self, search: Search, until_ms: float, wrong: Mismatch | None = None) -> None:
        """Note that a stretch has no explanation: for what is `wrong`, or where it got furthest."""
        mismatch = wrong or search.mismatch
        assert mismatch is not None
        others = search.expected if mismatch == search.mismatch else set()
        self.outcome.violations.append(
            Violation(
                at_ms=mismatch.at_ms,
                until_ms=until_ms,
                request=mismatch.request,
                rule=mismatch.rule,
                expected=mismatch.expected,
                observed=mismatch.observed,
                searched=search.exhausted,
                otherwise=tuple(sorted(others - {mismatch.expected})),
            )
        )


def _end(at_ms: float) -> Candidate:
    """Mark the end of the evidence, by which every request was answered."""
    return Candidate(at_ms, at_ms, at_ms, None)


def replay(
    evidence: Evidence,
    profile: Profile,
    tolerance: Tolerance | None = None,
    *,
    first_alone: bool = False,
    step: Step = step,
) -> Replay:
    """Replay one group's evidence under a profile; to the first violation if that is all.

    `step` is the coordinator that it is compared with, `mutants` has others.
    """
    tolerance = tolerance or Tolerance()
    outcome, records = Outcome(), Records()
    in_order = terms(evidence, tolerance.early)
    takeovers = {term.incarnation: term.takes_over_ms for term in in_order}
    with uncollected():
        for term in in_order:
            finds = records.found_by(term, takeovers)
            Replayer(
                evidence, term, profile, tolerance, outcome, records, finds, first_alone, step
            ).run()
            if first_alone and outcome.violations:
                break
    return outcome.result()
