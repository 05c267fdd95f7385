"""Until when something due may happen: stalls add their own length, and time counts once."""

import random
from dataclasses import replace
from itertools import product

import pytest

from reference_coordinator.replay import EpochEvent, Stall
from reference_coordinator.replay.lateness import Lateness
from tests.reference_coordinator.replay.conftest import START, Scenario, stable, wrong


def proven(*spans: tuple[float, float]) -> Lateness:
    return Lateness.of(Stall("1", *span) for span in spans)


@pytest.mark.parametrize(
    ("lateness", "latest_ms"),
    [
        (Lateness(), 1_500),
        (proven((0, 900)), 1_500),  # over before
        (proven((0, 1_000)), 1_500),
        (proven((900, 3_000)), 3_500),
        (proven((1_400, 3_000)), 3_100),  # 400 ms of the slack were worked
        (proven((1_501, 3_000)), 1_500),
        (proven((900, 3_000), (3_400, 4_000)), 4_100),
        (proven((1_100, 1_300), (1_600, 1_700)), 1_800),
    ],
)
def test_the_latest_instant(lateness: Lateness, latest_ms: float) -> None:
    assert lateness.latest(1_000, 500) == latest_ms


def test_short_stalls_do_not_begin_the_slack_anew() -> None:
    """Seen in review: stalls of 100 ms, one every 600 ms, excused a timer for two minutes."""
    chain = proven(*((600 * k - 50, 600 * k + 50) for k in range(200)))
    assert chain.latest(60, 500) == 660


def test_time_in_two_stalls_counts_once() -> None:
    """A proven stall lies in the time in which nothing showed that the broker worked."""
    proven_stall, silence = Stall("1", 0, 10_000), Stall("1", 250, 10_000, proven=False)
    assert Lateness.of([proven_stall, silence]).latest(0, 500) == 10_500
    assert Lateness.of([proven_stall, silence]).stalled_ms(9_000, 12_000) == 1_000


def test_stalls_within_others_do_not_hide_later_ones() -> None:
    long, short = Stall("1", 0, 20_000), Stall("1", 100, 300)
    assert Lateness.of([long, short]).latest(350, 500) == 20_500


def test_many_possible_stalls_excuse_no_more_than_their_time() -> None:
    """A broker that shows every 300 ms that it works has worked for the slack in the end."""
    gaps = proven(*((at + 250, at + 300) for at in range(0, 60_000, 300)))
    assert gaps.latest(0, 500) == 550


def late(rebalances_at: float) -> Scenario:
    """The session of b ends at 5010; a receives REBALANCE_IN_PROGRESS at `rebalances_at`."""
    scenario = stable()
    scenario.heartbeats("b", 1_510, 2_010)
    for at in range(1_500, 9_100, 100):
        scenario.heartbeat("a", at, 27 if at >= rebalances_at else 0)
    return scenario


def test_a_timer_may_be_late_by_a_stall_and_no_more() -> None:
    for at, is_proven in product((6_500, 20_000), (True, False)):
        scenario = late(at)
        assert wrong(scenario.replay())
        scenario.stalls = [Stall("1", START + 5_000, START + 6_100, is_proven)]
        assert (wrong(scenario.replay()) == []) == (at == 6_500)


def test_a_stall_of_another_broker_holds_up_no_timer() -> None:
    scenario = late(6_500)
    scenario.epoch_events = [
        EpochEvent(START - 200, "1", "loading"),
        EpochEvent(START - 100, "1", "loaded"),
    ]
    scenario.stalls = [Stall("1", START + 5_000, START + 6_100)]
    assert wrong(scenario.replay()) == []
    scenario.stalls = [Stall("2", START + 5_000, START + 6_100)]
    assert wrong(scenario.replay())


def late_answer(late_ms: float) -> Scenario:
    """Broker 1 coordinates; the JoinGroup of b is answered late, and that of a in time."""
    scenario = Scenario()
    scenario.join("a", 0, 1_001, members="ab")
    scenario.join("b", 20, 1_001 + late_ms)
    scenario.sync("a", 1_075 + late_ms, 1_088 + late_ms, gives="ab")
    scenario.sync("b", 1_050 + late_ms, 1_088 + late_ms)
    for at in range(int(1_600 + late_ms), int(5_000 + late_ms), 500):
        scenario.heartbeat("a", at)
        scenario.heartbeat("b", at + 3)
    scenario.requests = [
        replace(r, request={**r.request, "sessionTimeoutMs": 30_000})
        if r.api == "JOIN_GROUP"
        else r
        for r in scenario.requests
    ]
    scenario.epoch_events = [
        EpochEvent(START - 200, "1", "loading"),
        EpochEvent(START - 100, "1", "loaded"),
    ]
    return scenario


@pytest.mark.parametrize(
    ("stall", "excused"),
    [
        (Stall("2", START - 5_000, START + 60_000, proven=False), False),  # it may be idle
        (Stall("2", START + 900, START + 7_000), True),
        (Stall("1", START + 900, START + 7_000), True),
        (Stall("1", START + 900, START + 7_000, proven=False), True),
    ],
)
def test_a_late_answer_is_not_excused_by_another_broker_that_shows_no_signs(
    stall: Stall, excused: bool
) -> None:
    scenario = late_answer(6_000)
    assert wrong(scenario.replay()) == ["JOIN_GROUP:b:20"]
    scenario.stalls = [stall]
    assert ("JOIN_GROUP:b:20" not in wrong(scenario.replay())) == excused


def test_what_shows_late_may_have_happened_before_a_stall() -> None:
    lateness = Lateness.of([Stall("1", 100.0, 300.0), Stall("1", 900.0, 950.0)])
    assert lateness.earliest(1_000.0, 5.0) == 995.0
    assert lateness.earliest(304.0, 5.0) == 99.0
    assert lateness.earliest(200.0, 5.0) == 95.0
    assert lateness.earliest(100.0, 5.0) == 95.0
    assert Lateness.of([]).earliest(50.0, 5.0) == 45.0


def test_what_is_due_later_is_late_later() -> None:
    """Lines are found by bisection, so both bounds only grow with the instant."""
    for seed in range(20):
        chosen = random.Random(seed)
        begins = [chosen.uniform(0, 300) for _ in range(12)]
        lateness = Lateness.of(Stall("1", at, at + chosen.expovariate(0.1)) for at in begins)
        instants = sorted(chosen.uniform(-20, 350) for _ in range(500))
        for bound in (lateness.latest, lateness.earliest):
            bounds = [round(bound(at_ms, 15.0), 6) for at_ms in instants]
            assert bounds == sorted(bounds)
