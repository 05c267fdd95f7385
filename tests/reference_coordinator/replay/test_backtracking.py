"""Requests whose answers never came: they were acted on at some time after they were sent, or not.

The evidence is that of clients, without any line of a coordinator.
"""

from math import inf

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import Replay, replay
from tests.reference_coordinator.event_files.event_lines import of_scenario, one
from tests.reference_coordinator.replay.conftest import (
    IDS,
    PROFILE,
    Scenario,
    listed,
    rejoin,
    stable,
    unexplained,
    wrong,
)

AGAIN = Error.REBALANCE_IN_PROGRESS


def lose(scenario: Scenario, request: str) -> None:
    """Let the client of a request go before its answer comes."""
    scenario.alter(request, response=None, answered_ms=inf)


def judged(scenario: Scenario) -> Replay:
    """Replay what the clients saw."""
    return replay(one(of_scenario(scenario)).evidence, PROFILE)


def left(error_from: float, until: float = inf) -> Scenario:
    """b sends LeaveGroup at 2000 and is gone; a receives REBALANCE_IN_PROGRESS for some time."""
    scenario = stable()
    scenario.heartbeat("b", 1_510)
    lose(scenario, scenario.leave("b", 2_000))
    for at in range(1_500, 4_000, 100):
        scenario.heartbeat("a", at, AGAIN if error_from <= at < until else 0)
    return scenario


@pytest.mark.parametrize(
    ("error_from", "until", "found"),
    [
        (2_100, inf, []),
        (2_900, inf, []),
        (inf, inf, []),
        (1_900, inf, ["HEARTBEAT:a:1900"]),  # before it was sent
        (2_100, 2_500, ["HEARTBEAT:a:2500"]),  # what began with it does not end by itself
    ],
    ids=["at once", "late", "never", "too early", "undone"],
)
def test_an_unanswered_request_may_take_effect_at_any_time_or_never(
    error_from: float, until: float, found: list[str]
) -> None:
    outcome = judged(left(error_from, until))
    assert wrong(outcome) == found
    if not found:
        assert unexplained(outcome) == []
        assert [row.reason for row in outcome.rows[1:]] == ["leave"] * (error_from < inf)


def test_an_unrelated_wrong_response_stays_a_violation() -> None:
    scenario = left(2_100)
    scenario.change("HEARTBEAT:a:1700", errorCode=Error.FENCED_INSTANCE_ID)
    outcome = judged(scenario)
    assert wrong(outcome) == unexplained(outcome) == ["HEARTBEAT:a:1700"]
    assert outcome.violations[0].searched


@pytest.mark.parametrize(
    ("error_from", "fine", "fine_without"),
    [(4_900, False, False), (5_100, True, True), (6_100, True, False), (7_400, True, False)],
)
def test_an_unanswered_heartbeat_may_keep_a_session_alive(
    error_from: float, *, fine: bool, fine_without: bool
) -> None:
    """b is heard last at 2010, and sends something at 3000 that nobody answers."""
    scenario = stable()
    scenario.heartbeats("b", 1_510, 2_010)
    lose(scenario, scenario.heartbeat("b", 3_000))
    scenario.heartbeats("a", 1_500, 7_400, AGAIN, every=100, error_from=error_from)
    assert wrong(judged(scenario)) == ([] if fine else [f"HEARTBEAT:a:{error_from}"])
    scenario.requests = [seen for seen in scenario.requests if seen.response is not None]
    assert (wrong(judged(scenario)) == []) == fine_without


@pytest.mark.parametrize(
    ("member_id", "fine"), [("c-1234", True), ("x-1234", False), (IDS["b"], False)]
)
def test_the_leader_s_response_names_the_member_of_an_unanswered_join(
    member_id: str, *, fine: bool
) -> None:
    """c joins, and its process dies before the response with its member id arrives."""
    scenario = stable()
    scenario.heartbeat("a", 1_500)
    lose(scenario, scenario.join("c", 2_000, 9_000))
    scenario.heartbeat("a", 2_100, AGAIN)
    scenario.heartbeat("b", 2_110, AGAIN)
    rejoin(scenario, 2_500, 2)
    newcomer = {"memberId": member_id, "groupInstanceId": "c", "metadata": "bQ=="}
    scenario.change("JOIN_GROUP:a:2500", members=[*listed("a", "b"), newcomer])
    scenario.heartbeats("a", 2_600, 4_600, generation=2)
    scenario.heartbeats("b", 2_610, 4_610, generation=2)
    outcome = judged(scenario)
    assert wrong(outcome)[:1] == ([] if fine else ["JOIN_GROUP:a:2500"])
    if fine:
        assert [row.members for row in outcome.rows] == [2, 3]


@pytest.mark.parametrize(
    ("leader", "members", "answered", "fine"),
    [
        ("a", "", 1_501, True),
        ("b", "", 1_501, True),
        ("c", "c", 1_201, True),  # neither was acted on
        ("c", "abc", 1_701, True),  # both were after c, and made the initial delay go on
        ("c", "abc", 1_501, False),
        ("c", "cc", 1_501, False),
    ],
)
def test_two_clients_may_die_at_once(
    leader: str, members: str, answered: float, *, fine: bool
) -> None:
    """a's and b's JoinGroups are unanswered; the first leads, and c's response names it."""
    scenario = Scenario()
    lose(scenario, scenario.join("a", 0, 1_001))
    lose(scenario, scenario.join("b", 20, 1_001))
    request = scenario.join("c", 700, answered)
    named = {
        who: {"memberId": f"{who}-4711", "groupInstanceId": who, "metadata": "bQ=="}
        for who in "abc"
    }
    ids = {"leader": f"{leader}-4711", "memberId": "c-4711"}
    scenario.change(request, **ids, members=[named[who] for who in members])
    assert (judged(scenario).violations == ()) is fine


def test_a_request_that_waits_at_the_end_is_no_violation() -> None:
    scenario = stable()
    lose(scenario, scenario.join("c", 2_000, 9_000))
    assert judged(scenario).violations == ()


def test_joins_that_overlap_come_in_any_order() -> None:
    """b leads, so its join was the first, though it was sent after that of a."""
    scenario = Scenario()
    for who, at, members in (("a", 0, ""), ("b", 20, "ab")):
        request = scenario.join(who, at, 1_001, members=members)
        scenario.change(request, leader=IDS["b"])
    assert judged(scenario).violations == ()
    scenario.change("JOIN_GROUP:a:0", leader=IDS["c"])
    assert wrong(judged(scenario))


@pytest.mark.parametrize(("protocol", "fine"), [("x", True), ("y", True), ("z", False)])
def test_a_tied_protocol_vote_may_select_either(protocol: str, *, fine: bool) -> None:
    """a prefers x and b y; z is the last choice of both."""
    scenario = Scenario()
    for who, at, order, members in (("a", 0, "xyz", "ab"), ("b", 20, "yxz", "")):
        scenario.change(scenario.join(who, at, 1_001, members=members), protocolName=protocol)
        protocols = [{"name": name, "metadata": "bQ=="} for name in order]
        scenario.alter_last(request={**scenario.requests[-1].request, "protocols": protocols})
    assert (judged(scenario).violations == ()) is fine
