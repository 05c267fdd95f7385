"""Steady runs change nothing about the result: it is that of one stretch after the other."""

from dataclasses import replace

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.events import SESSION_TIMER, Timer
from reference_coordinator.replay import Checked, Tolerance, fast_path, replay
from reference_coordinator.replay.candidates import Candidate, Due
from reference_coordinator.replay.fast_path import take_steady_run
from reference_coordinator.replay.hypothesis import Hypothesis
from reference_coordinator.replay.stretches import Stretches
from tests.reference_coordinator.replay.conftest import IDS, SESSION_MS, START, Scenario
from tests.reference_coordinator.replay.steady_groups import steady_group
from tests.reference_coordinator.replay.test_hypothesis import in_generation_1

TOLERANCE = Tolerance(search=150)
A, B = (Timer(SESSION_TIMER, IDS[name]) for name in "ab")


def none_at_all(_: Hypothesis, __: Stretches, index: int, ___: int) -> int:
    return index


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_the_result_is_that_of_one_stretch_after_the_other(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [steady_group(seed) for seed in range(first, first + 50)]
    results = [replay(evidence, profile, TOLERANCE) for evidence, profile in groups]
    monkeypatch.setattr(fast_path, "take_steady_run", none_at_all)
    for (evidence, profile), result in zip(groups, results, strict=True):
        assert result == replay(evidence, profile, TOLERANCE)


def stretches(scenario: Scenario) -> Stretches:
    """Cut the requests of a scenario, with an end after them."""
    end_ms = scenario.requests[-1].latest_ms + 50
    end = Candidate(end_ms, end_ms, end_ms, None)
    return Stretches.of(scenario.requests, (), TOLERANCE, end=end)


def taken(scenario: Scenario) -> tuple[int, Hypothesis]:
    """Take the first run after the group has formed; return how many stretches it has."""
    hypothesis, parts = in_generation_1(), stretches(scenario)
    return take_steady_run(hypothesis, parts, 0, len(parts) - 1), hypothesis


def in_turn(until: int, step: int = 250) -> Scenario:
    """Let a and b send heartbeats in turn from 1500 ms on."""
    scenario = Scenario()
    for number, at in enumerate(range(1_500, until, step)):
        scenario.heartbeat("ab"[number % 2], at)
    return scenario


def test_a_timer_has_the_window_of_the_last_request_that_restarts_it() -> None:
    scenario = in_turn(2_500)
    scenario.alter_last(latest_ms=START + 2_253)
    count, hypothesis = taken(scenario)
    assert count == 4
    assert hypothesis.timers.running[A] == Due(
        START + 1_995 + SESSION_MS, START + 2_000 + SESSION_MS, START + 2_001 + SESSION_MS
    )
    assert hypothesis.timers.running[B] == Due(
        START + 2_245 + SESSION_MS, START + 2_250 + SESSION_MS, START + 2_253 + SESSION_MS
    )
    clock = hypothesis.clock
    assert (clock.earliest_ms, clock.now_ms, clock.latest_ms) == (
        START + 2_245, START + 2_250, START + 2_253,
    )  # fmt: skip
    assert hypothesis.output.checked[-4:] == [Checked(seen.id, True) for seen in scenario.requests]


def test_a_run_ends_before_the_first_timer_that_runs_may_expire() -> None:
    hypothesis, parts = in_generation_1(), stretches(in_turn(9_000))
    first_ms = hypothesis.timers.first_ms
    assert first_ms <= min(due.earliest_ms for due in hypothesis.timers.running.values())
    count = take_steady_run(hypothesis, parts, 0, len(parts) - 1)
    assert parts.begins_ms[count] < first_ms - TOLERANCE.early - 1 <= parts.begins_ms[count + 1]


def test_a_run_ends_before_a_timer_that_it_starts_may_expire() -> None:
    hypothesis, parts = in_generation_1(), stretches(in_turn(9_000))
    hypothesis.timers.running.clear()
    hypothesis.timers.first_ms = float("inf")
    count = take_steady_run(hypothesis, parts, 0, len(parts) - 1)
    assert 0 < count < len(parts) - 1
    assert parts.begins_ms[count] + TOLERANCE.early < START + 1_010 + SESSION_MS


@pytest.mark.parametrize(
    "altered",
    [
        {"response": {"errorCode": Error.REBALANCE_IN_PROGRESS}},
        {"response": None},
        {"answered_ms": START + 2_251 + TOLERANCE.reply + 1},
        {"api": "DESCRIBE_GROUPS"},
    ],
)
def test_what_differs_ends_a_run_before_its_stretch(altered: dict[str, object]) -> None:
    scenario = in_turn(3_000)
    # the second shares its stretch with the first, the fourth with the third
    for place in (1, 3):
        before = scenario.requests[place - 1]
        scenario.requests[place] = replace(
            scenario.requests[place], earliest_ms=before.earliest_ms + 1
        )
    scenario.requests[3] = replace(scenario.requests[3], **altered)  # type: ignore[arg-type]
    count, hypothesis = taken(scenario)
    assert count == 1
    assert hypothesis.output.checked[-2:] == [
        Checked(seen.id, True) for seen in scenario.requests[:2]
    ]
    assert hypothesis.clock.now_ms == scenario.requests[1].at_ms


def test_no_run_is_taken_while_a_response_waits() -> None:
    hypothesis, parts = in_generation_1(), stretches(in_turn(3_000))
    waiting = Scenario()
    waiting.join("b", 1_400, 5_000)
    hypothesis.pending_requests.add(waiting.requests[0])
    assert take_steady_run(hypothesis, parts, 0, len(parts) - 1) == 0


def test_no_run_is_taken_while_a_session_may_end_that_was_restarted() -> None:
    hypothesis, parts = in_generation_1(), stretches(in_turn(3_000))
    hypothesis.timers.overtaken = {A: hypothesis.timers.running[A]}
    assert take_steady_run(hypothesis, parts, 0, len(parts) - 1) == 0
