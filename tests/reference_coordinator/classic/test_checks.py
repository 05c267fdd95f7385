"""JoinGroup's and SyncGroup's checks and their order, beside Kafka's own tests."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, LeaveResponse, Reason, SyncResponse
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import INITIAL_DELAY_MS, Playbook, statics
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_coordinator

pytestmark = EVERY_RELEASE


def test_an_empty_group_may_change_its_protocol_type():
    """Only members bind a group to its type."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.leave((member, "I1"))
    call = play.join(instance="I1", protocol_type="connect", protocols=("compatible",))
    play.after(INITIAL_DELAY_MS)
    assert (call.answer.protocol_type, call.answer.protocol) == ("connect", "compatible")


def test_sync_group_protocol_type_and_name():
    """V5 names type and protocol, and both must be the group's; before, neither is."""
    play = Playbook()
    play.join(instance="I1")
    play.after(INITIAL_DELAY_MS)
    refused = SyncResponse(Error.INCONSISTENT_GROUP_PROTOCOL)
    assert play.sync("I1-1", protocol_type="connect", protocol="range").answer == refused
    assert play.sync("I1-1", protocol_type="consumer", protocol="roundrobin").answer == refused
    assert play.group.pending_syncs == {"I1-1"}
    synced = play.sync("I1-1", protocol_type="consumer", protocol="range", **{"I1-1": "all"})
    assert synced.answer == SyncResponse(Error.NONE, "consumer", "range", "all")
    assert play.sync("I1-1").answer == synced.answer


def test_sync_group_checks():
    """Dead, ids, generation, protocol, and the state at last."""
    play = Playbook()
    assert play.sync("m", generation=1).error is Error.UNKNOWN_MEMBER_ID
    leader, follower = statics(play, "L", "F")
    assert play.sync("unknown", generation=9).error is Error.UNKNOWN_MEMBER_ID
    assert play.sync(follower, generation=0).error is Error.ILLEGAL_GENERATION
    play.join(leader, instance="L")
    assert play.sync(follower, generation=0).error is Error.ILLEGAL_GENERATION
    inconsistent = play.sync(follower, protocol="sticky")
    assert inconsistent.error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert play.sync(follower).answer == SyncResponse(Error.REBALANCE_IN_PROGRESS)
    play.force(State.DEAD)
    assert play.sync("unknown", generation=9).error is Error.COORDINATOR_NOT_AVAILABLE


def test_sync_fills_holes_in_the_assignment():
    """A member that the leader leaves out gets an empty assignment."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    waiting = play.sync("F-1")
    play.sync("L-1", **{"L-1": "all", "unknown": "more"})
    assert waiting.answer == SyncResponse(Error.NONE, "consumer", "range", "")
    assert {m.member_id: m.assignment for m in play.records[-1].members} == {
        "L-1": "all",
        "F-1": "",
    }
    assert (play.assignments[-1].leader, play.assignments[-1].static_members) == ("L-1", 2)


def test_assignment_that_cannot_be_stored():
    """Everyone who waits gets the error, and the group starts over."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    play.hold_writes = True
    waiting = play.sync("F-1")
    leading = play.sync("L-1", **{"L-1": "all"})
    assert (waiting.pending, leading.pending) == (True, True)
    assert play.state is State.COMPLETING_REBALANCE
    play.written(leading, Error.COORDINATOR_NOT_AVAILABLE)
    failed = SyncResponse(Error.COORDINATOR_NOT_AVAILABLE)
    assert (waiting.answer, leading.answer) == (failed, failed)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.ASSIGNMENT_ERROR]


def test_assignment_of_a_generation_that_is_over():
    """A write that comes out after the next rebalance began changes nothing."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    play.hold_writes = True
    leading = play.sync("L-1", **{"L-1": "all"})
    play.join("F-1", instance="F", subscription="payments")
    assert leading.answer == SyncResponse(Error.REBALANCE_IN_PROGRESS)
    play.join("L-1", instance="L")
    assert (play.state, play.generation) == (State.COMPLETING_REBALANCE, 2)
    play.written(leading)
    assert play.state is State.COMPLETING_REBALANCE


def test_join_group_checks_session_range():
    """After the group id; the range is inclusive (10 ms to 10 minutes, as upstream)."""
    nameless = Playbook(group_id="")
    call = nameless.join("m", session_ms=1)
    assert call.answer == JoinResponse(Error.INVALID_GROUP_ID, "m")
    play = Playbook()
    for session_ms in (9, 600_001):
        call = play.join("m", session_ms=session_ms)
        assert call.answer == JoinResponse(Error.INVALID_SESSION_TIMEOUT, "m")
    assert play.join("m", session_ms=10).error is Error.UNKNOWN_MEMBER_ID
    assert play.join("m", session_ms=600_000).error is Error.UNKNOWN_MEMBER_ID


@by_coordinator("error", scala=Error.NOT_COORDINATOR, java=Error.INVALID_SESSION_TIMEOUT)
def test_session_range_comes_first(error):
    """Seen live on 3.9.1: Java looks at the session timeout before the group, Scala after it."""
    play = Playbook()
    play.unload()
    assert play.join("m", session_ms=9).answer == JoinResponse(error, "m")


def test_every_request_of_a_member_needs_a_group_id():
    """`GroupCoordinatorService` (4.3): INVALID_GROUP_ID; a manual commit alone may do without."""
    play = Playbook(group_id="")
    assert play.sync("m", generation=1).error is Error.INVALID_GROUP_ID
    assert play.heartbeat("m", generation=1) is Error.INVALID_GROUP_ID
    assert play.leave(("m", None)) == LeaveResponse(Error.INVALID_GROUP_ID)
    assert play.commit(generation=-1) is Error.NONE


def test_join_group_unknown_group_with_a_member_id():
    """An id presupposes a group."""
    play = Playbook()
    call = play.join("m", instance="I1", protocols=())
    assert call.answer == JoinResponse(Error.UNKNOWN_MEMBER_ID, "m")


def test_join_group_checks_protocols_before_pending_and_ids():
    """An unknown id with impossible protocols hears of the protocols."""
    play = Playbook()
    statics(play, "I1")
    call = play.join("unknown", protocols=("sticky",))
    assert call.error is Error.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_dynamic_member_of_old_versions_joins_in_one_step(version):
    """KIP-394 begins with JoinGroup v4."""
    play = Playbook()
    call = play.join(client="c", version=version)
    play.after(INITIAL_DELAY_MS)
    assert (call.error, call.answer.member_id) == (Error.NONE, "c-1")
