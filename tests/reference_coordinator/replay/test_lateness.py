"""Until when something due may happen: stalls add their own length, and time counts once."""

import random

import pytest

from reference_coordinator.replay import Stall
from reference_coordinator.replay.lateness import Lateness
from tests.reference_coordinator.replay.conftest import LOADS, START, Scenario, stable, wrong


def stalls(*spans: tuple[float, float]) -> Lateness:
    return Lateness.of(Stall("1", *span) for span in spans)


@pytest.mark.parametrize(
    ("lateness", "due_ms", "latest_ms"),
    [
        (Lateness(), 1_000, 1_500),
        (stalls((0, 1_000)), 1_000, 1_500),  # over before
        (stalls((900, 3_000)), 1_000, 3_500),
        (stalls((1_400, 3_000)), 1_000, 3_100),  # 400 ms of the slack were worked
        (stalls((1_501, 3_000)), 1_000, 1_500),
        (stalls((900, 3_000), (3_400, 4_000)), 1_000, 4_100),
        (stalls((1_100, 1_300), (1_600, 1_700)), 1_000, 1_800),
        (stalls((0, 20_000), (100, 300)), 350, 20_500),  # the one within hides not the other
        (stalls((0, 10_000), (250, 10_000)), 0, 10_500),  # time in both counts once
        # a broker that shows every 300 ms that it works has worked for the slack in the end
        (stalls(*((at + 250, at + 300) for at in range(0, 60_000, 300))), 0, 550),
        # seen in review: stalls of 100 ms, one every 600 ms, excused a timer for two minutes
        (stalls(*((600 * k - 50, 600 * k + 50) for k in range(200))), 60, 660),
    ],
)
def test_the_latest_instant(lateness: Lateness, due_ms: float, latest_ms: float) -> None:
    assert lateness.latest(due_ms, 500) == latest_ms


def test_time_in_two_stalls_counts_once() -> None:
    """A proven stall lies in the time in which nothing showed that the broker worked."""
    proven, silence = Stall("1", 0, 10_000), Stall("1", 250, 10_000, proven=False)
    assert Lateness.of([proven, silence]).stalled_ms(9_000, 12_000) == 1_000


@pytest.mark.parametrize(
    ("shown_ms", "earliest_ms"), [(1_000, 995), (304, 99), (200, 95), (100, 95), (50, 45)]
)
def test_what_shows_late_may_have_happened_before_a_stall(
    shown_ms: float, earliest_ms: float
) -> None:
    assert stalls((100, 300), (900, 950)).earliest(shown_ms, 5) == earliest_ms


def test_what_is_due_later_is_late_later() -> None:
    """Lines are found by bisection, so both bounds only grow with the instant."""
    for seed in range(20):
        chosen = random.Random(seed)
        begins = [chosen.uniform(0, 300) for _ in range(12)]
        lateness = stalls(*((at, at + chosen.expovariate(0.1)) for at in begins))
        instants = sorted(chosen.uniform(-20, 350) for _ in range(500))
        for bound in (lateness.latest, lateness.earliest):
            bounds = [round(bound(at_ms, 15.0), 6) for at_ms in instants]
            assert bounds == sorted(bounds)


@pytest.mark.parametrize(
    ("rebalances_at", "broker", "proven", "excused"),
    [
        (6_500, "1", True, True),
        (6_500, "1", False, True),
        (6_500, "2", True, False),
        (20_000, "1", True, False),
        (20_000, "1", False, False),
    ],
)
def test_a_timer_may_be_late_by_a_stall_of_its_broker_and_no_more(
    rebalances_at: float, broker: str, *, proven: bool, excused: bool
) -> None:
    """The session of b ends at 5010; a receives REBALANCE_IN_PROGRESS only later."""
    scenario = stable()
    scenario.heartbeats("b", 1_510, 2_010)
    scenario.heartbeats("a", 1_500, 9_000, 27, every=100, error_from=rebalances_at)
    scenario.epoch_events = [*LOADS]
    assert wrong(scenario.replay())
    scenario.stalls = [Stall(broker, START + 5_000, START + 6_100, proven)]
    assert (wrong(scenario.replay()) == []) == excused


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
    """Broker 1 coordinates; the JoinGroup of b is answered late, and that of a in time."""
    scenario = Scenario()
    scenario.join("a", 0, 1_001, members="ab")
    scenario.join("b", 20, 7_001)
    scenario.sync("a", 7_075, 7_088, gives="ab")
    scenario.sync("b", 7_050, 7_088)
    scenario.heartbeats("a", 7_600, 10_600)
    scenario.heartbeats("b", 7_603, 10_603)
    scenario.set_in_joins(sessionTimeoutMs=30_000)
    scenario.epoch_events = [*LOADS]
    assert wrong(scenario.replay()) == ["JOIN_GROUP:b:20"]
    scenario.stalls = [stall]
    assert ("JOIN_GROUP:b:20" not in wrong(scenario.replay())) == excused
