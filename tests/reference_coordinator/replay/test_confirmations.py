"""Answers which show that earlier writes are confirmed."""

from dataclasses import replace

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay.conditions import Confirmations
from tests.reference_coordinator.replay.conftest import PROFILE, START, Scenario, stable


@pytest.mark.parametrize(
    ("from_ms", "until_ms", "shown"),
    [(1_990, 2_100, True), (1_996, 2_100, False), (1_990, 2_001, False), (1_000, 1_500, False)],
)
def test_one_must_come_and_be_answered_within_the_time(
    from_ms: float, until_ms: float, shown: bool
) -> None:
    scenario = stable()
    scenario.heartbeat("a", 2_000)
    found = Confirmations.of(scenario.requests, PROFILE)
    assert found.within(START + from_ms, START + until_ms) == shown


def test_only_answers_that_wait_count() -> None:
    def shown(error: int, *, waits: bool = True) -> bool:
        scenario = Scenario()
        scenario.heartbeat("a", 2_000, error)
        profile = replace(PROFILE, answers_wait_for_writes=waits)
        return Confirmations.of(scenario.requests, profile).within(START, START + 9_000)

    assert shown(Error.NONE)
    assert shown(Error.REBALANCE_IN_PROGRESS)
    assert not shown(Error.UNKNOWN_MEMBER_ID)
    assert not shown(Error.NONE, waits=False)
    assert not Confirmations.of(stable().requests, PROFILE).within(0, START + 9_000)
