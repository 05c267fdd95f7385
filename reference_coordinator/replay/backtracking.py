"""Backtracking: other explanations of earlier stretches, where a later one has no explanation.

Most often the likeliest order that explains a stretch is true, and a request without a response was
acted on when it was sent. Where this is not so, a contradiction may come up much later. Then the
stretches before it are explained in other ways, the likelier ones first. If none of these explains
the contradiction, all of them may be followed together: hypotheses with the same state are merged,
so there are few. If none is left, the evidence has no explanation.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, count
from typing import NamedTuple

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Answer, Arm, Effect
from reference_coordinator.classic.events import Choices
from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.evidence import ONLY_RESTART_TIMERS, ObservedRequest
from reference_coordinator.replay.fast_path import fast_forward
from reference_coordinator.replay.hypothesis import Hypothesis
from reference_coordinator.replay.other_rules import Place
from reference_coordinator.replay.search import (
    Search,
    covers,
    explain,
    explanations,
    same_state,
    widen,
)
from reference_coordinator.replay.stretches import Stretches

MOST = 64
"""How many hypotheses are followed together at most."""

LOOK_BACK = (3, 9, 27)
"""How many stretches that changed the group are tried again, with the one without explanation."""
LOOK_BACK_STEPS = 4
"""How many times the steps of one search that may take."""
FURTHEST_BACK = 32
"""How many are tried again if requests in them have no response."""


Part = Sequence[Candidate]


def explain_part(hypothesis: Hypothesis, parts: Stretches, index: int, excuse: str = "") -> Search:
    """Explain a stretch, and if possible what is due before the next one begins.

    If both have no explanation together, the stretch alone may have one. Then the contradiction is
    in the next stretch, which is the smaller place to search. Requests without a response are
    acted on when they were sent.
    """
    part: Part = parts[index]
    until_ms = parts.next_ms(index)
    if hypothesis.unanswered or has_unanswered(part):
        hypothesis, part = next(_variants(hypothesis, part, until_ms))
    if until_ms is not None:
        search = explain(hypothesis, part, until_ms, excuse)
        if search.hypothesis is not None:
            return search
    return explain(hypothesis, part, float("-inf"), excuse)


def excuse_one(
    hypothesis: Hypothesis, parts: Stretches, index: int, failed: Search
) -> Search | None:
    """Find the one wrong answer without which a stretch is explained, the likeliest first."""
    received = [c.cause for c in parts[index] if isinstance(c.cause, ObservedRequest)]
    seen = (*received, *hypothesis.pending_requests.values())
    suspects = dict.fromkeys(request.id for request in seen if request.response)
    likely = failed.mismatch.request if failed.mismatch else ""
    for suspect in sorted(suspects, key=lambda request: request != likely):
        search = explain_part(hypothesis, parts, index, suspect)
        if search.hypothesis is not None:
            return search
    return None


class StretchVariant(NamedTuple):
    """A stretch with the unanswered requests that are acted on in it, and the state before it."""

    hypothesis: Hypothesis
    part: Part


@dataclass(slots=True)
class Branch:
    """A search for explanations of a stretch; `hypotheses` are after it, the likeliest first."""

    index: int
    search: Search
    hypotheses: Iterator[Hypothesis]


@dataclass(slots=True)
class Backtracking:
    """Finds an explanation of all stretches up to `parts[last]`, from an earlier one on.

    `steps` are left of the budget. `complete` tells whether they were enough to try everything.
    """

    parts: Stretches
    last: int
    steps: int
    complete: bool = True
    queue: list[tuple[int, int, int, Branch]] = field(default_factory=list)
    numbers: "count[int]" = field(default_factory=count)
    known: dict[int, list[Hypothesis]] = field(default_factory=dict)

    def find(self, hypothesis: Hypothesis, first: int) -> Hypothesis | None:
        """Find the hypothesis after the last stretch with the lowest penalty."""
        self._go_on(hypothesis, first)
        while self.queue:
            _, _, _, branch = heapq.heappop(self.queue)
            self.steps += branch.search.steps
            after = next(branch.hypotheses, None)
            self.steps -= branch.search.steps
            if self.steps < 0:
                self.complete = False
                return None
            if after is None:
                self.complete &= branch.search.exhausted
                continue
            if branch.index == self.last:
                return after
            self._add(after.penalty, branch)
            self._go_on(after, branch.index + 1)
        return None

    def _go_on(self, hypothesis: Hypothesis, index: int) -> None:
        """Add the variants of a stretch after a hypothesis."""
        index = fast_forward(hypothesis, self.parts, index, self.last)
        until_ms = self.parts.next_ms(index)
        known = self.known.setdefault(index, [])
        if any(_same_but_times(other, hypothesis) and covers(other, hypothesis) for other in known):
            return
        known.append(hypothesis)
        for variant in _variants(hypothesis, self.parts[index], until_ms):
            if not _is_idle(variant, until_ms):
                search = Search()
                hypotheses = explanations(search, *variant, until_ms)
                self._add(variant.hypothesis.penalty, Branch(index, search, hypotheses))

    def _add(self, penalty: int, branch: Branch) -> None:
        heapq.heappush(self.queue, (penalty, -branch.index, next(self.numbers), branch))


def look_back(places: Sequence[Place], parts: Stretches, search: Search) -> int | None:
    """Explain stretches otherwise, from one of some places on up to the last, which has failed.

    Some choices show only later: which session ended first, when two could have. Coordinator lines
    settle these choices, so there is nothing to try where the evidence has lines. Where not all can
    be tried, it may still be certain that there is no explanation. Returns which place it was.
    """
    failed = len(places) - 1
    unanswered = [
        number for number, place in enumerate(places) if has_unanswered(parts[place.stretch])
    ]
    numbers = {*(max(len(places) - depth, 0) for depth in LOOK_BACK), *unanswered[:1]}
    firsts = sorted(numbers, reverse=True)
    conditions = places[-1].hypothesis.conditions
    steps = LOOK_BACK_STEPS * conditions.tolerance.search
    for first in () if conditions.hints.by_key else firsts:
        if first == failed and failed not in unanswered:
            continue
        backtracking = Backtracking(parts, places[-1].stretch, steps)
        before = places[first].hypothesis.fork()
        search.hypothesis = backtracking.find(before, places[first].stretch)
        search.steps += steps - backtracking.steps
        search.exhausted &= backtracking.complete
        if search.hypothesis is not None:
            return first
    if not search.exhausted:
        before, since = places[firsts[-1]].hypothesis, places[firsts[-1]].stretch
        stretches = range(since, places[-1].stretch + 1)
        search.exhausted = impossible(before, parts, stretches, steps)
    return None


def impossible(hypothesis: Hypothesis, parts: Stretches, indices: range, steps: int) -> bool:
    """Tell whether it is certain that stretches have no explanation after a hypothesis.

    With a relaxed clock there are fewer hypotheses to follow, and more orders are allowed.
    """
    relaxed = hypothesis.fork()
    relaxed.clock.relaxed = True
    return any(_have_none(one, parts, indices, steps) for one in (hypothesis.fork(), relaxed))


def _have_none(hypothesis: Hypothesis, parts: Stretches, indices: range, steps: int) -> bool:
    """Tell whether a number of steps is enough to show that there is no explanation."""
    hypotheses = [hypothesis]
    for index in indices:
        until_ms, after = parts.next_ms(index), list[Hypothesis]()
        for each in hypotheses:
            for variant in _variants(each, parts[index], until_ms):
                if _is_idle(variant, until_ms):
                    continue
                search = Search()
                for found in explanations(search, *variant, until_ms):
                    _add(after, found)
                steps -= search.steps
                if not search.exhausted or steps < 0 or len(after) > MOST:
                    return False
        hypotheses = after
    return not hypotheses


def _variants(
    hypothesis: Hypothesis, part: Part, until_ms: float | None
) -> Iterator[StretchVariant]:
    """List which requests without response may act in a stretch; first, those that were just sent.

    Others are `penalty`: that one was not acted on at once, and that one of before is now.
    """
    fresh = {
        c.cause.id: c.cause
        for c in part
        if _is_unanswered(c) and isinstance(c.cause, ObservedRequest)
    }
    if not fresh and not hypothesis.unanswered:
        yield StretchVariant(hypothesis, part)
        return
    waiting = {
        seen.id: seen for seen in hypothesis.unanswered if not _comes_to_nothing(hypothesis, seen)
    }
    every = waiting | fresh
    answered = [candidate for candidate in part if not _is_unanswered(candidate)]
    end_ms, now_ms = float("inf") if until_ms is None else until_ms, hypothesis.clock.now_ms
    new = [frozenset(ids) for n in range(len(fresh), -1, -1) for ids in combinations(fresh, n)]
    late = [frozenset(ids) for n in range(len(waiting) + 1) for ids in combinations(waiting, n)]
    for now in new:
        for then in late:
            acting = now | then
            acts = [
                Candidate(
                    seen.at_ms,
                    max(seen.at_ms, now_ms),
                    max(seen.at_ms, end_ms),
                    seen,
                )
                for seen in (every[id_] for id_ in sorted(acting))
            ]
            left = tuple(seen for id_, seen in every.items() if id_ not in acting)
            penalty = hypothesis.penalty + len(then) + len(fresh) - len(now)
            yield StretchVariant(
                replace(hypothesis, unanswered=left, penalty=penalty), [*answered, *acts]
            )


def has_unanswered(part: Part) -> bool:
    """Tell whether a stretch has requests without response."""
    return any(map(_is_unanswered, part))


def _is_unanswered(candidate: Candidate) -> bool:
    return isinstance(candidate.cause, ObservedRequest) and candidate.cause.response is None


def _is_idle(variant: StretchVariant, until_ms: float | None) -> bool:
    """Tell whether one that acts late does nothing, because all the time nothing changes."""
    hypothesis = variant.hypothesis
    late = [
        c.cause
        for c in variant.part
        if _is_unanswered(c) and c.earliest_ms < hypothesis.clock.earliest_ms
    ]
    quiet = all(
        _is_unanswered(c)
        or (isinstance(c.cause, ObservedRequest) and c.cause.api in ONLY_RESTART_TIMERS)
        for c in variant.part
    )
    if (
        not late
        or not quiet
        or hypothesis.writes
        or hypothesis.timers.may_expire(until_ms or float("inf"))
    ):
        return False
    return any(
        isinstance(seen, ObservedRequest) and _does_nothing(hypothesis, seen) for seen in late
    )


def _does_nothing(hypothesis: Hypothesis, seen: ObservedRequest) -> bool:
    """Tell whether a request would leave the group as it is, were it acted on now."""
    effects = _effects_alone(hypothesis, seen)
    return effects is not None and not any(isinstance(effect, Arm) for effect in effects)


def _comes_to_nothing(hypothesis: Hypothesis, seen: ObservedRequest) -> bool:
    """Tell whether a request can do nothing any more: no member gets an id that was in use."""
    if not seen.request.get("memberId"):
        return False
    effects = _effects_alone(hypothesis, seen) or ()
    refused = [effect.response.error for effect in effects if isinstance(effect, Answer)]
    return refused in ([Error.UNKNOWN_MEMBER_ID], [Error.FENCED_INSTANCE_ID])


def _effects_alone(hypothesis: Hypothesis, seen: ObservedRequest) -> Sequence[Effect] | None:
    """Return the effects of a request that is acted on now; None if the group would change."""
    group, conditions = hypothesis.group, hypothesis.conditions
    event = conditions.protocol.event_of(seen, hypothesis.clock.now_ms, Choices())
    after, effects = conditions.protocol.step(group, event, conditions.profile)
    return effects if after is group else None


def _same_but_times(one: Hypothesis, other: Hypothesis) -> bool:
    """Tell whether hypotheses differ only in times."""
    return {seen.id for seen in one.unanswered} == {
        seen.id for seen in other.unanswered
    } and same_state(one, other)


def _add(hypotheses: list[Hypothesis], hypothesis: Hypothesis) -> None:
    """Add a hypothesis, or widen one that has the same state."""
    for other in hypotheses:
        if _same_but_times(other, hypothesis):
            widen(other, hypothesis)
            return
    hypotheses.append(hypothesis)
