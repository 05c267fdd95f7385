"""One possible history: it takes candidates and compares answers; its forks are independent."""

from dataclasses import replace

from reference_coordinator.classic.events import Timer, TimerKind
from reference_coordinator.classic.state import Group, State
from reference_coordinator.replay import Checked
from reference_coordinator.replay.candidates import Candidate, Mismatch
from reference_coordinator.replay.conditions import Conditions
from reference_coordinator.replay.evidence import EpochEvent, ObservedRequest, Tolerance
from reference_coordinator.replay.hypothesis import Hypothesis
from tests.reference_coordinator.replay.conftest import IDS, PROFILE, START, Scenario, stable

NEVER = float("inf")
JOIN = Timer(TimerKind.JOIN)


def fresh() -> Hypothesis:
    return Hypothesis.of(Conditions(PROFILE, Tolerance()), Group("g"))


def candidate(seen: ObservedRequest) -> Candidate:
    return Candidate(seen.earliest_ms, seen.at_ms, seen.latest_ms, seen)


def end_join_phase(hypothesis: Hypothesis, excuse: str = "") -> Mismatch | None:
    """Let the initial delay expire, which the second join extends, and then once more."""
    mismatch = None
    for due in (START + 500, START + 1_000):
        expiry = Candidate(due, due, due + 5, JOIN)
        mismatch = hypothesis.take(expiry, NEVER, excuse) or mismatch
    return mismatch


def take(hypothesis: Hypothesis, scenario: Scenario, count: int) -> Mismatch | None:
    """Take a scenario's requests, and the end of the join phase after two of them."""
    for number, seen in enumerate(scenario.requests[:count]):
        mismatch = hypothesis.take(candidate(seen), NEVER)
        if number == 1:
            mismatch = end_join_phase(hypothesis)
        if mismatch is not None:
            return mismatch
    return None


def test_answers_are_compared_when_the_oracle_gives_them() -> None:
    hypothesis = fresh()
    assert take(hypothesis, stable(), 2) is None
    assert hypothesis.group.state is State.COMPLETING_REBALANCE
    assert sorted(hypothesis.output.checked) == [
        Checked("JOIN_GROUP:a:0", True),
        Checked("JOIN_GROUP:b:20", True),
    ]
    assert not hypothesis.pending_requests


def test_a_wrong_answer_is_a_mismatch_and_may_be_excused() -> None:
    scenario = stable()
    scenario.change("JOIN_GROUP:b:20", generationId=7)
    mismatch = take(fresh(), scenario, 2)
    assert mismatch is not None
    assert (mismatch.rule, mismatch.expected, mismatch.observed) == (
        "answer",
        "generation=1",
        "generation=7",
    )
    excusing = fresh()
    for seen in scenario.requests[:2]:
        excusing.take(candidate(seen), NEVER)
    assert end_join_phase(excusing, "JOIN_GROUP:b:20") is None
    assert excusing.excused == mismatch


def test_an_answer_may_be_neither_too_early_nor_too_late() -> None:
    scenario = Scenario()
    scenario.heartbeat("a", 100, 25)
    (seen,) = scenario.requests
    for answered_ms, rule in ((START - 100, "answered_early"), (START + 5_000, "answered_late")):
        wrong = fresh().take(candidate(replace(seen, answered_ms=answered_ms)), NEVER)
        assert wrong is not None
        assert wrong.rule == rule
    assert fresh().take(candidate(seen), NEVER) is None


def test_a_request_without_response_is_acted_on_and_compared_with_nothing() -> None:
    scenario = stable()
    hypothesis = fresh()
    unanswered = replace(scenario.requests[0], response=None, answered_ms=NEVER)
    assert hypothesis.take(candidate(unanswered), NEVER) is None
    (made,) = hypothesis.group.members
    assert hypothesis.unnamed.prefixes == {made: "a-"}
    assert IDS["a"] not in hypothesis.group.members


def test_a_load_stops_timers_and_forgets_writes() -> None:
    hypothesis = fresh()
    take(hypothesis, stable(), 2)
    assert hypothesis.timers.running
    hypothesis.take(Candidate(0, START, NEVER, EpochEvent(START, "1", "loading")), NEVER)
    assert not hypothesis.timers.running
    assert not hypothesis.writes


def test_a_fork_goes_on_by_itself() -> None:
    hypothesis = fresh()
    forked = hypothesis.fork()
    assert take(forked, stable(), 2) is None
    assert hypothesis == replace(fresh(), reactions=hypothesis.reactions)
    assert forked.conditions is hypothesis.conditions


def test_the_end_of_evidence_changes_nothing() -> None:
    hypothesis = fresh()
    assert hypothesis.take(Candidate(0, 0, 0, None), NEVER) is None
    assert hypothesis.clock.now_ms == 0
