"""What a process makes of its answers, as a client would."""

from typing import Any

import pytest

from groupquake.fuzz.process import Phase, Process
from kafka_protocol.errors import Error
from loadtest.wire import Exchange

JOINED: dict[str, Any] = {
    "errorCode": 0,
    "memberId": "m",
    "generationId": 3,
    "protocolName": "range",
    "leader": "m",
    "members": [{"memberId": "m"}, {"memberId": "n"}],
}


@pytest.fixture
def process() -> Process:
    return Process("c1", "i1", {}, 1000, 1000, (("range", ""),))


def hear(process: Process, api: str, answer: dict[str, Any]) -> Process:
    process.waiting[1] = api
    process.apply(1, Exchange("c1.1", "c1", api, 9, {}, 1, 0.0, 5.0, answer))
    return process


def test_a_member_sends_the_ids_of_its_response_and_the_leader_assigns(process: Process) -> None:
    hear(process, "JOIN_GROUP", JOINED)
    assert (process.member_id, process.generation, process.protocol) == ("m", 3, "range")
    assert (process.phase, process.led) == (Phase.JOINED, ("m", "n"))
    for answer in ({"leader": "other"}, {"skipAssignment": True}):
        assert hear(process, "JOIN_GROUP", JOINED | answer).led == ()
    assert hear(process, "SYNC_GROUP", {"errorCode": 0}).phase is Phase.IN


def test_errors_change_what_it_sends_next(process: Process) -> None:
    hear(process, "JOIN_GROUP", {"errorCode": Error.MEMBER_ID_REQUIRED, "memberId": "m"})
    assert (process.member_id, process.phase, process.pending_ms) == ("m", Phase.OUT, 5.0)
    hear(process, "JOIN_GROUP", JOINED)
    hear(process, "HEARTBEAT", {"errorCode": Error.REBALANCE_IN_PROGRESS})
    assert (process.member_id, process.phase) == ("m", Phase.OUT)
    hear(process, "JOIN_GROUP", {"errorCode": Error.INCONSISTENT_GROUP_PROTOCOL})
    assert [name for name, _ in process.protocols] == ["range", "rr"]
    assert hear(process, "JOIN_GROUP", {"errorCode": Error.GROUP_MAX_SIZE_REACHED}).gone


def test_an_invalid_id_is_remembered_as_stale(process: Process) -> None:
    topics = [{"partitions": [{"errorCode": Error.UNKNOWN_MEMBER_ID}]}]
    left = [{"memberId": "m", "errorCode": Error.FENCED_INSTANCE_ID}]
    for api, answer in (
        ("HEARTBEAT", {"errorCode": Error.UNKNOWN_MEMBER_ID}),
        ("HEARTBEAT", {"errorCode": Error.FENCED_INSTANCE_ID}),
        ("OFFSET_COMMIT", {"topics": topics}),
        ("LEAVE_GROUP", {"errorCode": 0, "members": left}),
    ):
        process.stale.clear()
        hear(process, "JOIN_GROUP", JOINED)
        hear(process, api, answer)
        assert (process.member_id, process.phase, process.stale) == ("", Phase.OUT, ["m"])


def test_responses_to_the_process_before_the_restart_are_ignored(process: Process) -> None:
    process.waiting[3] = "JOIN_GROUP"
    process.restart()
    assert not process.waiting
    process.apply(3, Exchange("c1.1", "c1", "JOIN_GROUP", 9, {}, 3, 0.0, 5.0, JOINED))
    assert (process.member_id, process.connection) == ("", "c1.2")
