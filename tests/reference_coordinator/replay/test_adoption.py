"""What the oracle takes over from observed responses after a violation."""

from dataclasses import replace

import pytest

from reference_coordinator.classic.effects import HeartbeatResponse, JoinResponse
from reference_coordinator.classic.events import Timer, TimerKind
from reference_coordinator.classic.members import Members
from reference_coordinator.classic.state import Group, State
from reference_coordinator.replay.adoption import from_census, is_census, latest_joins, next_census
from reference_coordinator.replay.member_ids import rename, with_member_id
from tests.reference_coordinator.replay.conftest import (
    IDS,
    REBALANCE_MS,
    SESSION_MS,
    START,
    Scenario,
    rejoin,
    stable,
)
from tests.reference_coordinator.replay.test_armed_timers import member

GROUP = Group(
    "g",
    members=Members.of([member("old", "i")]),
    static_ids={"i": "old"},
    leader="old",
    pending_syncs=frozenset({"old"}),
)


def test_a_member_id_is_replaced_everywhere() -> None:
    group = with_member_id(GROUP, "old", "new")
    assert group.members.keys() == {"new"}
    assert (group.static_ids, group.leader) == ({"i": "new"}, "new")
    assert group.pending_syncs == {"new"}


@pytest.mark.parametrize("given", ["", "old"])
def test_only_another_id_is_taken_over(given: str) -> None:
    assert rename(GROUP, JoinResponse(0, "old"), JoinResponse(0, given)) is GROUP
    assert rename(GROUP, JoinResponse(0, "old"), HeartbeatResponse(0)) is GROUP
    assert rename(GROUP, JoinResponse(0, "old"), JoinResponse(0, "new")).leader == "new"


def test_a_census_is_a_leaders_response_in_a_new_generation() -> None:
    scenario = stable()
    a, b, *_ = scenario.requests
    assert is_census(a)
    assert not is_census(b)
    assert not is_census(replace(a, response={**a.response_fields, "skipAssignment": True}))
    assert not is_census(replace(a, response=None))


def test_the_next_census_is_that_which_is_answered_next() -> None:
    scenario = stable()
    rejoin(scenario, 2_000, 2)
    found = next_census(scenario.requests, START + 1_500)
    assert found is not None
    assert found.response_fields["generationId"] == 2
    assert next_census(scenario.requests, START + 9_000) is None


def test_a_member_that_was_given_an_id_is_pending_until_it_joins_with_it() -> None:
    scenario = Scenario()
    scenario.newcomer("c-0000", 10)
    joins, pending = latest_joins(scenario.requests, START + 100)
    assert (joins, pending) == ({}, {"c-0000"})
    scenario.join("c", 20, 30, known=IDS["c"])
    joins, pending = latest_joins(scenario.requests, START + 100)
    assert (joins.keys(), pending) == ({"c-0000"}, set())


def test_a_group_is_built_from_a_census() -> None:
    scenario = stable()
    census = scenario.requests[0]
    joins, pending = latest_joins(scenario.requests, census.answered_ms)
    group, timers = from_census("g", census, joins, pending)
    assert (group.state, group.generation) == (State.COMPLETING_REBALANCE, 1)
    assert group.static_ids == {"a": IDS["a"], "b": IDS["b"]}
    assert group.pending_syncs == {IDS["a"], IDS["b"]}
    assert timers == {
        Timer(TimerKind.SESSION, IDS["a"]): census.answered_ms + SESSION_MS,
        Timer(TimerKind.SESSION, IDS["b"]): census.answered_ms + SESSION_MS,
        Timer(TimerKind.SYNC): census.answered_ms + REBALANCE_MS,
    }
