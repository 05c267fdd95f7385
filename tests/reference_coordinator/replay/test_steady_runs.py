"""Steady runs and remembered decisions change nothing about the result."""

from collections.abc import Mapping
from typing import Any

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.events import SESSION_TIMER, Timer
from reference_coordinator.replay import Checked, Tolerance, fast_path, replay
from reference_coordinator.replay.candidates import Candidate, Due
from reference_coordinator.replay.fast_path import take_steady_run
from reference_coordinator.replay.hypothesis import Hypothesis
from reference_coordinator.replay.reactions import Reactions
from reference_coordinator.replay.stretches import Stretches
from tests.reference_coordinator.replay.conftest import IDS, SESSION_MS, START, Scenario
from tests.reference_coordinator.replay.steady_groups import steady_group
from tests.reference_coordinator.replay.test_hypothesis import in_generation_1

TOLERANCE = Tolerance(search=150)
REMEMBERED = Reactions.to


def none_at_all(_: Hypothesis, __: Stretches, index: int, ___: int) -> int:
    return index


def decided_anew(_: Reactions, *about: Any) -> Any:
    return REMEMBERED(Reactions(), *about)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_the_result_is_that_of_one_stretch_and_one_decision_after_the_other(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [steady_group(seed) for seed in range(first, first + 50)]
    results = [replay(evidence, profile, TOLERANCE) for evidence, profile in groups]
    monkeypatch.setattr(fast_path, "take_steady_run", none_at_all)
    monkeypatch.setattr(Reactions, "to", decided_anew)
    for (evidence, profile), result in zip(groups, results, strict=True):
        assert result == replay(evidence, profile, TOLERANCE)


def in_turn(
    until: int, altered: Mapping[str, Any] | None = None
) -> tuple[Hypothesis, Stretches, Scenario]:
    """Let a and b send heartbeats in turn, once they are in generation 1.

    If the fourth is altered, it shares its stretch with the third, and the second with the first.
    """
    scenario = Scenario()
    for number, at in enumerate(range(1_500, until, 250)):
        scenario.heartbeat("ab"[number % 2], at)
    scenario.alter_last(latest_ms=scenario.requests[-1].at_ms + 3)
    if altered is not None:
        first, second, third, fourth, *_ = scenario.requests
        scenario.alter(second.id, earliest_ms=first.earliest_ms + 1)
        scenario.alter(fourth.id, earliest_ms=third.earliest_ms + 1, **altered)
    end_ms = START + until + 50
    end = Candidate(end_ms, end_ms, end_ms, None)
    parts = Stretches.of(scenario.requests, (), TOLERANCE, end=end)
    return in_generation_1(), parts, scenario


def taken(hypothesis: Hypothesis, parts: Stretches) -> int:
    """Take the first run; return how many stretches it has."""
    return take_steady_run(hypothesis, parts, 0, len(parts) - 1)


def test_a_timer_has_the_window_of_the_last_request_that_restarts_it() -> None:
    hypothesis, parts, scenario = in_turn(2_500)
    assert taken(hypothesis, parts) == 4
    for who, (earliest, likely, latest) in {
        "a": (1_995, 2_000, 2_001),
        "b": (2_245, 2_250, 2_253),
    }.items():
        starts = (START + SESSION_MS + at for at in (earliest, likely, latest))
        assert hypothesis.timers.running[Timer(SESSION_TIMER, IDS[who])] == Due(*starts)
    clock = hypothesis.clock
    times = (clock.earliest_ms, clock.now_ms, clock.latest_ms)
    assert times == (START + 2_245, START + 2_250, START + 2_253)
    assert hypothesis.output.checked[-4:] == [Checked(seen.id, True) for seen in scenario.requests]


@pytest.mark.parametrize("running", [True, False], ids=["one that runs", "one that it starts"])
def test_a_run_ends_before_a_timer_may_expire(running: bool) -> None:
    """The sessions begin anew with each heartbeat, but a run looks at their first ends alone."""
    hypothesis, parts, _ = in_turn(9_000)
    timers, expires_ms = hypothesis.timers, hypothesis.clock.earliest_ms + SESSION_MS
    if running:
        expires_ms = timers.first_ms
        assert expires_ms <= min(due.earliest_ms for due in timers.running.values())
    else:
        timers.running.clear()
        timers.first_ms = float("inf")
    count = taken(hypothesis, parts)
    limit_ms = expires_ms - TOLERANCE.early - 1
    assert parts.begins_ms[count] < limit_ms <= parts.begins_ms[count + 1]


@pytest.mark.parametrize(
    "altered",
    [
        {"response": {"errorCode": Error.REBALANCE_IN_PROGRESS}},
        {"response": None},
        {"answered_ms": START + 2_251 + TOLERANCE.reply + 1},
        {"api": "DESCRIBE_GROUPS"},
    ],
    ids=["an error", "no answer", "too late", "another API"],
)
def test_what_differs_ends_a_run_before_its_stretch(altered: Mapping[str, Any]) -> None:
    hypothesis, parts, scenario = in_turn(3_000, altered)
    assert taken(hypothesis, parts) == 1
    first, second, *_ = scenario.requests
    assert hypothesis.output.checked[-2:] == [Checked(seen.id, True) for seen in (first, second)]
    assert hypothesis.clock.now_ms == second.at_ms


def test_no_run_is_taken_while_a_response_waits() -> None:
    hypothesis, parts, _ = in_turn(3_000)
    waiting = Scenario()
    waiting.join("b", 1_400, 5_000)
    hypothesis.pending_requests.add(waiting.requests[0])
    assert taken(hypothesis, parts) == 0


def test_no_run_is_taken_while_a_session_may_end_that_was_restarted() -> None:
    hypothesis, parts, _ = in_turn(3_000)
    hypothesis.timers.overtaken = {Timer(SESSION_TIMER, IDS["a"]): Due(0, 0, 0)}
    assert taken(hypothesis, parts) == 0
