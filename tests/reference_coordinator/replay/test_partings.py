"""Coordinators that were cut off from the other brokers: what their successors find."""

from math import inf

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import EpochEvent, Parting
from tests.reference_coordinator.replay.conftest import START, Scenario, rejoin, stable, wrong

OVER = 3_000
"""When broker 2 takes over."""


def taken_over(*partings: Parting) -> Scenario:
    """Broker 1 gives the group generation 2 at 1,868 ms; broker 2 loads it at OVER."""
    scenario = stable()
    rejoin(scenario, 1_800, 2)
    scenario.partings = [*partings]
    scenario.epoch_events = [
        EpochEvent(START - 300, "1", "started"),
        EpochEvent(START - 290, "1", "loading"),
        EpochEvent(START - 280, "1", "loaded", 4),
        EpochEvent(START - 250, "2", "started"),
        EpochEvent(START + OVER, "2", "loading"),
        EpochEvent(START + OVER + 10, "2", "loaded", 5),
    ]
    return scenario


def parting(from_ms: float, healed_ms: float, broker: str = "1") -> Parting:
    times = (from_ms - 100, from_ms, healed_ms, healed_ms + 1_000)
    return Parting(broker, *(START + at for at in times))


@pytest.mark.parametrize(
    ("partings", "generation"),
    [
        ([], 2),
        ([parting(1_500, 9_000)], 1),
        ([parting(2_000, 9_000)], 2),
        ([parting(1_500, 2_500)], 2),
        ([parting(1_500, 9_000, "2")], 2),
        ([parting(1_500, inf)], 1),
    ],
    ids=["none", "written after it was cut off", "before", "healed before the other took over",
         "another broker", "never healed"],
)  # fmt: skip
def test_what_a_broker_writes_while_it_is_cut_off_is_lost(
    partings: list[Parting], generation: int
) -> None:
    """Broker 2 answers a heartbeat of the generation that it knows, and of no other."""
    for error, known in ((Error.NONE, 1), (Error.ILLEGAL_GENERATION, 2)):
        scenario = taken_over(*partings)
        scenario.heartbeat("a", OVER + 200, error, broker="2")
        assert (wrong(scenario.replay()) == []) == (known == generation)


@pytest.mark.parametrize(("at", "answers"), [(9_900, True), (12_500, False)])
def test_it_answers_from_memory_until_it_may_know_better(at: int, *, answers: bool) -> None:
    scenario = taken_over(parting(2_500, 9_000))
    for who in "ab":
        scenario.heartbeats(who, 2_100, at - 500, generation=2)
        scenario.heartbeats(who, OVER + 100, at, generation=2, broker="2")
    scenario.heartbeat("a", at, generation=2)
    assert (wrong(scenario.replay()) == []) == answers
    scenario.partings = []
    assert wrong(scenario.replay()) != []
