"""Bodies of requests and responses to the oracle's events and responses."""

from dataclasses import replace
from typing import Any

import pytest

from reference_coordinator.classic import CLASSIC
from reference_coordinator.classic.bodies import BODIES, EXCHANGES
from reference_coordinator.classic.effects import CommitResponse, JoinResponse
from reference_coordinator.classic.events import (
    NO_CHOICES,
    CommitReceived,
    JoinReceived,
    LeaveReceived,
)
from reference_coordinator.replay.evidence import ONLY_RESTART_TIMERS, ObservedRequest
from tests.reference_coordinator.replay.conftest import IDS, REBALANCE_MS, SESSION_MS, Scenario


def made(
    api: str, request: dict[str, Any], response: dict[str, Any], version: int = 3
) -> ObservedRequest:
    scenario = Scenario()
    scenario.ask(api, "a", 0, request, response)
    return replace(scenario.requests[0], api_version=version)


def joined(*, members: str = "") -> ObservedRequest:
    scenario = Scenario()
    scenario.join("a", 0, 900, members=members)
    return scenario.requests[0]


def test_a_join_is_read_with_its_timeouts() -> None:
    """JoinGroup v0 has the session's timeout for the rebalance."""
    seen = joined(members="ab")
    old = {key: value for key, value in seen.request.items() if key != "rebalanceTimeoutMs"}
    for one, rebalance_ms in ((seen, REBALANCE_MS), (replace(seen, request=old), SESSION_MS)):
        event = CLASSIC.event_of(one, 7.0, NO_CHOICES)
        assert isinstance(event, JoinReceived)
        assert (event.at_ms, event.group_instance_id) == (7.0, "a")
        assert (event.session_timeout_ms, event.rebalance_timeout_ms) == (SESSION_MS, rebalance_ms)


def test_a_member_listed_twice_in_the_leaders_response_is_counted() -> None:
    for members, listed in (("ab", {IDS["a"], IDS["b"]}), ("bb", {f"{IDS['b']} (2 times)"})):
        answer = CLASSIC.response_of(joined(members=members))
        assert isinstance(answer, JoinResponse)
        assert {member_id for member_id, *_ in answer.members} == listed


@pytest.mark.parametrize(("version", "members"), [(2, ((IDS["a"], None),)), (3, (("", "x"),))])
def test_leave_names_one_member_or_many(version: int, members: Any) -> None:
    named = {"memberId": "", "groupInstanceId": "x"}
    body = {"members": [named]} if version == 3 else {}
    event = CLASSIC.event_of(made("LEAVE_GROUP", body, {}, version), 0, NO_CHOICES)
    assert isinstance(event, LeaveReceived)
    assert event.members == members


TOPIC = {"name": "t", "partitions": [{"partitionIndex": 0}, {"partitionIndex": 1}]}


@pytest.mark.parametrize(
    ("codes", "error", "alike"),
    [((0, 0), 0, True), ((22, 22), 22, True), ((0, 22), 22, False), ((0,), 0, False)],
)
def test_a_commit_is_one_error_if_all_partitions_have_it(
    *, codes: tuple[int, ...], error: int, alike: bool
) -> None:
    partitions = [{"partitionIndex": n, "errorCode": code} for n, code in enumerate(codes)]
    response = {"topics": [{"name": "t", "partitions": partitions}]}
    seen = made("OFFSET_COMMIT", {"topics": [TOPIC], "generationId": 4}, response, 7)
    assert CLASSIC.response_of(seen) == CommitResponse(error, alike)
    event = CLASSIC.event_of(seen, 0, NO_CHOICES)
    assert isinstance(event, CommitReceived)
    assert event.generation == 4


def test_a_commits_generation_has_another_name_from_3_6_on() -> None:
    request = {"topics": [TOPIC], "generationIdOrMemberEpoch": 5}
    event = CLASSIC.event_of(made("OFFSET_COMMIT", request, {"topics": []}, 9), 0, NO_CHOICES)
    assert isinstance(event, CommitReceived)
    assert event.generation == 5


def test_requests_that_only_restart_timers_can_be_summed_up() -> None:
    assert EXCHANGES.keys() == ONLY_RESTART_TIMERS
    assert BODIES.keys() >= ONLY_RESTART_TIMERS
    one, other = (made("HEARTBEAT", {"generationId": n}, {"errorCode": 0}) for n in (1, 2))
    sums = [EXCHANGES["HEARTBEAT"](s.request, s.response_fields, 3) for s in (one, other)]
    assert sums[0] != sums[1]
