"""Explaining one stretch of evidence: requests whose windows overlap, and timers among them.

The likely order is tried first. Where a response contradicts it, other orders that the windows and
connections allow are searched best first (`Frontier`), within a budget. No window crosses the end
of a stretch, so the search stays within the stretch.
"""

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from reference_coordinator.classic.events import Timer
from reference_coordinator.replay.candidates import Candidate, Mismatch
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.replay.fast_path import likely_order
from reference_coordinator.replay.hypothesis import OUT_OF_LINE, Hypothesis
from reference_coordinator.replay.line_instants import LinesMay
from reference_coordinator.replay.options import blocked, options_of
from reference_coordinator.replay.result import Violation


@dataclass(slots=True)
class Search:
    """The outcome of one stretch.

    Without a `hypothesis`, `mismatch` is the furthest contradiction; `furthest` is before it;
    `expected` is what else the oracle would have answered there, had other orders been true.
    `out_of_line` tells whether lines contradicted an order.
    """

    hypothesis: Hypothesis | None = None
    mismatch: Mismatch | None = None
    furthest: Hypothesis | None = None
    expected: set[str] = field(default_factory=set)
    depth: int = -1
    steps: int = 0
    exhausted: bool = True
    reordered: bool = False
    out_of_line: bool = False

    def contradicted(self, mismatch: Mismatch, hypothesis: Hypothesis, depth: int) -> None:
        """Note what speaks against an order, after `depth` events that it explains.

        An order that lines alone contradict says nothing of answers.
        """
        if mismatch is OUT_OF_LINE:
            self.out_of_line = True
            return
        if self.mismatch is None or depth > self.depth:
            self.depth, self.mismatch, self.furthest = depth, mismatch, hypothesis
            self.expected = set()
        if (mismatch.request, mismatch.rule) == (self.mismatch.request, self.mismatch.rule):
            self.expected.add(mismatch.expected)

    def violation(self, until_ms: float, wrong: Mismatch | None = None) -> Violation:
        """Return the violation of a stretch without explanation, known up to `until_ms`.

        It is about the answer that is `wrong`, else about the furthest contradiction.
        """
        mismatch = wrong or self.mismatch
        assert mismatch is not None
        others = self.expected if mismatch == self.mismatch else set()
        return Violation(
            at_ms=mismatch.at_ms,
            until_ms=until_ms,
            request=mismatch.request,
            rule=mismatch.rule,
            expected=mismatch.expected,
            observed=mismatch.observed,
            searched=self.exhausted,
            otherwise=tuple(sorted(others - {mismatch.expected})),
        )


WIDENED = 20
"""How often windows may grow step by step; those of a timer that restarts itself always grow."""


@dataclass(slots=True)
class SearchNode:
    """A node of the search: a hypothesis, what is left, what may be next, and by when it must."""

    hypothesis: Hypothesis
    left: tuple[Candidate, ...]
    options: Iterator[Candidate]
    until_ms: float
    depth: int = 0


@dataclass(slots=True)
class Frontier:
    """The places to go on from: those with the fewest departures from the likely order first.

    So an early wrong step is found as soon as a late one. Of places with the same number of
    departures, the latest comes first.
    """

    nodes: list[tuple[int, int, SearchNode]] = field(default_factory=list)
    numbers: "count[int]" = field(default_factory=count)
    known: dict[frozenset[int], list[Hypothesis]] = field(default_factory=dict)
    widened: Counter[frozenset[int]] = field(default_factory=Counter)

    def is_known(self, hypothesis: Hypothesis, left: tuple[Candidate, ...]) -> bool:
        """Tell whether another order led to the same state; widen this one if windows differ."""
        key = frozenset(map(id, left))
        known = self.known.setdefault(key, [])
        for place, other in enumerate(known):
            if same_state(other, hypothesis):
                if covers(other, hypothesis):
                    return True
                self.widened[key] += 1
                widen(hypothesis, other, without_end=self.widened[key] > WIDENED)
                known[place] = hypothesis
                return False
        known.append(hypothesis)
        return False

    def add(self, node: SearchNode, departures: int) -> None:
        """Remember a place."""
        heapq.heappush(self.nodes, (departures, -next(self.numbers), node))


def explain(
    hypothesis: Hypothesis,
    stretch: Sequence[Candidate],
    until_ms: float,
    excuse: str = "",
) -> Search:
    """Find an order in which every answer of a stretch is what the oracle answers.

    `until_ms` is when the next stretch begins: what is due before belongs to this one. Where the
    instants of lines leave no order, lines may stray or lack (see `line_instants`).
    """
    search = Search()
    if not excuse:
        search.hypothesis, search.steps = likely_order(hypothesis, stretch, until_ms)
    if search.hypothesis is None:
        search.hypothesis = next(explanations(search, hypothesis, stretch, until_ms, excuse), None)
    before = hypothesis.lines_may
    if search.hypothesis is None and search.out_of_line and before < LinesMay.LACK:
        freer = replace(hypothesis, lines_may=LinesMay(before + 1))
        search = explain(freer, stretch, until_ms, excuse)
        if search.hypothesis is not None:
            search.hypothesis.lines_may = before
    return search


def explanations(
    search: Search,
    hypothesis: Hypothesis,
    stretch: Sequence[Candidate],
    next_ms: float | None,
    excuse: str = "",
) -> Iterator[Hypothesis]:
    """Yield the hypotheses that orders of a stretch lead to, the likeliest first; see `explain`.

    The next stretch, if there is one, begins at `next_ms`.
    """
    frontier, until_ms = Frontier(), float("-inf") if next_ms is None else next_ms
    by_time = tuple(sorted(stretch, key=lambda candidate: candidate.earliest_ms))
    frontier.add(SearchNode(hypothesis, by_time, *options_of(hypothesis, by_time, until_ms)), 0)
    while frontier.nodes:
        departures, _, node = heapq.heappop(frontier.nodes)
        option = next(node.options, None)
        if option is None:
            continue
        # what goes straight on costs nothing: the budget is for trying other orders
        if search.steps >= len(stretch) + hypothesis.conditions.tolerance.search:
            search.exhausted = False
            return
        search.steps += 1
        ends = option.cause is None and not excuse
        forked = node.hypothesis if ends and node.depth else node.hypothesis.fork()
        mismatch = blocked(forked, option, excuse) or forked.take(option, node.until_ms, excuse)
        if mismatch is not None:
            search.contradicted(mismatch, node.hypothesis, node.depth)
        elif not node.left and option.cause is None:
            search.reordered = departures > 0
            forked.penalty += departures
            yield forked
            continue
        if mismatch is None and _left_no_trace(forked, option, node.hypothesis):
            # right as it is: only what was before it is tried in its place, or what else it binds
            others = [
                other
                for other in node.options
                if other.earliest_ms < option.earliest_ms or other.cause is option.cause
            ]
            node.options = iter(others)
        frontier.add(node, departures + 1)
        if mismatch is None:
            left = tuple(c for c in node.left if c.cause is not option.cause)
            if departures and frontier.is_known(forked, left):
                continue
            options = options_of(forked, left, until_ms)
            frontier.add(SearchNode(forked, left, *options, node.depth + 1), departures)


def _left_no_trace(hypothesis: Hypothesis, option: Candidate, before: Hypothesis) -> bool:
    """Tell whether nothing changed but timers of sessions, which may have been restarted."""
    cause = option.cause
    if hypothesis.group is not before.group or not isinstance(cause, ObservedRequest | Timer):
        return False
    if isinstance(cause, ObservedRequest):  # without a response it may have been acted on later
        return cause.response is not None and cause.id not in hypothesis.pending_requests
    return cause not in hypothesis.timers.running


def same_state(one: Hypothesis, other: Hypothesis) -> bool:
    """Tell whether two hypotheses differ only in times, and in requests without a response."""
    if one.group.state is not other.group.state:
        return False
    return (
        one.timers.running.keys() == other.timers.running.keys()
        and one.pending_requests.keys() == other.pending_requests.keys()
        and one.writes.keys() == other.writes.keys()
        and one.unnamed.names == other.unnamed.names
        and one.excused == other.excused
        and one.group == other.group
    )


def covers(hypothesis: Hypothesis, other: Hypothesis) -> bool:
    """Tell whether a hypothesis's windows contain those of another with the same state."""
    return hypothesis.clock.covers(other.clock) and hypothesis.timers.covers(other.timers)


def widen(hypothesis: Hypothesis, other: Hypothesis, *, without_end: bool = False) -> None:
    """Let a hypothesis's windows contain those of another with the same state.

    Timers' windows that grow have no end then, if they are to be `without_end`.
    """
    hypothesis.timers.widen(other.timers, without_end=without_end)
    hypothesis.clock.widen(other.clock)
