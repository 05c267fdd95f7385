"""LeaveGroup."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, LeaveResponse, Reason, SyncResponse
from reference_coordinator.classic.events import Choices, Timer, TimerFired, TimerKind
from reference_coordinator.classic.state import State
from reference_coordinator.replay.expected_lines import expected_lines
from tests.reference_coordinator.classic.call import Call
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    SESSION_MS,
    Playbook,
    statics,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_coordinator, by_rule

pytestmark = EVERY_RELEASE


@case(
    "testLeaveGroupWithFencedInstanceId",
    "testStaticMembersFencedInstanceBatchLeaveGroup",
    "testStaticMembersUnknownInstanceBatchLeaveGroup",
)
def test_only_valid_members_leave():
    """The request is fine; each member that is fenced or unknown has its own error."""
    play = Playbook()
    leader, follower, other = statics(play, "L", "F", "G")
    left = play.leave(("other", "L"))
    assert left == LeaveResponse(Error.NONE, (("other", "L", Error.FENCED_INSTANCE_ID),))
    assert play.rebalances == [Reason.NEW_MEMBER]
    left = play.leave(("", "G"), ("invalid-member", "F"))
    assert left.error is Error.NONE
    assert [error for _, _, error in left.members] == [Error.NONE, Error.FENCED_INSTANCE_ID]
    assert play.member_ids == {leader, follower}
    assert play.rebalances[-1] is Reason.LEAVE
    left = play.leave(("", "unknown"), ("", "F"))
    assert [error for _, _, error in left.members] == [Error.UNKNOWN_MEMBER_ID, Error.NONE]
    assert play.member_ids == {leader}
    assert other not in play.member_ids


@case("testLeaveGroupStaticMemberWithUnknownMemberId")
def test_leave_group_static_member_with_unknown_member_id():
    """An instance id alone removes the member that holds it."""
    play = Playbook()
    statics(play, "I1")
    left = play.leave(("", "I1"))
    assert left == LeaveResponse(Error.NONE, (("", "I1", Error.NONE),))
    assert (play.state, play.member_ids, dict(play.group.static_ids)) == (State.EMPTY, set(), {})
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEAVE]


@case("testStaticMembersValidBatchLeaveGroup", "testStaticMembersUnknownGroupBatchLeaveGroup")
def test_static_members_valid_batch_leave_group():
    """All go, in one rebalance, and the group is Empty; of a group that nobody knows, nobody."""
    for version in (3, 4, 5):
        for named in (False, True):
            play = Playbook()
            first, second = statics(play, "L", "F") if named else ("", "")
            leaving = (first, "L"), (second, "F")
            if not named:
                unknown = tuple((*member, Error.UNKNOWN_MEMBER_ID) for member in leaving)
                assert play.leave(*leaving, version=version) == LeaveResponse(Error.NONE, unknown)
                statics(play, "L", "F")
            left = play.leave(*leaving, version=version)
            gone = tuple((*member, Error.NONE) for member in leaving)
            assert left == LeaveResponse(Error.NONE, gone)
            assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEAVE]
            assert (play.state, play.generation) == (State.EMPTY, 2)


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


@case("testLeaveGroupUnknownGroup", "testLeaveGroupUnknownConsumerExistingGroup")
def test_leave_group_unknown_group():
    """Up to version 2 the member's error stands at the top."""
    for version in (0, 1, 2):
        play = Playbook()
        assert play.leave(("m", None), version=version) == LeaveResponse(Error.UNKNOWN_MEMBER_ID)
        (member,) = statics(play, "I1")
        assert play.leave(("m", None), version=version) == LeaveResponse(Error.UNKNOWN_MEMBER_ID)
        assert play.leave((member, None), version=version) == LeaveResponse(Error.NONE)
        assert play.state is State.EMPTY


@case("testSingleLeaveDeadGroup", "testBatchLeaveDeadGroup")
def test_single_leave_dead_group():
    """A Dead group answers for the request as a whole, however many leave."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.force(State.DEAD)
    refused = LeaveResponse(Error.COORDINATOR_NOT_AVAILABLE)
    assert play.leave((leader, "L"), version=2) == refused
    assert play.leave((leader, "L"), version=5) == refused
    assert play.leave((leader, "L"), (follower, None)) == refused


@by_coordinator("reasons", scala=[], java=[Reason.LEAVE])
def test_leave_of_a_pending_member_is_a_step_like_any_other(reasons):
    """Seen live on 3.9.1: in Java a group rebalances for one that had no part in it."""
    play = Playbook()
    (member,) = statics(play, "I1")
    pending = play.join(client="c").answer.member_id
    play.leave((pending, None))
    assert play.rebalances == [Reason.NEW_MEMBER, *reasons]
    expected = Error.REBALANCE_IN_PROGRESS if reasons else Error.NONE
    assert play.heartbeat(member, instance="I1") is expected


@by_coordinator("runs_on", scala=True, java=False)
def test_forgotten_pending_timer_runs_on_after_a_leave(runs_on):
    """Seen live on 3.9.1: one session later Scala logs the removal of the member that left.

    `tryCompleteHeartbeat` of a pending member completes only when it joins.
    """
    play = Playbook()
    pending = play.join(client="c").answer.member_id
    play.leave((pending, None))
    assert (play.armed(TimerKind.SESSION, pending) is not None) == runs_on
    before = play.group
    play.after(SESSION_MS)
    fired = TimerFired(play.now_ms, Timer(TimerKind.SESSION, pending))
    lines = [(due.line, due.subject) for due in expected_lines(before, play.group, fired)]
    assert lines == ([("pending_expired", pending)] if runs_on else [])
    assert play.group.removed_pending_joins == frozenset()
    assert play.timers == {}


@by_coordinator(
    "rebalances, empty_in",
    scala=([(Reason.LEADER_REJOIN, "A-1"), (Reason.LEAVE, "A-1")], 3),
    java=([(Reason.LEADER_REJOIN, "A-1")], 2),
)
def test_leave_is_one_step(rebalances, empty_in):
    """Seen live on 3.9.1: one by one, the third to leave meets the generation the others made.

    B and C hold up the join phase that A waits in. In Scala it ends when both are out, so A, out
    next, leaves generation 2; in Java all three leave generation 1.
    """
    play = Playbook()
    leader, *_ = statics(play, "A", "B", "C")
    waiting = play.join(leader, instance="A")
    left = play.leave(("B-1", "B"), ("", "C"), (leader, "A"))
    assert [error for _, _, error in left.members] == [Error.NONE] * 3
    seen = [(t.reason, t.member_id) for t in play.transitions if t.reason is not None]
    assert seen[1:] == rebalances
    assert (play.state, play.generation) == (State.EMPTY, empty_in)
    assert waiting.error is (Error.NONE if empty_in == 3 else Error.UNKNOWN_MEMBER_ID)


@by_coordinator("member_id", scala="F-1", java="")
def test_leave_names_the_member_that_made_the_group_rebalance(member_id):
    """Scala's line names the member, Java's repeats the ids as they were sent."""
    play = Playbook()
    statics(play, "L", "F")
    play.leave(("", "F"))
    assert play.rebalances[-1] is Reason.LEAVE
    assert play.transitions[-1].member_id == member_id


def test_leave_answers_the_member_s_pending_join():
    """A member that goes while it waits is answered UNKNOWN_MEMBER_ID, without an id."""
    play = Playbook()
    waiting = play.join(instance="I1")
    play.join(instance="I2")
    play.leave(("I1-1", "I1"))
    assert waiting.answer == JoinResponse(Error.UNKNOWN_MEMBER_ID, member_id="")
    assert play.member_ids == {"I2-1"}


def test_leave_during_completing_rebalance_fails_pending_syncs():
    """Pending SyncGroups are answered REBALANCE_IN_PROGRESS, without an assignment."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.join(leader, instance="L")
    play.join(follower, instance="F")
    waiting = play.sync(follower, instance="F")
    play.leave((leader, "L"))
    assert waiting.answer == SyncResponse(Error.REBALANCE_IN_PROGRESS, assignment="")
    assert play.rebalances[-1] is Reason.LEAVE


@pytest.mark.parametrize("picked", ["F-1", "G-1"])
def test_any_other_member_may_succeed_a_leader_that_leaves(picked):
    """Kafka takes the next of a hash map; the member it picks must have joined."""
    play = Playbook()
    leader, *followers = statics(play, "L", "F", "G")
    play.leave((leader, "L"))
    play.choices = Choices(leader=picked)
    calls = [play.join(m, instance=m[0]) for m in followers]
    assert {call.answer.leader for call in calls} == {picked}


def test_newcomer_does_not_succeed_a_leader_that_left_before_it_joined():
    """The successor is picked when the leader goes, among those who are members then."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.leave((leader, "L"))
    newcomer = play.join(instance="N")
    play.choices = Choices(leader="N-1")
    play.join(follower, instance="F")
    assert newcomer.answer.leader == follower


@by_rule(
    "pending_may_name_an_instance",
    "with_known, with_unknown",
    {True: (Error.NONE, Error.NONE), False: (Error.FENCED_INSTANCE_ID, Error.UNKNOWN_SERVER_ERROR)},
)
def test_pending_may_name_an_instance(with_known, with_unknown):
    """A pending member is dynamic; until 2.8 Kafka threw at the thought of anything else.

    Those named before it in the request have left by then, those after it stay.
    """
    play = Playbook()
    statics(play, "I1", "I2", "I3")
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
