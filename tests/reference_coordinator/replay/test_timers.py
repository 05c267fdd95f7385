"""The oracle's own timers against what the broker did; hints pick instants inside windows."""

from dataclasses import replace

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import Hint, HintKind, Tolerance
from reference_coordinator.replay.hints import Hints, hinted
from tests.reference_coordinator.replay.conftest import (
    IDS,
    SESSION_MS,
    START,
    Scenario,
    stable,
    wrong,
)

DUE = 5_010.0
"""When b's session ends: 3000 ms after its last heartbeat."""


def silence(rebalances_at: float | None) -> Scenario:
    """b falls silent at 2010; a receives REBALANCE_IN_PROGRESS from `rebalances_at` on."""
    scenario = stable()
    scenario.heartbeats("b", 1_510, 2_010)
    for at in range(1_500, 7_100, 100):
        scenario.heartbeat("a", at, 27 if rebalances_at is not None and at >= rebalances_at else 0)
    return scenario


def test_a_session_ends_at_its_time() -> None:
    outcome = silence(5_100).replay()
    assert outcome.violations == ()
    row = outcome.rows[-1]
    assert (row.reason, row.member_id) == ("session_expired", IDS["b"])
    assert row.started_ms == pytest.approx(START + DUE)


@pytest.mark.parametrize("rebalances_at", [4_000, 4_900])
def test_a_session_that_ends_early_is_found(rebalances_at: int) -> None:
    scenario = silence(rebalances_at)
    assert wrong(scenario.replay())[0] == f"HEARTBEAT:a:{rebalances_at}"
    scenario.hints = [Hint(START + rebalances_at - 50, HintKind.SESSION_EXPIRED, IDS["b"])]
    assert wrong(scenario.replay())[0] == f"HEARTBEAT:a:{rebalances_at}", "a hint is no excuse"


def test_a_session_may_end_late_by_the_slack_and_no_later() -> None:
    assert silence(5_400).replay().violations == ()
    assert wrong(silence(5_400).replay(Tolerance(timer=100.0)))
    assert wrong(silence(5_700).replay())
    outcome = silence(None).replay()
    assert wrong(outcome) == ["HEARTBEAT:a:5600"]  # the first after the slack
    assert outcome.violations[0].expected == "error=REBALANCE_IN_PROGRESS"


def test_a_hint_picks_the_instant_inside_the_window() -> None:
    scenario = silence(5_100)
    scenario.hints = [Hint(START + 5_030, HintKind.SESSION_EXPIRED, IDS["b"])]
    outcome = scenario.replay()
    assert outcome.rows[-1].started_ms == START + 5_030
    assert outcome.bound["timer_instant"] == 1


@pytest.mark.parametrize("at", [4_000, 4_990, 5_600])
def test_a_hint_outside_the_window_moves_nothing(at: int) -> None:
    scenario = silence(5_100)
    scenario.hints = [Hint(START + at, HintKind.SESSION_EXPIRED, IDS["b"])]
    outcome = scenario.replay()
    assert outcome.rows[-1].started_ms == pytest.approx(START + DUE)
    assert outcome.bound.get("timer_instant", 0) == 0


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
    scenario = stable()
    hints = Hints.of([Hint(START - late_ms, kind, subject)])
    (first, *_) = sorted(hinted(scenario.requests[:2], hints), key=lambda seen: seen.client_id)
    assert (first.client_id, first.earliest_ms < START - 40) == ("a", believed)


def test_the_nearest_line_about_an_instance_belongs_to_the_request() -> None:
    scenario = Scenario()
    for at in (1_000, 1_030):  # two processes with one instance id: either replaces the other
        scenario.join("a", at, at + 8_000)
    hints = Hints.of([Hint(START + at, HintKind.REPLACED, "a") for at in (1_003, 1_033)])
    wide = [replace(seen, earliest_ms=seen.at_ms - 40) for seen in scenario.requests]
    assert [seen.at_ms - START for seen in hinted(wide, hints)] == [1_003, 1_033]


def test_a_line_later_than_the_answers_it_let_go_is_no_crash() -> None:
    scenario = stable()
    scenario.heartbeats("a", 1_500, 2_500)
    scenario.hints = [Hint(START + 1_100, HintKind.JOIN_PHASE_ENDED, generation=1)]
    outcome = scenario.replay()
    assert len(outcome.checked) == len(scenario.requests)


def late_start(ends_at: float) -> Scenario:
    """c joins 50 ms after the initial delay should have run out for the first time."""
    scenario = Scenario()
    scenario.join("a", 0, ends_at + 2, members="abc")
    scenario.join("b", 20, ends_at + 2)
    scenario.join("c", 550, ends_at + 2)
    scenario.heartbeat(
        "c", 800, error=Error.ILLEGAL_GENERATION, broker="2"
    )  # over another connection
    scenario.hints = [Hint(START + ends_at, HintKind.JOIN_PHASE_ENDED, generation=1)]
    return scenario


def test_a_late_initial_delay_admits_members_that_joined_meanwhile() -> None:
    # the delay of 500 ms ran out 100 ms late, so that it went on for b and c together
    outcome = late_start(1_102).replay()
    assert outcome.violations == ()
    assert outcome.rows[0].joined_ms == START + 1_102


def test_an_initial_delay_ends_no_earlier_than_its_last_extension() -> None:
    assert [v.rule for v in late_start(900).replay().violations] == ["answered_early"]


@pytest.mark.parametrize(("ends_at", "in_time"), [(2_450, True), (2_600, False)])
def test_an_initial_delay_is_late_as_a_whole(ends_at: int, in_time: bool) -> None:
    """It is extended twice, so it is due at 1,500: all of it may be a second late."""
    scenario = Scenario()
    scenario.join("a", 0, ends_at + 2, members="abc")
    for member, at in (("b", 300), ("c", 700)):
        scenario.join(member, at, ends_at + 2)
    scenario.hints = [Hint(START + ends_at, HintKind.JOIN_PHASE_ENDED, generation=1)]
    outcome = scenario.replay()
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
    scenario = Scenario()
    scenario.join("a", 0, 1_001, members="ab")
    scenario.join("b", 20, 1_001)
    waits = scenario.sync("b", 1_100, 4_020)
    scenario.change(waits, errorCode=Error.REBALANCE_IN_PROGRESS, assignment="")
    scenario.requests = [
        replace(seen, request={**seen.request, "rebalanceTimeoutMs": SESSION_MS})
        for seen in scenario.requests
    ]
    scenario.hints = [Hint(START + 4_015, kind, subject)]
    outcome = scenario.replay()
    assert outcome.violations == ()
    assert [row.reason for row in outcome.rows][1:] == [reason]
    assert outcome.rows[-1].started_ms == START + 4_015
