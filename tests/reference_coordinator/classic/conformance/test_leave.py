"""LeaveGroup."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, LeaveResponse, Reason
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.call import Call
from tests.reference_coordinator.classic.conformance.checklist import case
from tests.reference_coordinator.classic.playbook import INITIAL_DELAY_MS, Playbook, statics

BATCH_VERSIONS = pytest.mark.parametrize("version", [3, 4, 5])
SINGLE_VERSIONS = pytest.mark.parametrize("version", [0, 1, 2])


@case("testLeaveGroupWithFencedInstanceId")
def test_leave_group_with_fenced_instance_id():
    """The request is fine, its member is fenced."""
    play = Playbook()
    statics(play, "I1")
    left = play.leave(("other", "I1"))
    assert left == LeaveResponse(Error.NONE, (("other", "I1", Error.FENCED_INSTANCE_ID),))
    assert play.rebalances == [Reason.NEW_MEMBER]


@case("testLeaveGroupStaticMemberWithUnknownMemberId")
def test_leave_group_static_member_with_unknown_member_id():
    """An instance id alone removes the member that holds it."""
    play = Playbook()
    statics(play, "I1")
    left = play.leave(("", "I1"))
    assert left == LeaveResponse(Error.NONE, (("", "I1", Error.NONE),))
    assert (play.state, play.member_ids, dict(play.group.static_ids)) == (State.EMPTY, set(), {})
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEAVE]


@BATCH_VERSIONS
@pytest.mark.parametrize("named", [False, True])
@case("testStaticMembersValidBatchLeaveGroup")
def test_static_members_valid_batch_leave_group(version, named):
    """All go, in one rebalance, and the group is Empty."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    first, second = (leader, follower) if named else ("", "")
    left = play.leave((first, "L"), (second, "F"), version=version)
    assert left == LeaveResponse(Error.NONE, ((first, "L", Error.NONE), (second, "F", Error.NONE)))
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEAVE]
    assert (play.state, play.generation) == (State.EMPTY, 2)


@BATCH_VERSIONS
@case("testStaticMembersUnknownGroupBatchLeaveGroup")
def test_static_members_unknown_group_batch_leave_group(version):
    """A group nobody knows; each member gets its own UNKNOWN_MEMBER_ID."""
    play = Playbook()
    left = play.leave(("", "L"), ("m", "F"), version=version)
    assert left == LeaveResponse(
        Error.NONE,
        (("", "L", Error.UNKNOWN_MEMBER_ID), ("m", "F", Error.UNKNOWN_MEMBER_ID)),
    )


@case("testStaticMembersFencedInstanceBatchLeaveGroup")
def test_static_members_fenced_instance_batch_leave_group():
    """One valid, one fenced: the valid one leaves."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    left = play.leave(("", "L"), ("invalid-member", "F"))
    assert left.error is Error.NONE
    assert [error for _, _, error in left.members] == [Error.NONE, Error.FENCED_INSTANCE_ID]
    assert play.member_ids == {follower}
    assert play.rebalances[-1] is Reason.LEAVE


@case("testStaticMembersUnknownInstanceBatchLeaveGroup")
def test_static_members_unknown_instance_batch_leave_group():
    """One valid, one unknown."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    left = play.leave(("", "unknown"), ("", "F"))
    assert left.error is Error.NONE
    assert [error for _, _, error in left.members] == [Error.UNKNOWN_MEMBER_ID, Error.NONE]
    assert play.member_ids == {leader}


@case("testStaticMembersWrongCoordinatorBatchLeaveGroup")
def test_static_members_wrong_coordinator_batch_leave_group():
    """A broker that does not hold the group answers for the request as a whole."""
    play = Playbook()
    statics(play, "L", "F")
    play.unload()
    assert play.leave(("", "L"), ("", "F")) == LeaveResponse(Error.NOT_COORDINATOR)


def with_pending(play: Playbook) -> tuple[list[Call[JoinResponse]], str]:
    """Let two dynamic members rejoin and a third, given its id, be waited for."""
    first, second = play.join_dynamic("a"), play.join_dynamic("b")
    play.after(2 * INITIAL_DELAY_MS)
    play.sync_everyone()
    calls = [play.join(first.answer.member_id, client="a")]
    pending = play.join(client="c").answer.member_id
    calls.append(play.join(second.answer.member_id, client="b"))
    assert [call.pending for call in calls] == [True, True]
    assert play.group.pending_joins == {pending}
    return calls, pending


@case("testPendingMemberBatchLeaveGroup")
def test_pending_member_batch_leave_group():
    """A pending member may leave beside an instance that nobody knows."""
    play = Playbook()
    _, pending = with_pending(play)
    left = play.leave(("", "unknown-instance"), (pending, None))
    assert left.error is Error.NONE
    assert [error for _, _, error in left.members] == [Error.UNKNOWN_MEMBER_ID, Error.NONE]
    assert play.group.pending_joins == frozenset()


@case("testPendingMembersLeavesGroup")
def test_pending_members_leaves_group():
    """The last one a join phase waits for ends it by going."""
    play = Playbook()
    calls, pending = with_pending(play)
    assert play.leave((pending, None)).members == ((pending, None, Error.NONE),)
    assert [call.answer.generation for call in calls] == [2, 2]
    assert (play.state, len(play.member_ids)) == (State.COMPLETING_REBALANCE, 2)
    assert play.group.pending_joins == frozenset()
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEADER_REJOIN]


@pytest.mark.parametrize("unknown", [False, True])
@case(
    "testJoinedMemberPendingMemberBatchLeaveGroup",
    "testJoinedMemberPendingMemberBatchLeaveGroupWithUnknownMember",
)
def test_joined_member_pending_member_batch_leave_group(unknown):
    """Members, a pending one, and perhaps an unknown member, in one request."""
    play = Playbook()
    calls, pending = with_pending(play)
    leaving = [*sorted(play.member_ids), pending]
    expected = [(member_id, None, Error.NONE) for member_id in leaving]
    if unknown:
        leaving.append("unknown")
        expected.append(("unknown", None, Error.UNKNOWN_MEMBER_ID))
    left = play.leave(*((member_id, None) for member_id in leaving))
    assert left == LeaveResponse(Error.NONE, tuple(expected))
    assert [call.error for call in calls] == [Error.UNKNOWN_MEMBER_ID] * 2
    assert (play.state, play.generation, play.member_ids) == (State.EMPTY, 2, set())


@SINGLE_VERSIONS
@case("testLeaveGroupUnknownGroup")
def test_leave_group_unknown_group(version):
    """Up to version 2 the member's error stands at the top."""
    play = Playbook()
    assert play.leave(("m", None), version=version) == LeaveResponse(Error.UNKNOWN_MEMBER_ID)


@SINGLE_VERSIONS
@case("testLeaveGroupUnknownConsumerExistingGroup")
def test_leave_group_unknown_consumer_existing_group(version):
    """The group exists, the member does not."""
    play = Playbook()
    (member,) = statics(play, "I1")
    assert play.leave(("m", None), version=version) == LeaveResponse(Error.UNKNOWN_MEMBER_ID)
    assert play.leave((member, None), version=version) == LeaveResponse(Error.NONE)
    assert play.state is State.EMPTY


@pytest.mark.parametrize("version", [2, 5])
@case("testSingleLeaveDeadGroup")
def test_single_leave_dead_group(version):
    """A Dead group answers for the request as a whole."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.force(State.DEAD)
    left = play.leave((member, "I1"), version=version)
    assert left == LeaveResponse(Error.COORDINATOR_NOT_AVAILABLE)


@case("testBatchLeaveDeadGroup")
def test_batch_leave_dead_group():
    """However many ask."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.force(State.DEAD)
    left = play.leave((leader, "L"), (follower, None))
    assert left == LeaveResponse(Error.COORDINATOR_NOT_AVAILABLE)
