"""Requests whose answers never came: they were acted on at some time after they were sent, or not.

The evidence is that of clients, without any line of a coordinator.
"""

from dataclasses import replace as altered

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.replay import Replay, replay
from tests.reference_coordinator.event_files.event_lines import of_scenario, one
from tests.reference_coordinator.replay.conftest import (
    IDS,
    PROFILE,
    Scenario,
    rejoin,
    stable,
    unexplained,
    wrong,
)

AGAIN = 27


def lose(scenario: Scenario, request: str) -> str:
    """Let the client of a request go before its answer comes."""
    place = next(i for i, seen in enumerate(scenario.requests) if seen.id == request)
    gone = altered(scenario.requests[place], response=None, answered_ms=float("inf"))
    scenario.requests[place] = gone
    return request


def judged(scenario: Scenario) -> Replay:
    """Replay what the clients saw."""
    return replay(one(of_scenario(scenario)).evidence, PROFILE)


def left(error_from: float | None, until: float = float("inf")) -> Scenario:
    """b sends LeaveGroup at 2000 and is gone; a receives REBALANCE_IN_PROGRESS for some time."""
    scenario = stable()
    scenario.heartbeats("b", 1_510, 1_510)
    lose(scenario, scenario.leave("b", 2_000))
    for at in range(1_500, 4_000, 100):
        again = error_from is not None and error_from <= at < until
        scenario.heartbeat("a", at, AGAIN if again else 0)
    return scenario


@pytest.mark.parametrize("error_from", [2_100, 2_900, None], ids=["at once", "late", "never"])
def test_an_unanswered_request_may_take_effect_at_any_time_or_never(
    error_from: float | None,
) -> None:
    outcome = judged(left(error_from))
    assert outcome.violations == ()
    assert unexplained(outcome) == []
    assert [row.reason for row in outcome.rows[1:]] == (["leave"] if error_from else [])


def test_an_unanswered_request_takes_no_effect_before_it_is_sent() -> None:
    assert wrong(judged(left(1_900))) == ["HEARTBEAT:a:1900"]


def test_an_unanswered_request_that_took_effect_cannot_be_undone() -> None:
    """What began with it does not end by itself."""
    assert wrong(judged(left(2_100, until=2_500)))


def test_an_unrelated_wrong_response_stays_a_violation() -> None:
    scenario = left(2_100)
    scenario.change("HEARTBEAT:a:1700", errorCode=Error.FENCED_INSTANCE_ID)
    outcome = judged(scenario)
    assert wrong(outcome) == unexplained(outcome) == ["HEARTBEAT:a:1700"]
    assert outcome.violations[0].searched


def silent(error_from: float) -> Scenario:
    """b is heard last at 2010, and sends something at 3000 that nobody answers."""
    scenario = stable()
    scenario.heartbeats("b", 1_510, 2_010)
    lose(scenario, scenario.heartbeat("b", 3_000))
    for at in range(1_500, 7_500, 100):
        scenario.heartbeat("a", at, AGAIN if at >= error_from else 0)
    return scenario


@pytest.mark.parametrize("error_from", [5_100, 6_100, 7_400])
def test_an_unanswered_heartbeat_may_keep_a_session_alive(error_from: float) -> None:
    scenario = silent(error_from)
    assert judged(scenario).violations == ()
    scenario.requests = [seen for seen in scenario.requests if seen.response is not None]
    assert bool(judged(scenario).violations) is (error_from > 5_600)


def test_an_unanswered_heartbeat_ends_no_session_early() -> None:
    assert wrong(judged(silent(4_900))) == ["HEARTBEAT:a:4900"]


def joined_and_gone(member_id: str) -> Scenario:
    """c joins, and its process dies before the response with its member id arrives."""
    scenario = stable()
    scenario.heartbeats("a", 1_500, 1_900)
    lose(scenario, scenario.join("c", 2_000, 9_000))
    scenario.heartbeat("a", 2_100, AGAIN)
    scenario.heartbeat("b", 2_110, AGAIN)
    rejoin(scenario, 2_500, 2)
    census = next(s for s in scenario.requests if s.id == "JOIN_GROUP:a:2500")
    newcomer = {"memberId": member_id, "groupInstanceId": "c", "metadata": "bQ=="}
    scenario.change(census.id, members=[*census.response_fields["members"], newcomer])
    for at in range(2_600, 5_000, 500):
        scenario.ask("HEARTBEAT", "a", at, {"generationId": 2}, {})
        scenario.ask("HEARTBEAT", "b", at + 10, {"generationId": 2}, {})
    return scenario


def test_the_leader_s_response_names_the_member_of_an_unanswered_join() -> None:
    outcome = judged(joined_and_gone("c-1234"))
    assert outcome.violations == ()
    assert [row.members for row in outcome.rows] == [2, 3]


@pytest.mark.parametrize("member_id", ["x-1234", IDS["b"]])
def test_a_member_id_belongs_to_its_client_only(member_id: str) -> None:
    assert wrong(judged(joined_and_gone(member_id)))[0] == "JOIN_GROUP:a:2500"


NAMED = {name: {"memberId": f"{name}-4711", "groupInstanceId": name, "metadata": "bQ=="}
         for name in "abc"}  # fmt: skip


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
    scenario.change(
        request,
        leader=NAMED[leader]["memberId"],
        memberId=NAMED["c"]["memberId"],
        members=[NAMED[name] for name in members],
    )
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
        request = scenario.join(who, at, 1_001, members=members)
        scenario.change(request, protocolName=protocol)
        place = next(i for i, seen in enumerate(scenario.requests) if seen.id == request)
        seen = scenario.requests[place]
        protocols = [{"name": name, "metadata": "bQ=="} for name in order]
        scenario.requests[place] = altered(seen, request={**seen.request, "protocols": protocols})
    assert (judged(scenario).violations == ()) is fine
