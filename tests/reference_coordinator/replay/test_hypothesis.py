"""One possible history: its timers, pending requests and answers, and what may happen next."""

from dataclasses import replace

import pytest

from reference_coordinator.classic.events import Timer, TimerKind
from reference_coordinator.classic.state import Group, Service, State
from reference_coordinator.replay import Hint, HintKind
from reference_coordinator.replay.adoption import latest_joins
from reference_coordinator.replay.candidates import Candidate, Due
from reference_coordinator.replay.clock import ArmedTimers, Clock
from reference_coordinator.replay.conditions import Conditions
from reference_coordinator.replay.evidence import EpochEvent, ObservedRequest
from reference_coordinator.replay.fast_path import likely_order
from reference_coordinator.replay.hints import Hints
from reference_coordinator.replay.hypothesis import Hypothesis
from reference_coordinator.replay.options import blocked, options_of
from reference_coordinator.replay.pending_requests import PendingRequests
from reference_coordinator.timing import Tolerance
from tests.reference_coordinator.replay.conftest import IDS, PROFILE, START, Scenario, stable

NEVER = float("inf")
JOIN, SESSION = Timer(TimerKind.JOIN), Timer(TimerKind.SESSION, "a")


def fresh(*hints: Hint) -> Hypothesis:
    return Hypothesis.of(Conditions(PROFILE, Tolerance(), hints=Hints.of(hints)), Group("g"))


def candidates(scenario: Scenario) -> list[Candidate]:
    return [Candidate(s.earliest_ms, s.at_ms, s.latest_ms, s) for s in scenario.requests]


def test_a_load_stops_timers_and_forgets_writes() -> None:
    hypothesis = fresh()
    for taken in candidates(stable())[:2]:
        hypothesis.take(taken, NEVER)
    assert hypothesis.timers.running
    hypothesis.take(Candidate(0, START, NEVER, EpochEvent(START, "1", "loading")), NEVER)
    assert not hypothesis.timers.running
    assert not hypothesis.writes


def cause(earliest_ms: float, latest_ms: float) -> Candidate:
    return Candidate(earliest_ms, earliest_ms, latest_ms, None)


def armed(*, keeps_overtaken: bool = False, of_pending: bool = False) -> ArmedTimers:
    """Arm a timer of 1000 ms by an event in [95, 110], most likely at 100."""
    timers = ArmedTimers(10.0, keeps_overtaken)
    timers.arm(SESSION, 1_100, Clock(95, 100, 110), cause(95, 110), of_pending)
    return timers


def test_a_timer_may_expire_from_its_first_deadline_on_but_for_the_reading_error() -> None:
    """The first deadline moves when its timer is restarted or stopped."""
    timers, other = armed(), Timer(TimerKind.SESSION, "b")
    assert not timers.may_expire(1_084)
    assert timers.may_expire(1_085)
    timers.arm(other, 1_500, Clock(100, 100, 100), cause(100, 100), False)
    timers.arm(SESSION, 2_000, Clock(200, 200, 200), cause(200, 200), False)
    assert not timers.may_expire(1_400)
    assert timers.may_expire(1_490)
    timers.disarm(other, cause(300, 300))
    assert not timers.may_expire(1_900)
    timers.disarm(SESSION, cause(300, 300))
    assert not timers.may_expire(1e9)


@pytest.mark.parametrize("of_pending", [True, False])
def test_only_the_timer_of_a_pending_member_is_overtaken_when_it_is_stopped(
    *, of_pending: bool
) -> None:
    timers = armed(keeps_overtaken=True, of_pending=of_pending)
    timers.disarm(SESSION, cause(1_100, 1_100))
    assert (SESSION in timers.overtaken) is of_pending
    assert not timers.running


def test_pending_requests_by_answer_and_connection_and_a_fork_that_goes_on_by_itself() -> None:
    """The first answer shows the end of the join phase; a connection sends one at a time."""
    scenario = Scenario()
    scenario.join("a", 0, 900)
    scenario.join("b", 20, 800)
    a, b = scenario.requests
    waiting = PendingRequests()
    for seen in (a, b):
        waiting.add(seen)
    assert waiting.answered_before(START, a.connection) == [a]
    forked = waiting.fork()
    assert forked.remove(b.id) is b
    assert (waiting.joined_first(), forked.joined_first()) == (b, a)
    assert b.connection in waiting.busy
    assert forked.remove("unknown") is None
    forked.remove(a.id)
    assert forked.answered_before(START, a.connection) == []


@pytest.mark.parametrize(
    ("timer", "kind", "shown", "order"),
    [
        (JOIN, HintKind.JOIN_PHASE_ENDED, 15, [JOIN, None]),
        (JOIN, HintKind.JOIN_PHASE_ENDED, 150, [None, JOIN]),
        (SESSION, HintKind.SESSION_EXPIRED, 15, [None, SESSION]),
        (SESSION, HintKind.SESSION_EXPIRED, 150, [None, SESSION]),
    ],
)
def test_an_initial_delay_that_a_line_shows_by_then_comes_before_the_end(
    timer: Timer, kind: HintKind, shown: float, order: list[object]
) -> None:
    """Seen on 3.9.1: an initial delay whose extension came last was tried before a JoinGroup.

    A session may end after a heartbeat that was logged after its line.
    """
    hypothesis = fresh(Hint(START + shown, kind, timer.member_id, generation=1))
    if timer is JOIN:
        hypothesis.group = replace(
            hypothesis.group, state=State.PREPARING_REBALANCE, previous_state=State.EMPTY
        )
    hypothesis.timers.running[timer] = Due(START, START + 11, START + 20)
    hypothesis.timers.first_ms = START
    options, _ = options_of(hypothesis, [], START + 100)
    assert [option.cause for option in options] == order


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
    (likely, _), _ = options_of(hypothesis, candidates(scenario), START + 1_000)
    assert isinstance(likely.cause, ObservedRequest)
    assert likely.cause.client_id == first


def test_an_answer_that_came_before_the_oracle_could_give_it_blocks() -> None:
    hypothesis, scenario = fresh(), Scenario()
    request = scenario.join("a", 0, 20)
    hypothesis.take(candidates(scenario)[0], NEVER)
    later = Candidate(START + 100, START + 100, START + 200, SESSION)
    mismatch = blocked(hypothesis, later, "")
    assert mismatch is not None
    assert (mismatch.request, mismatch.rule) == (request, "answered_early")
    assert blocked(hypothesis, later, request) is None
    assert hypothesis.excused == mismatch
    assert not hypothesis.pending_requests


def in_generation_1() -> Hypothesis:
    """Return the hypothesis after both members have joined and synced."""
    hypothesis, _ = likely_order(fresh(), candidates(stable()), START + 1_200)
    assert hypothesis is not None
    return hypothesis


def test_it_gives_up_at_the_first_contradiction() -> None:
    scenario = stable()
    scenario.change("SYNC_GROUP:b:1010", assignment="b3RoZXI=")
    assert likely_order(fresh(), candidates(scenario), START + 1_200) == (None, 0)


def test_a_member_that_was_given_an_id_is_pending_until_it_joins_with_it() -> None:
    scenario = Scenario()
    scenario.newcomer("c-0000", 10)
    assert latest_joins(scenario.requests, START + 100) == ({}, {"c-0000"})
    scenario.join("c", 20, 30, known=IDS["c"])
    joins, pending = latest_joins(scenario.requests, START + 100)
    assert (joins.keys(), pending) == ({"c-0000"}, set())
