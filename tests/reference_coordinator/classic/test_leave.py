"""LeaveGroup."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, LeaveResponse, Reason, SyncResponse
from reference_coordinator.classic.events import Choices
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import INITIAL_DELAY_MS, Call, Playbook
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_coordinator, by_rule

pytestmark = EVERY_RELEASE
GONE, FENCED, UNKNOWN = Error.NONE, Error.FENCED_INSTANCE_ID, Error.UNKNOWN_MEMBER_ID


@case(
    "testLeaveGroupWithFencedInstanceId",
    "testStaticMembersFencedInstanceBatchLeaveGroup",
    "testStaticMembersUnknownInstanceBatchLeaveGroup",
    "testLeaveGroupStaticMemberWithUnknownMemberId",
)
def test_only_valid_members_leave(play):
    """The request is fine; each member that is fenced or unknown has its own error.

    An instance id alone removes the member that holds it.
    """
    play.statics("L", "F", "G")
    for leaving, stay in (
        ([("other", "L", FENCED)], {"L-1", "F-1", "G-1"}),
        ([("", "G", GONE), ("invalid-member", "F", FENCED)], {"L-1", "F-1"}),
        ([("", "unknown", UNKNOWN), ("", "F", GONE)], {"L-1"}),
        ([("", "L", GONE)], set()),
    ):
        left = play.leave(*((member_id, instance) for member_id, instance, _ in leaving))
        assert left == LeaveResponse(Error.NONE, tuple(leaving))
        assert (play.member_ids, len(play.group.static_ids)) == (stay, len(stay))
        left_any = len(stay) < 3
        assert play.rebalances == [Reason.NEW_MEMBER, *[Reason.LEAVE] * left_any]
    assert play.state is State.EMPTY


@case("testStaticMembersValidBatchLeaveGroup", "testStaticMembersUnknownGroupBatchLeaveGroup")
def test_members_leave_in_one_request():
    """All go, in one rebalance, and the group is Empty; of a group that nobody knows, nobody."""
    for version in (3, 4, 5):
        play = Playbook()
        leaving = ("", "L"), ("", "F")
        unknown = tuple((*member, UNKNOWN) for member in leaving)
        assert play.leave(*leaving, version=version) == LeaveResponse(Error.NONE, unknown)
        play.statics("L", "F")
        leaving = ("L-1", "L"), ("", "F")
        left = play.leave(*leaving, version=version)
        assert left == LeaveResponse(Error.NONE, tuple((*member, GONE) for member in leaving))
        assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEAVE]
        assert (play.state, play.generation) == (State.EMPTY, 2)


@case("testLeaveGroupUnknownGroup", "testLeaveGroupUnknownConsumerExistingGroup")
def test_the_members_error_stands_at_the_top_up_to_version_2():
    for version in (0, 1, 2):
        play = Playbook()
        assert play.leave(("m", None), version=version) == LeaveResponse(UNKNOWN)
        play.statics("I1")
        assert play.leave(("m", None), version=version) == LeaveResponse(UNKNOWN)
        assert play.leave(("I1-1", None), version=version) == LeaveResponse(Error.NONE)
        assert play.state is State.EMPTY


@case(
    "testSingleLeaveDeadGroup",
    "testBatchLeaveDeadGroup",
    "testStaticMembersWrongCoordinatorBatchLeaveGroup",
)
def test_dead_group_and_wrong_coordinator_answer_for_the_request_as_a_whole(play):
    """However many leave."""
    play.statics("L", "F")
    play.force(State.DEAD)
    for error in (Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR):
        assert play.leave(("L-1", "L"), version=2) == LeaveResponse(error)
        assert play.leave(("L-1", "L")) == LeaveResponse(error)
        assert play.leave(("", "L"), ("F-1", None)) == LeaveResponse(error)
        play.unload()


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


@case("testPendingMembersLeavesGroup", "testPendingMemberBatchLeaveGroup")
def test_pending_member_leaves(play):
    """The last one a join phase waits for ends it by going, beside an instance nobody knows."""
    calls, pending = with_pending(play)
    left = play.leave(("", "unknown"), (pending, None))
    assert left == LeaveResponse(Error.NONE, (("", "unknown", UNKNOWN), (pending, None, GONE)))
    assert [call.answer.generation for call in calls] == [2, 2]
    assert (play.state, len(play.member_ids)) == (State.COMPLETING_REBALANCE, 2)
    assert play.group.pending_joins == frozenset()
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEADER_REJOIN]


@pytest.mark.parametrize("unknown", [(), ("unknown",)], ids=["all known", "one unknown"])
@case(
    "testJoinedMemberPendingMemberBatchLeaveGroup",
    "testJoinedMemberPendingMemberBatchLeaveGroupWithUnknownMember",
)
def test_members_and_a_pending_one_leave_in_one_request(play, unknown):
    """A member that goes while it waits is answered UNKNOWN_MEMBER_ID, without an id."""
    calls, pending = with_pending(play)
    known = [*sorted(play.member_ids), pending]
    left = play.leave(*((member_id, None) for member_id in (*known, *unknown)))
    assert left == LeaveResponse(
        Error.NONE, (*((m, None, GONE) for m in known), *((m, None, UNKNOWN) for m in unknown))
    )
    assert [call.answer for call in calls] == [JoinResponse(UNKNOWN, member_id="")] * 2
    assert (play.state, play.generation, play.member_ids) == (State.EMPTY, 2, set())


@by_coordinator("reasons", scala=[], java=[Reason.LEAVE])
def test_leave_of_a_pending_member_is_a_step_like_any_other(play, reasons):
    """Seen live on 3.9.1: in Java a group rebalances for one that had no part in it."""
    play.statics("I1")
    pending = play.join(client="c").answer.member_id
    play.leave((pending, None))
    assert play.rebalances == [Reason.NEW_MEMBER, *reasons]
    expected = Error.REBALANCE_IN_PROGRESS if reasons else Error.NONE
    assert play.heartbeat("I1-1", instance="I1") is expected


@by_coordinator(
    "rebalances, empty_in",
    scala=([(Reason.LEADER_REJOIN, "A-1"), (Reason.LEAVE, "A-1")], 3),
    java=([(Reason.LEADER_REJOIN, "A-1")], 2),
)
def test_leave_is_one_step(play, rebalances, empty_in):
    """Seen live on 3.9.1: one by one, the third to leave meets the generation the others made.

    B and C hold up the join phase that A waits in. In Scala it ends when both are out, so A, out
    next, leaves generation 2; in Java all three leave generation 1.
    """
    play.statics("A", "B", "C")
    (waiting,) = play.rejoin("A-1")
    left = play.leave(("B-1", "B"), ("", "C"), ("A-1", "A"))
    assert [error for _, _, error in left.members] == [Error.NONE] * 3
    seen = [(t.reason, t.member_id) for t in play.transitions if t.reason is not None]
    assert seen[1:] == rebalances
    assert (play.state, play.generation) == (State.EMPTY, empty_in)
    assert waiting.error is (Error.NONE if empty_in == 3 else UNKNOWN)


@by_coordinator("member_id", scala="F-1", java="")
def test_leave_names_the_member_that_made_the_group_rebalance(play, member_id):
    """Scala's line names the member, Java's repeats the ids as they were sent."""
    play.statics("L", "F")
    play.leave(("", "F"))
    assert play.transitions[-1].member_id == member_id


def test_leave_during_completing_rebalance_fails_pending_syncs(play):
    """Pending SyncGroups are answered REBALANCE_IN_PROGRESS, without an assignment."""
    play.statics("L", "F")
    play.rejoin("L-1", "F-1")
    waiting = play.sync("F-1", instance="F")
    play.leave(("L-1", "L"))
    assert waiting.answer == SyncResponse(Error.REBALANCE_IN_PROGRESS, assignment="")
    assert play.rebalances[-1] is Reason.LEAVE


@pytest.mark.parametrize("picked", ["F-1", "G-1", "N-1"])
def test_any_other_member_may_succeed_a_leader_that_leaves(play, picked):
    """Kafka takes the next of a hash map, when the leader goes, among those who are members then.

    So not a newcomer; and the member it picks must have joined.
    """
    play.statics("L", "F", "G")
    play.leave(("L-1", "L"))
    newcomer = play.join(instance="N")
    play.choices = Choices(leader=picked)
    play.rejoin("F-1", "G-1")
    leader = newcomer.answer.leader
    assert leader in {"F-1", "G-1"} if picked == "N-1" else leader == picked


@by_rule(
    "pending_may_name_an_instance",
    "with_known, with_unknown",
    {True: (Error.NONE, Error.NONE), False: (FENCED, Error.UNKNOWN_SERVER_ERROR)},
)
def test_pending_may_name_an_instance(play, with_known, with_unknown):
    """A pending member is dynamic; until 2.8 Kafka threw at the thought of anything else.

    Those named before it in the request have left by then, those after it stay.
    """
    play.statics("I1", "I2", "I3")
    pending = play.join(client="c").answer.member_id
    assert play.leave((pending, "I1")).members == ((pending, "I1", with_known),)
    pending = play.join(client="c").answer.member_id
    answer = play.leave(("", "I1"), (pending, "nobody"), ("", "I2"))
    if with_unknown is Error.NONE:
        assert [error for _, _, error in answer.members] == [Error.NONE] * 3
        assert set(play.group.static_ids) == {"I3"}
    else:
        assert answer == LeaveResponse(with_unknown)
        assert set(play.group.static_ids) == {"I2", "I3"}
