"""The oracle's own timers against what the broker did; hints pick instants inside windows."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import Hint, HintKind, Tolerance
from reference_coordinator.replay.hints import Hints, hinted
from tests.reference_coordinator.replay.conftest import (
    IDS,
    SESSION_MS,
    START,
    Scenario,
    beating,
    stable,
    wrong,
)

AGAIN = Error.REBALANCE_IN_PROGRESS
DUE = 5_010.0
"""When b's session ends: 3000 ms after its last heartbeat."""


def silence(rebalances_at: float, *expired: float) -> Scenario:
    """b falls silent at 2010; a receives REBALANCE_IN_PROGRESS from `rebalances_at` on."""
    scenario = stable()
    scenario.heartbeats("b", 1_510, 2_010)
    scenario.heartbeats("a", 1_500, 7_000, AGAIN, every=100, error_from=rebalances_at)
    scenario.hints = [Hint(START + at, HintKind.SESSION_EXPIRED, IDS["b"]) for at in expired]
    return scenario


def test_a_session_ends_at_its_time() -> None:
    outcome = silence(5_100).replay()
    assert outcome.violations == ()
    row = outcome.rows[-1]
    assert (row.reason, row.member_id) == ("session_expired", IDS["b"])
    assert row.started_ms == pytest.approx(START + DUE)


@pytest.mark.parametrize("rebalances_at", [4_000, 4_900])
@pytest.mark.parametrize("expired", [(), (-50,)], ids=["no line", "a line is no excuse"])
def test_a_session_that_ends_early_is_found(rebalances_at: int, expired: tuple[float, ...]) -> None:
    outcome = silence(rebalances_at, *(rebalances_at + after for after in expired)).replay()
    assert wrong(outcome)[0] == f"HEARTBEAT:a:{rebalances_at}"


def test_a_session_may_end_late_by_the_slack_and_no_later() -> None:
    assert silence(5_400).replay().violations == ()
    assert wrong(silence(5_400).replay(Tolerance(timer=100.0)))
    assert wrong(silence(5_700).replay())
    outcome = silence(float("inf")).replay()
    assert wrong(outcome) == ["HEARTBEAT:a:5600"]  # the first after the slack
    assert outcome.violations[0].expected == "error=REBALANCE_IN_PROGRESS"


@pytest.mark.parametrize(
    ("line_at", "started"), [(4_000, DUE), (4_990, DUE), (5_030, 5_030), (5_600, DUE)]
)
def test_a_hint_picks_the_instant_inside_the_window_alone(line_at: float, started: float) -> None:
    outcome = silence(5_100, line_at).replay()
    assert outcome.rows[-1].started_ms == pytest.approx(START + started)
    assert outcome.bound.get("timer_instant", 0) == (line_at == started)


@pytest.mark.parametrize(
    ("kind", "subject", "late_ms", "believed"),
    [
        (HintKind.JOINED, IDS["a"], 900, True),
        (HintKind.JOINED, IDS["a"], 1_100, False),
        (HintKind.REPLACED, "a", 90, True),
        (HintKind.REPLACED, "a", 900, False),
    ],
)
def test_a_line_shows_that_its_request_was_logged_late(
    kind: HintKind, subject: str, late_ms: int, believed: bool
) -> None:
    """A new id is one request's alone; other lines may be about another time."""
    hints = Hints.of([Hint(START - late_ms, kind, subject)])
    (first,) = (seen for seen in hinted(stable().requests[:2], hints) if seen.client_id == "a")
    assert (first.earliest_ms < START - 40) == believed


def test_the_nearest_line_about_an_instance_belongs_to_the_request() -> None:
    """Two processes have one instance id: either replaces the other."""
    scenario = Scenario()
    for at in (1_000, 1_030):
        scenario.join("a", at, at + 8_000, before=40)
    hints = Hints.of([Hint(START + at, HintKind.REPLACED, "a") for at in (1_003, 1_033)])
    assert [seen.at_ms - START for seen in hinted(scenario.requests, hints)] == [1_003, 1_033]


def test_a_line_later_than_the_answers_it_let_go_is_no_crash() -> None:
    scenario = beating(2_500)
    scenario.hints = [Hint(START + 1_100, HintKind.JOIN_PHASE_ENDED, generation=1)]
    assert len(scenario.replay().checked) == len(scenario.requests)


def initial_delay(ends_at: float, **joins: float) -> Scenario:
    """Members join a new group; a line says when its initial delay of 500 ms, or more, ended."""
    scenario = Scenario()
    scenario.join("a", 0, ends_at + 2, members="abc")
    for who, at in joins.items():
        scenario.join(who, at, ends_at + 2)
    scenario.hints = [Hint(START + ends_at, HintKind.JOIN_PHASE_ENDED, generation=1)]
    return scenario


@pytest.mark.parametrize(("ends_at", "rules"), [(1_102, []), (900, ["answered_early"])])
def test_a_late_initial_delay_admits_members_that_joined_meanwhile(
    ends_at: float, rules: list[str]
) -> None:
    """It ran out 100 ms late, so that it went on for b and c together, and ends no earlier."""
    scenario = initial_delay(ends_at, b=20, c=550)
    scenario.heartbeat("c", 800, Error.ILLEGAL_GENERATION, broker="2")
    outcome = scenario.replay()
    assert [violation.rule for violation in outcome.violations] == rules
    assert rules or outcome.rows[0].joined_ms == START + ends_at


@pytest.mark.parametrize(("ends_at", "in_time"), [(2_450, True), (2_600, False)])
def test_an_initial_delay_is_late_as_a_whole(ends_at: int, in_time: bool) -> None:
    """It is extended twice, so it is due at 1,500: all of it may be a second late."""
    outcome = initial_delay(ends_at, b=300, c=700).replay()
    assert outcome.violations == ()
    assert (outcome.rows[0].joined_ms == START + ends_at) == in_time
    assert outcome.rows[0].joined_ms <= START + 2_550  # the window of the first JoinGroup is 50 ms


@pytest.mark.parametrize(
    ("kind", "subject", "reason"),
    [
        (HintKind.SESSION_EXPIRED, IDS["a"], "session_expired"),
        (HintKind.SYNC_EXPIRED, "", "pending_sync"),
    ],
)
def test_of_a_session_and_a_sync_timer_that_end_at_once_the_line_tells_the_first(
    kind: HintKind, subject: str, reason: str
) -> None:
    """The leader is silent; its session is as long as the rebalance timeout."""
    scenario = stable()
    del scenario.requests[2:]
    scenario.sync("b", 1_100, 4_020, error=AGAIN)
    scenario.set_in_joins(rebalanceTimeoutMs=SESSION_MS)
    scenario.hints = [Hint(START + 4_015, kind, subject)]
    outcome = scenario.replay()
    assert outcome.violations == ()
    assert [row.reason for row in outcome.rows][1:] == [reason]
    assert outcome.rows[-1].started_ms == START + 4_015
