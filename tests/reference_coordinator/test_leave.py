"""LeaveGroup: cases 36 to 40."""

import pytest

from reference_coordinator.effects import JoinAnswer, LeaveAnswer, Reason, SyncAnswer
from reference_coordinator.errors import Error
from reference_coordinator.events import Choices
from reference_coordinator.state import State
from tests.reference_coordinator.playbook import (
    INITIAL_DELAY_MS,
    Playbook,
    statics,
)

BATCH_VERSIONS = pytest.mark.parametrize("version", [3, 4, 5])
SINGLE_VERSIONS = pytest.mark.parametrize("version", [0, 1, 2])


def test_leave_group_with_fenced_instance_id():
    """The request is fine, its member is fenced."""
    play = Playbook()
    statics(play, "I1")
    left = play.leave(("other", "I1"))
    assert left == LeaveAnswer(Error.NONE, (("other", "I1", Error.FENCED_INSTANCE_ID),))
    assert play.rebalances == [Reason.NEW_MEMBER]


def test_leave_group_static_member_with_unknown_member_id():
    """An instance id alone removes whoever holds it."""
    play = Playbook()
    statics(play, "I1")
    left = play.leave(("", "I1"))
    assert left == LeaveAnswer(Error.NONE, (("", "I1", Error.NONE),))
    assert (play.state, play.member_ids, dict(play.group.static_ids)) == (State.EMPTY, set(), {})
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEAVE]


@BATCH_VERSIONS
def test_static_members_valid_batch_leave_group(version):
    """All go, in one rebalance (Java), and the group is Empty."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    left = play.leave((leader, "L"), (follower, "F"), version=version)
    assert left == LeaveAnswer(Error.NONE, ((leader, "L", Error.NONE), (follower, "F", Error.NONE)))
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEAVE]
    assert play.transitions[-2].member_id == leader
    assert (play.state, play.generation) == (State.EMPTY, 2)


@BATCH_VERSIONS
def test_static_members_unknown_group_batch_leave_group(version):
    """A group nobody knows; each member gets its own UNKNOWN_MEMBER_ID."""
    play = Playbook()
    left = play.leave(("", "L"), ("m", "F"), version=version)
    assert left == LeaveAnswer(
        Error.NONE,
        (("", "L", Error.UNKNOWN_MEMBER_ID), ("m", "F", Error.UNKNOWN_MEMBER_ID)),
    )


def test_static_members_fenced_instance_batch_leave_group():
    """One valid, one fenced: the valid one leaves."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    left = play.leave((leader, "L"), ("invalid", "F"))
    assert left.error is Error.NONE
    assert [error for _, _, error in left.members] == [Error.NONE, Error.FENCED_INSTANCE_ID]
    assert play.member_ids == {follower}
    assert play.rebalances[-1] is Reason.LEAVE


def test_static_members_unknown_instance_batch_leave_group():
    """One valid, one unknown."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    left = play.leave(("", "unknown"), (follower, "F"))
    assert left.error is Error.NONE
    assert [error for _, _, error in left.members] == [Error.UNKNOWN_MEMBER_ID, Error.NONE]
    assert play.member_ids == {leader}


def test_static_members_wrong_coordinator_batch_leave_group():
    """A broker that does not hold the group answers for the request as a whole."""
    play = Playbook()
    statics(play, "L", "F")
    play.unload()
    assert play.leave(("", "L"), ("", "F")) == LeaveAnswer(Error.NOT_COORDINATOR)


def test_pending_member_batch_leave_group():
    """A pending member may leave beside a stranger."""
    play = Playbook()
    pending = play.join(client="c").answer.member_id
    left = play.leave(("unknown", None), (pending, None))
    assert left.error is Error.NONE
    assert [error for _, _, error in left.members] == [Error.UNKNOWN_MEMBER_ID, Error.NONE]
    assert play.group.pending_joins == frozenset()
    assert play.timers == {}


def test_pending_members_leaves_group():
    """The last one a join phase waits for ends it by going."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    pending = play.join(client="c").answer.member_id
    rejoin = play.join(leader, instance="L")
    play.join(follower, instance="F")
    assert rejoin.parked
    play.leave((pending, None))
    assert rejoin.answer.generation == 2
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEADER_REJOIN]


def test_joined_member_pending_member_batch_leave_group_with_unknown_member():
    """A member, a pending one and a stranger in one request."""
    play = Playbook()
    member = play.join_dynamic("a")
    play.after(INITIAL_DELAY_MS)
    play.sync_everyone()
    joined = member.answer.member_id
    pending = play.join(client="c").answer.member_id
    left = play.leave((joined, None), (pending, None), ("unknown", None))
    assert left == LeaveAnswer(
        Error.NONE,
        (
            (joined, None, Error.NONE),
            (pending, None, Error.NONE),
            ("unknown", None, Error.UNKNOWN_MEMBER_ID),
        ),
    )
    assert play.state is State.EMPTY


def test_pending_member_that_leaves_a_stable_group_makes_it_rebalance():
    """Java: any accepted member of a LeaveGroup does, even one that had no part in the group."""
    play = Playbook()
    (member,) = statics(play, "I1")
    pending = play.join(client="c").answer.member_id
    play.leave((pending, None))
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEAVE]
    assert play.join(member, instance="I1").answer.generation == 2


@SINGLE_VERSIONS
def test_leave_group_unknown_group(version):
    """Up to version 2 the member's error stands at the top."""
    play = Playbook()
    assert play.leave(("m", None), version=version) == LeaveAnswer(Error.UNKNOWN_MEMBER_ID)


@SINGLE_VERSIONS
def test_leave_group_unknown_consumer_existing_group(version):
    """The group exists, the member does not."""
    play = Playbook()
    (member,) = statics(play, "I1")
    assert play.leave(("m", None), version=version) == LeaveAnswer(Error.UNKNOWN_MEMBER_ID)
    assert play.leave((member, None), version=version) == LeaveAnswer(Error.NONE)
    assert play.state is State.EMPTY


@pytest.mark.parametrize("version", [2, 5])
def test_leave_dead_group(version):
    """A Dead group answers for the request as a whole."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.force(State.DEAD)
    left = play.leave((member, "I1"), version=version)
    assert left == LeaveAnswer(Error.COORDINATOR_NOT_AVAILABLE)


def test_leave_answers_the_member_s_parked_join():
    """A member that goes while it waits is answered UNKNOWN_MEMBER_ID, without an id."""
    play = Playbook()
    waiting = play.join(instance="I1")
    play.join(instance="I2")
    play.leave(("I1-1", "I1"))
    assert waiting.answer == JoinAnswer(Error.UNKNOWN_MEMBER_ID, member_id="")
    assert play.member_ids == {"I2-1"}


def test_leave_during_completing_rebalance_sends_the_waiting_back():
    """Facts 5.4: SyncGroups that wait are told of the new rebalance, without their old work."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.join(leader, instance="L")
    play.join(follower, instance="F")
    waiting = play.sync(follower, instance="F")
    play.leave((leader, "L"))
    assert waiting.answer == SyncAnswer(Error.REBALANCE_IN_PROGRESS, assignment="")
    assert play.rebalances[-1] is Reason.LEAVE


@pytest.mark.parametrize("picked", ["F-1", "G-1"])
def test_leader_that_leaves_is_followed_by_any_other_member(picked):
    """Facts 8.2: Kafka takes the next of a hash map; whoever is picked must have joined."""
    play = Playbook()
    leader, *followers = statics(play, "L", "F", "G")
    play.leave((leader, "L"))
    play.choices = Choices(leader=picked)
    calls = [play.join(m, instance=m[0]) for m in followers]
    assert {call.answer.leader for call in calls} == {picked}


def test_newcomer_does_not_follow_a_leader_that_left_before_it_came():
    """The successor is picked when the leader goes, among those who are members then."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.leave((leader, "L"))
    newcomer = play.join(instance="N")
    play.choices = Choices(leader="N-1")
    play.join(follower, instance="F")
    assert newcomer.answer.leader == follower
