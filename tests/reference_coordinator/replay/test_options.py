"""What may happen next, the likeliest first, and what blocks a request."""

from dataclasses import replace

import pytest

from reference_coordinator.classic.events import Timer, TimerKind
from reference_coordinator.classic.state import Service, State
from reference_coordinator.replay import Hint, HintKind
from reference_coordinator.replay.candidates import Candidate, Due
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.replay.hints import Hints
from reference_coordinator.replay.hypothesis import Hypothesis
from reference_coordinator.replay.options import blocked, internal, likely_ms, options_of
from tests.reference_coordinator.replay.conftest import START, Scenario
from tests.reference_coordinator.replay.test_hypothesis import JOIN, candidate, fresh

SESSION = Timer(TimerKind.SESSION, "a")


def causes(hypothesis: Hypothesis, left: list[Candidate], until_ms: float) -> list[object]:
    by_time = sorted(left, key=lambda each: each.earliest_ms)
    options, _ = options_of(hypothesis, by_time, until_ms)
    return [option.cause for option in options]


def heartbeats(*likely: float) -> list[Candidate]:
    scenario = Scenario()
    for name, at in zip("abc", likely, strict=False):
        scenario.heartbeat(name, at, answered=at + 60)
    return [candidate(seen) for seen in scenario.requests]


def test_what_overlaps_may_come_in_any_order_the_likeliest_first() -> None:
    late, early = heartbeats(12, 10)
    assert causes(fresh(), [late, early], START + 1_000) == [early.cause, late.cause]


def test_nothing_comes_after_the_end_of_anothers_window() -> None:
    first, far = heartbeats(10, 500)
    assert causes(fresh(), [first, far], START + 1_000) == [first.cause]


def test_a_connection_keeps_its_order() -> None:
    one, other = heartbeats(10, 12)
    assert not isinstance(one.cause, str | None)
    same = replace(other.cause, connection=one.cause.connection)  # type: ignore[type-var, union-attr]
    second = other._replace(cause=same)  # type: ignore[arg-type]
    assert causes(fresh(), [one, second], START + 1_000) == [one.cause]


def test_a_timer_whose_window_overlaps_is_an_option() -> None:
    hypothesis = fresh()
    hypothesis.timers.running[SESSION] = Due(START, START + 11, START + 20)
    hypothesis.timers.first_ms = START
    (request,) = heartbeats(10)
    assert causes(hypothesis, [request], START + 1_000) == [request.cause, SESSION]


def test_at_the_end_of_a_stretch_nothing_more_need_happen() -> None:
    hypothesis = fresh()
    hypothesis.timers.running[SESSION] = Due(START, START + 11, START + 20)
    hypothesis.timers.first_ms = START
    # it may be late by the slack, which reaches beyond the next stretch
    assert causes(hypothesis, [], START + 100) == [None, SESSION]
    # it is due before then, slack included
    assert causes(hypothesis, [], START + 1_000) == [SESSION]


@pytest.mark.parametrize(("shown", "order"), [(15, [JOIN, None]), (150, [None, JOIN])])
def test_an_initial_delay_that_a_line_shows_by_then_comes_before_the_end(
    shown: float, order: list[object]
) -> None:
    """Seen on 3.9.1: an initial delay whose extension came last was tried before a JoinGroup."""
    hypothesis = fresh()
    hypothesis.group = replace(
        hypothesis.group, state=State.PREPARING_REBALANCE, previous_state=State.EMPTY
    )
    hypothesis.timers.running[JOIN] = Due(START, START + 11, START + 20)
    hypothesis.timers.first_ms = START
    hints = Hints.of([Hint(START + shown, HintKind.JOIN_PHASE_ENDED, "", generation=1)])
    hypothesis.conditions = replace(hypothesis.conditions, hints=hints)
    options, _ = options_of(hypothesis, [], START + 100)
    assert [option.cause for option in options] == order


@pytest.mark.parametrize("shown", [15, 150])
def test_a_session_may_end_after_a_heartbeat_that_was_logged_after_its_line(shown: float) -> None:
    hypothesis = fresh()
    hypothesis.timers.running[SESSION] = Due(START, START + 11, START + 20)
    hypothesis.timers.first_ms = START
    hints = Hints.of([Hint(START + shown, HintKind.SESSION_EXPIRED, "a")])
    hypothesis.conditions = replace(hypothesis.conditions, hints=hints)
    options, _ = options_of(hypothesis, [], START + 100)
    assert [option.cause for option in options] == [None, SESSION]


@pytest.mark.parametrize(
    ("service", "first"), [(Service.ACTIVE, "a"), (Service.LOADING, "b"), (Service.ABSENT, "b")]
)
def test_who_leads_joined_first_but_not_while_the_group_loads(service: Service, first: str) -> None:
    """Two hundred were refused while the group loaded, and the later leader waited among them."""
    hypothesis = fresh()
    hypothesis.group = replace(hypothesis.group, service=service)
    scenario = Scenario()
    scenario.join("b", 10, 100)
    scenario.join("a", 20, 600)
    joins = [candidate(seen) for seen in scenario.requests]
    (likely, _) = causes(hypothesis, joins, START + 1_000)
    assert isinstance(likely, ObservedRequest)
    assert likely.client_id == first


def test_timers_that_cannot_expire_yet_are_no_options() -> None:
    hypothesis = fresh()
    hypothesis.timers.running[SESSION] = Due(START, START, START)
    hypothesis.timers.first_ms = START
    assert internal(hypothesis, START - 100) == []
    (expiry,) = internal(hypothesis, START)
    assert (expiry.cause, expiry.hinted) == (SESSION, False)
    assert expiry.latest_ms == START + hypothesis.conditions.tolerance.timer


def test_a_timer_that_is_late_is_likely_as_late_as_it_can_be() -> None:
    hypothesis = fresh()
    hypothesis.clock.now_ms = 50
    late = Candidate(0, 10, 90, SESSION)
    assert likely_ms(hypothesis, late) == 90
    assert likely_ms(hypothesis, late._replace(hinted=True)) == 10


def test_an_answer_that_came_before_the_oracle_could_give_it_blocks() -> None:
    hypothesis = fresh()
    scenario = Scenario()
    scenario.join("a", 0, 20)
    (seen,) = scenario.requests
    hypothesis.take(candidate(seen), float("inf"))
    later = Candidate(START + 100, START + 100, START + 200, SESSION)
    mismatch = blocked(hypothesis, later, "")
    assert mismatch is not None
    assert (mismatch.request, mismatch.rule) == (seen.id, "answered_early")
    assert blocked(hypothesis, later, seen.id) is None
    assert hypothesis.excused == mismatch
    assert not hypothesis.pending_requests
