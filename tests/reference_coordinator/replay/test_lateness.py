"""Until when something due may happen: proven stalls begin the slack anew, possible ones do not."""

import pytest

from reference_coordinator.replay import EpochEvent, Stall
from reference_coordinator.replay.lateness import Lateness
from tests.reference_coordinator.replay.conftest import START, Scenario, stable, wrong


def proven(*spans: tuple[float, float]) -> Lateness:
    return Lateness.of(Stall("1", *span) for span in spans)


def possible(*spans: tuple[float, float]) -> Lateness:
    return Lateness.of(Stall("1", *span, proven=False) for span in spans)


@pytest.mark.parametrize(
    ("lateness", "latest_ms"),
    [
        (Lateness(), 1_500),
        (proven((0, 900)), 1_500),  # over before
        (proven((0, 1_000)), 1_500),
        (proven((900, 3_000)), 3_500),
        (proven((1_400, 3_000)), 3_500),  # within the slack
        (proven((1_501, 3_000)), 1_500),
        (proven((900, 3_000), (3_400, 4_000)), 4_500),
        (possible((0, 1_000)), 1_500),
        (possible((900, 3_000)), 3_500),
        (possible((1_400, 3_000)), 3_100),  # 400 ms of the slack were worked
        (possible((1_501, 3_000)), 1_500),
        (possible((1_100, 1_300), (1_600, 1_700)), 1_800),
    ],
)
def test_the_latest_instant(lateness: Lateness, latest_ms: float) -> None:
    assert lateness.latest(1_000, 500) == latest_ms


def test_many_possible_stalls_excuse_no_more_than_their_time() -> None:
    """A broker that shows every 300 ms that it works has worked for the slack in the end."""
    gaps = possible(*((at + 250, at + 300) for at in range(0, 60_000, 300)))
    assert gaps.latest(0, 500) == 550


def late(rebalances_at: float) -> Scenario:
    """The session of b ends at 5010; a receives REBALANCE_IN_PROGRESS at `rebalances_at`."""
    scenario = stable()
    scenario.heartbeats("b", 1_510, 2_010)
    for at in range(1_500, 9_100, 100):
        scenario.heartbeat("a", at, 27 if at >= rebalances_at else 0)
    return scenario


@pytest.mark.parametrize("is_proven", [True, False])
def test_a_timer_may_be_late_by_a_stall(is_proven: bool) -> None:
    scenario = late(6_500)
    assert wrong(scenario.replay())
    scenario.stalls = [Stall("1", START + 5_000, START + 6_100, is_proven)]
    assert wrong(scenario.replay()) == []


@pytest.mark.parametrize("is_proven", [True, False])
def test_a_stall_excuses_no_timer_that_never_runs_out(is_proven: bool) -> None:
    scenario = late(20_000)
    scenario.stalls = [Stall("1", START + 5_000, START + 6_100, is_proven)]
    assert wrong(scenario.replay())


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
