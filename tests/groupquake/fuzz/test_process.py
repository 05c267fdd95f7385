"""What a process makes of its answers, as a client would."""

import pytest

from groupquake.fuzz.process import Phase, Process
from groupquake.fuzz.script import Ref
from kafka_protocol.errors import Error
from loadtest.wire import Exchange

JOINED = {
    "errorCode": 0,
    "memberId": "m",
    "generationId": 3,
    "protocolName": "range",
    "leader": "m",
    "members": [],
}


@pytest.fixture
def process() -> Process:
    return Process("c1", "i1", {}, 1000, 1000, (("range", ""),))


def hear(process: Process, api: str, answer: dict[str, object], step: int = 1) -> None:
    process.waiting[step] = api
    exchange = Exchange("c1.1", "c1", api, 9, {}, step, 0.0, 5.0, answer)
    process.apply(step, exchange, 5.0)


def test_a_joined_member_sends_the_ids_of_its_response(process: Process) -> None:
    hear(process, "JOIN_GROUP", JOINED, step=4)
    assert (process.member_id, process.generation) == (Ref(4, "memberId"), Ref(4, "generationId"))
    assert (process.phase, process.leader_step) == (Phase.JOINED, 4)
    hear(process, "SYNC_GROUP", {"errorCode": 0}, step=5)
    assert process.phase is Phase.IN


@pytest.mark.parametrize("answer", [{"leader": "other"}, {"skipAssignment": True}])
def test_a_follower_sends_no_assignment(process: Process, answer: dict[str, object]) -> None:
    hear(process, "JOIN_GROUP", JOINED | answer)
    assert process.leader_step == 0


def test_a_pending_member_keeps_its_id_and_is_still_out(process: Process) -> None:
    hear(process, "JOIN_GROUP", {"errorCode": Error.MEMBER_ID_REQUIRED, "memberId": "m"}, step=2)
    assert (process.member_id, process.phase) == (Ref(2, "memberId"), Phase.OUT)


@pytest.mark.parametrize("error", [25, 82])
def test_an_invalid_id_is_remembered_as_stale(process: Process, error: int) -> None:
    hear(process, "JOIN_GROUP", JOINED, step=4)
    hear(process, "HEARTBEAT", {"errorCode": error}, step=5)
    assert (process.member_id, process.phase) == ("", Phase.OUT)
    assert process.stale == [Ref(4, "memberId")]


def test_a_member_keeps_its_id_and_rejoins_after_rebalance_in_progress(process: Process) -> None:
    hear(process, "JOIN_GROUP", JOINED, step=4)
    hear(process, "HEARTBEAT", {"errorCode": Error.REBALANCE_IN_PROGRESS}, step=5)
    assert (process.member_id, process.phase) == (Ref(4, "memberId"), Phase.OUT)


def test_errors_of_commits_and_of_single_leavers_count(process: Process) -> None:
    hear(process, "JOIN_GROUP", JOINED, step=4)
    topics = [{"partitions": [{"errorCode": Error.UNKNOWN_MEMBER_ID}]}]
    hear(process, "OFFSET_COMMIT", {"topics": topics}, step=5)
    assert process.member_id == ""
    hear(process, "JOIN_GROUP", JOINED, step=6)
    refused = {
        "errorCode": 0,
        "members": [{"memberId": "m", "errorCode": Error.FENCED_INSTANCE_ID}],
    }
    hear(process, "LEAVE_GROUP", refused, step=7)
    assert process.stale == [Ref(4, "memberId"), Ref(6, "memberId")]


def test_responses_to_the_process_before_the_restart_are_ignored(process: Process) -> None:
    process.waiting[3] = "JOIN_GROUP"
    process.restart()
    assert not process.waiting
    process.apply(3, Exchange("c1.1", "c1", "JOIN_GROUP", 9, {}, 3, 0.0, 5.0, JOINED), 5.0)
    assert (process.member_id, process.connection) == ("", "c1.2")


def test_a_member_refused_for_its_protocols_offers_more(process: Process) -> None:
    hear(process, "JOIN_GROUP", {"errorCode": Error.INCONSISTENT_GROUP_PROTOCOL})
    assert [name for name, _ in process.protocols] == ["range", "rr"]


def test_a_member_refused_for_the_group_size_gives_up(process: Process) -> None:
    hear(process, "JOIN_GROUP", {"errorCode": Error.GROUP_MAX_SIZE_REACHED})
    assert process.gone
