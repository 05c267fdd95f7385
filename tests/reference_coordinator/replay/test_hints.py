"""Coordinator lines as hints: they pick an instant inside a window."""

from dataclasses import replace

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import Hint, HintKind
from reference_coordinator.replay.hints import Hints, hinted
from tests.reference_coordinator.replay.conftest import IDS, START, Scenario


def test_requests_of_one_connection_never_cross() -> None:
    scenario = Scenario()
    scenario.heartbeat("a", 10)
    scenario.heartbeat("a", 5)
    first, second = (replace(seen, serial=n) for n, seen in enumerate(scenario.requests))
    placed = hinted([first, second], Hints.of([]))
    assert [seen.id for seen in placed] == [first.id, second.id]
    assert placed[1].at_ms == first.at_ms


@pytest.mark.parametrize("leader", [IDS["a"], ""])
def test_a_line_before_3_0_does_not_name_the_leader(leader: str) -> None:
    """The group may rebalance before its write is done: only the line says that it was given."""
    scenario = Scenario()
    scenario.sync("a", 10, 800, gives="a", error=Error.REBALANCE_IN_PROGRESS, latest=700)
    for kind, generation, placed_at in (
        (HintKind.ASSIGNED, 1, 12),
        (HintKind.ASSIGNED, 2, 700),
        (HintKind.PREPARING, -1, 700),
    ):
        line = Hint(START + 12, kind, leader, generation)
        (placed,) = hinted(scenario.requests, Hints.of([line]))
        assert placed.at_ms == START + placed_at


@pytest.mark.parametrize(("after_ms", "is_its_own"), [(0.9, True), (2.0, False)])
def test_a_line_in_whole_ms_may_seem_later_than_the_answer(
    after_ms: float, is_its_own: bool
) -> None:
    scenario = Scenario()
    scenario.join("a", 10, 900)
    at_ms = START + 900 + after_ms
    (placed,) = hinted(scenario.requests, Hints.of([Hint(at_ms, HintKind.JOINED, IDS["a"])]))
    assert (placed.at_ms == at_ms) == is_its_own
