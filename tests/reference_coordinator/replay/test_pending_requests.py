"""Requests that wait for their answers."""

from dataclasses import replace

from kafka_protocol.errors import Error
from reference_coordinator.replay.evidence import ObservedRequest
from reference_coordinator.replay.pending_requests import PendingRequests
from tests.reference_coordinator.replay.conftest import START, Scenario


def requests() -> tuple[ObservedRequest, ObservedRequest]:
    scenario = Scenario()
    scenario.join("a", 0, 900)
    scenario.join("b", 20, 800)
    first, second = scenario.requests
    return first, second


def pending(*seen: ObservedRequest) -> PendingRequests:
    made = PendingRequests()
    for one in seen:
        made.add(one)
    return made


def test_the_first_answer_shows_the_end_of_the_join_phase() -> None:
    a, b = requests()
    waiting = pending(a, b)
    assert waiting.joined_first() is b
    assert waiting.remove(b.id) is b
    assert waiting.joined_first() is a
    assert waiting.remove("unknown") is None


def test_a_join_that_was_refused_shows_no_end() -> None:
    a, _ = requests()
    refused = replace(a, response={**a.response_fields, "errorCode": Error.MEMBER_ID_REQUIRED})
    assert pending(refused).joined_first() is None


def test_requests_that_were_answered_by_a_time_are_found() -> None:
    a, b = requests()
    waiting = pending(a, b)
    assert waiting.answered_before(START + 800, None) == []
    assert waiting.answered_before(START + 801, None) == [b]
    assert waiting.answered_before(START + 901, None) == [a, b]


def test_a_connection_takes_no_other_request_before_the_answer() -> None:
    a, b = requests()
    waiting = pending(a, b)
    assert waiting.answered_before(START, a.connection) == [a]
    waiting.remove(a.id)
    assert waiting.answered_before(START, a.connection) == []


def test_a_request_without_response_holds_no_connection() -> None:
    a, _ = requests()
    unanswered = replace(a, response=None, answered_ms=float("inf"))
    waiting = pending(unanswered)
    assert not waiting.busy
    assert waiting.answered_before(1e12, a.connection) == []


def test_a_fork_goes_on_by_itself() -> None:
    a, b = requests()
    waiting = pending(a, b)
    forked = waiting.fork()
    forked.remove(b.id)
    assert waiting.joined_first() is b
    assert forked.joined_first() is a
    assert b.connection in waiting.busy
