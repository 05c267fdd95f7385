"""One possible history: its timers, pending requests and answers, and what may happen next."""

from dataclasses import replace

import pytest

from reference_coordinator.classic.events import Timer, TimerKind
from reference_coordinator.classic.state import Group, Member, Service, State
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
from tests.reference_coordinator.replay.conftest import (
    IDS,
    PROFILE,
    START,
    Scenario,
    stable,
)

NEVER = float("inf")


JOIN = Timer(TimerKind.JOIN)


def fresh() -> Hypothesis:
    return Hypothesis.of(Conditions(PROFILE, Tolerance()), Group("g"))


def candidate(seen: ObservedRequest) -> Candidate:
    return Candidate(seen.earliest_ms, seen.at_ms, seen.latest_ms, seen)


def take(hypothesis: Hypothesis, scenario: Scenario, count: int) -> None:
    """Take a scenario's requests, and the end of the join phase after two of them.

    The second join extends the initial delay, so it expires once more.
    """
    for number, seen in enumerate(scenario.requests[:count]):
        hypothesis.take(candidate(seen), NEVER)
        if number == 1:
            for due in (START + 500, START + 1_000):
                hypothesis.take(Candidate(due, due, due + 5, JOIN), NEVER)


def test_an_answer_may_be_neither_too_early_nor_too_late() -> None:
    scenario = Scenario()
    scenario.heartbeat("a", 100, 25)
    (seen,) = scenario.requests
    for answered_ms, rule in ((START - 100, "answered_early"), (START + 5_000, "answered_late")):
        wrong = fresh().take(candidate(replace(seen, answered_ms=answered_ms)), NEVER)
        assert wrong is not None
        assert wrong.rule == rule
    assert fresh().take(candidate(seen), NEVER) is None


def test_a_load_stops_timers_and_forgets_writes() -> None:
    hypothesis = fresh()
    take(hypothesis, stable(), 2)
    assert hypothesis.timers.running
    hypothesis.take(Candidate(0, START, NEVER, EpochEvent(START, "1", "loading")), NEVER)
    assert not hypothesis.timers.running
    assert not hypothesis.writes


A, B = (Timer(TimerKind.SESSION, member_id) for member_id in "ab")


def cause(earliest_ms: float, latest_ms: float) -> Candidate:
    return Candidate(earliest_ms, earliest_ms, latest_ms, None)


def armed(
    timer: Timer = A, *, keeps_overtaken: bool = False, of_pending: bool = False
) -> ArmedTimers:
    """Arm a timer of 1000 ms by an event in [95, 110], most likely at 100."""
    timers = ArmedTimers(10.0, keeps_overtaken)
    timers.arm(timer, 1_100, Clock(95, 100, 110), cause(95, 110), of_pending)
    return timers


def test_a_timer_may_expire_from_its_deadline_on_but_for_the_reading_error() -> None:
    timers = armed()
    assert not timers.may_expire(1_084)
    assert timers.may_expire(1_085)


def test_the_first_deadline_moves_when_its_timer_is_restarted_or_stopped() -> None:
    timers = armed()
    timers.arm(B, 1_500, Clock(100, 100, 100), cause(100, 100), False)
    timers.arm(A, 2_000, Clock(200, 200, 200), cause(200, 200), False)
    assert not timers.may_expire(1_400)
    assert timers.may_expire(1_490)
    timers.disarm(B, cause(300, 300))
    assert not timers.may_expire(1_900)
    timers.disarm(A, cause(300, 300))
    assert not timers.may_expire(1e9)


@pytest.mark.parametrize("of_pending", [True, False])
def test_only_the_timer_of_a_pending_member_is_overtaken_when_it_is_stopped(
    *, of_pending: bool
) -> None:
    timers = armed(keeps_overtaken=True, of_pending=of_pending)
    timers.disarm(A, cause(1_100, 1_100))
    assert (A in timers.overtaken) is of_pending
    assert not timers.running


def member(member_id: str, instance_id: str | None = None) -> Member:
    return Member(
        member_id=member_id,
        group_instance_id=instance_id,
        session_timeout_ms=1_000,
        rebalance_timeout_ms=1_000,
        protocol_type="consumer",
        protocols=(("range", "bQ=="),),
        client_id=member_id,
    )


def two_joins() -> tuple[ObservedRequest, ObservedRequest]:
    scenario = Scenario()
    scenario.join("a", 0, 900)
    scenario.join("b", 20, 800)
    first, second = scenario.requests
    return first, second


def waiting_for(*seen: ObservedRequest) -> PendingRequests:
    made = PendingRequests()
    for one in seen:
        made.add(one)
    return made


def test_the_first_answer_shows_the_end_of_the_join_phase() -> None:
    a, b = two_joins()
    waiting = waiting_for(a, b)
    assert waiting.joined_first() is b
    assert waiting.remove(b.id) is b
    assert waiting.joined_first() is a
    assert waiting.remove("unknown") is None


def test_a_connection_takes_no_other_request_before_the_answer() -> None:
    a, b = two_joins()
    waiting = waiting_for(a, b)
    assert waiting.answered_before(START, a.connection) == [a]
    waiting.remove(a.id)
    assert waiting.answered_before(START, a.connection) == []


def test_a_fork_goes_on_by_itself() -> None:
    a, b = two_joins()
    waiting = waiting_for(a, b)
    forked = waiting.fork()
    forked.remove(b.id)
    assert waiting.joined_first() is b
    assert forked.joined_first() is a
    assert b.connection in waiting.busy


SESSION = Timer(TimerKind.SESSION, "a")


def causes(hypothesis: Hypothesis, left: list[Candidate], until_ms: float) -> list[object]:
    by_time = sorted(left, key=lambda each: each.earliest_ms)
    options, _ = options_of(hypothesis, by_time, until_ms)
    return [option.cause for option in options]


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


UNTIL_MS = START + 1_200


def in_generation_1() -> Hypothesis:
    """Return the hypothesis after both members have joined and synced."""
    requests = [candidate(seen) for seen in stable().requests]
    hypothesis, _ = likely_order(fresh(), requests, UNTIL_MS)
    assert hypothesis is not None
    return hypothesis


def test_it_gives_up_at_the_first_contradiction() -> None:
    scenario = stable()
    scenario.change("SYNC_GROUP:b:1010", assignment="b3RoZXI=")
    requests = [candidate(seen) for seen in scenario.requests]
    assert likely_order(fresh(), requests, UNTIL_MS) == (None, 0)


def test_a_member_that_was_given_an_id_is_pending_until_it_joins_with_it() -> None:
    scenario = Scenario()
    scenario.newcomer("c-0000", 10)
    joins, pending = latest_joins(scenario.requests, START + 100)
    assert (joins, pending) == ({}, {"c-0000"})
    scenario.join("c", 20, 30, known=IDS["c"])
    joins, pending = latest_joins(scenario.requests, START + 100)
    assert (joins.keys(), pending) == ({"c-0000"}, set())
