"""The likely order of events without copies of the state."""

from reference_coordinator.replay import Tolerance
from reference_coordinator.replay.candidates import Candidate
from reference_coordinator.replay.fast_path import LikelyOrder, fast_forward, likely_order
from reference_coordinator.replay.hypothesis import Hypothesis
from reference_coordinator.replay.stretches import Stretches
from tests.reference_coordinator.replay.conftest import IDS, START, Scenario, stable
from tests.reference_coordinator.replay.test_hypothesis import candidate, fresh

UNTIL_MS = START + 1_200


def in_generation_1() -> Hypothesis:
    """Return the hypothesis after both members have joined and synced."""
    requests = [candidate(seen) for seen in stable().requests]
    hypothesis, _ = likely_order(fresh(), requests, UNTIL_MS)
    assert hypothesis is not None
    return hypothesis


def stretches_of(*errors: int) -> Stretches:
    scenario = Scenario()
    for number, error in enumerate(errors):
        scenario.heartbeat("a", 1_500 + 500 * number, error)
    return Stretches.of(scenario.requests, (), Tolerance())


def test_the_likely_order_explains_what_is_right() -> None:
    group = in_generation_1().group
    assert (group.generation, group.members.keys()) == (1, {IDS["a"], IDS["b"]})


def test_it_gives_up_at_the_first_contradiction() -> None:
    scenario = stable()
    scenario.change("SYNC_GROUP:b:1010", assignment="b3RoZXI=")
    requests = [candidate(seen) for seen in scenario.requests]
    assert likely_order(fresh(), requests, UNTIL_MS) == (None, 0)


def test_right_heartbeats_are_taken_up_to_the_last_stretch() -> None:
    hypothesis = in_generation_1()
    assert fast_forward(hypothesis, stretches_of(0, 0, 0), 0, 2) == 2
    assert hypothesis.clock.now_ms == START + 2_000
    assert [checked.request for checked in hypothesis.output.checked[-2:]] == [
        "HEARTBEAT:a:1500",
        "HEARTBEAT:a:2000",
    ]


def test_a_wrong_answer_or_a_timer_that_may_expire_ends_the_fast_path() -> None:
    assert fast_forward(in_generation_1(), stretches_of(0, 27, 0), 0, 2) == 1
    # b sends no heartbeat after 1018: its session may end at 4018
    assert fast_forward(in_generation_1(), stretches_of(*[0] * 9), 0, 8) == 5


def test_what_is_left_of_a_stretch_has_the_earliest_end() -> None:
    first, second = Candidate(0, 1, 50, None), Candidate(0, 2, 20, None)
    order = LikelyOrder([second, first])
    assert order.left[-1] is first
    assert order.latest_ms == 20
    order.remove(first)
    assert order.left == [second]
