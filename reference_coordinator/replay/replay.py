"""Replaying a group's evidence from start to end, and going on after what cannot be explained.

When a stretch has no explanation, the least is assumed to be wrong: one answer, with the state
behind it as the oracle has it. Where that does not explain what follows up to the next full census
(the answer that tells a leader its members), everything up to the census is a consequence, and the
census is where the replay takes the group up again.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from reference_coordinator.errors import Error
from reference_coordinator.profiles import Profile
from reference_coordinator.replay.adoption import from_census, is_census
from reference_coordinator.replay.evidence import Evidence, Observed, Tolerance
from reference_coordinator.replay.hints import Hints, hinted
from reference_coordinator.replay.result import Checked, Replay, Row, Said, Violation
from reference_coordinator.replay.search import Search, candidates_of, explain, stretches
from reference_coordinator.replay.world import Candidate, Mismatch, World
from reference_coordinator.state import Group, Service

SEPARATE_LIES = 3
"""So many wrong answers before the next census count as so many lies; more are one derailment."""


@dataclass(slots=True)
class Replayer:
    """One group's replay under way."""

    evidence: Evidence
    profile: Profile
    tolerance: Tolerance
    checked: list[Checked] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    bound: Counter[str] = field(default_factory=Counter)
    hints: Hints = field(init=False)

    def __post_init__(self) -> None:
        """Sort the hints once."""
        self.hints = Hints.of(self.evidence.hints)

    def run(self) -> Replay:
        """Replay everything."""
        evidence = self.evidence
        first = Group(
            evidence.group, service=Service.ABSENT if evidence.servings else Service.ACTIVE
        )
        requests = hinted(evidence.requests, self.hints)
        candidates = candidates_of(requests, evidence.servings, self.tolerance.early)
        world = World(self.profile, self.tolerance, first)
        if evidence.servings:
            world.owner = evidence.servings[0].broker
        parts = stretches([*candidates, *self._end()])
        index = 0
        while index < len(parts):
            search = self._explain(world, parts[index])
            if search.world is None:
                index, world = self._diverge(world, parts, index, search)
            else:
                world = self._commit(search)
                index += 1
        world.close("open")
        self._commit(Search(world))
        return Replay(
            tuple(self.rows),
            tuple(self.checked),
            tuple(self.violations),
            tuple(self.said),
            dict(self.bound),
        )

    def _end(self) -> list[Candidate]:
        """Mark the end of the evidence, by which every request was answered."""
        last = max((seen.answered_ms for seen in self.evidence.requests), default=0.0)
        end = last + 3 * self.tolerance.early
        return [Candidate(end, end, end, None)]

    def _explain(self, world: World, part: Sequence[Candidate], excuse: str = "") -> Search:
        return explain(world, part, self.hints, excuse)

    def _commit(self, search: Search) -> World:
        """Keep what a stretch yielded."""
        world = search.world
        assert world is not None
        self.checked += [Checked(request, True) for request in world.answered]
        self.rows += world.rows
        self.said += world.said
        self.bound += world.bound
        self.bound["order"] += search.reordered
        return replace(world, rows=[], said=[], answered=[], bound=Counter())

    def _diverge(
        self, world: World, parts: list[list[Candidate]], index: int, failed: Search
    ) -> tuple[int, World]:
        """Go on after a stretch without explanation."""
        kept = len(self.checked), len(self.rows), len(self.violations), len(self.said)
        bound = Counter(self.bound)
        if failed.mismatch is None:
            failed.mismatch = self._unexplained(parts[index][0])
        at_ms = failed.mismatch.at_ms
        census = next(
            (
                seen
                for seen in sorted(self.evidence.requests, key=lambda r: r.answered_ms)
                if is_census(seen) and seen.answered_ms > at_ms
            ),
            None,
        )
        if failed.exhausted:
            went = self._excuse(world, parts, index, failed, census)
            if went is not None:
                return went
            del self.checked[kept[0] :], self.rows[kept[1] :], self.violations[kept[2] :]
            del self.said[kept[3] :]
            self.bound = bound
        return self._resume(world, parts, index, failed, census)

    def _unexplained(self, first: Candidate) -> Mismatch:
        """Name what could not even be tried."""
        requests = self.evidence.requests
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
            found = self._excuse_one(world, parts[index], search)
            if found is None or found.world is None or found.world.excused is None:
                return None
            excused = found.world.excused
            found.world.excused = None
            found.world.answered = [r for r in found.world.answered if r != excused.request]
            world = self._commit(found)
            self.checked.append(Checked(excused.request, False))
            self._violate(excused, excused.at_ms, search.exhausted)
            index += 1
            while index < len(parts) and parts[index][0].earliest_ms <= until:
                search = self._explain(world, parts[index])
                if search.world is None:
                    break
                world = self._commit(search)
                index += 1
            else:
                return index, world
        return None

    def _excuse_one(self, world: World, part: Sequence[Candidate], failed: Search) -> Search | None:
        """Find the one answer whose being wrong makes a stretch fit, the likeliest first."""
        suspects = [c.cause.id for c in part if isinstance(c.cause, Observed)]
        suspects += [request for request in world.parked if request not in suspects]
        likely = failed.mismatch.request if failed.mismatch else ""
        for suspect in sorted(suspects, key=lambda s: s != likely):
            search = self._explain(world, part, suspect)
            if search.world is not None:
                return search
        return None

    def _resume(
        self,
        world: World,
        parts: list[list[Candidate]],
        index: int,
        failed: Search,
        census: Observed | None,
    ) -> tuple[int, World]:
        """Give everything up to the census up, and take the group from there."""
        until = census.answered_ms if census else float("inf")
        mismatch = failed.mismatch
        assert mismatch is not None
        self._violate(mismatch, until, failed.exhausted)
        self.checked += [Checked(request, False) for request in world.parked]
        world.close("unsure")
        self.rows += world.rows
        rest = [c for part in parts[index:] for c in part]
        lost = [c for c in rest if c.at_ms < until and isinstance(c.cause, Observed)]
        self.checked += [Checked(c.cause.id, False) for c in lost if isinstance(c.cause, Observed)]
        if census is None:
            return len(parts), World(self.profile, self.tolerance, world.group)
        self.bound["census"] += 1
        group, timers = from_census(self.evidence.group, census, *self._joins(until))
        fresh = World(
            self.profile,
            self.tolerance,
            group,
            owner=census.broker,
            now_ms=until,
            timers=timers,
            soonest_ms=min(timers.values()),
            stored=world.stored,
            incarnation=max(world.incarnation, self._loads(until)),
        )
        resumed = stretches([c for c in rest if c.at_ms >= until])
        # The caller walks `parts`; hand it the rest in place of what it had.
        parts[index:] = resumed
        return index, fresh

    def _loads(self, until_ms: float) -> int:
        return sum(s.kind == "loaded" and s.at_ms <= until_ms for s in self.evidence.servings)

    def _joins(self, until_ms: float) -> tuple[dict[str, Observed], frozenset[str]]:
        """Collect each member's latest join, and the ids given out but not used yet."""
        joins: dict[str, Observed] = {}
        pending: set[str] = set()
        for seen in self.evidence.requests:
            if seen.api != "JOIN_GROUP" or seen.at_ms > until_ms:
                continue
            member_id = seen.response.get("memberId") or ""
            if seen.response["errorCode"] == 0:
                joins[member_id] = seen
                pending.discard(member_id)
            elif (
                seen.response["errorCode"] == Error.MEMBER_ID_REQUIRED
                and seen.answered_ms <= until_ms
            ):
                pending.add(member_id)
        return joins, frozenset(pending)

    def _violate(self, mismatch: Mismatch, until_ms: float, searched: bool) -> None:
        self.violations.append(
            Violation(
                at_ms=mismatch.at_ms,
                until_ms=until_ms,
                request=mismatch.request,
                rule=mismatch.rule,
                expected=mismatch.expected,
                observed=mismatch.observed,
                searched=searched,
            )
        )


def replay(evidence: Evidence, profile: Profile, tolerance: Tolerance | None = None) -> Replay:
    """Replay one group's evidence under a profile."""
    return Replayer(evidence, profile, tolerance or Tolerance()).run()
