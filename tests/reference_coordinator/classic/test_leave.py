"""LeaveGroup, beside Kafka's own tests."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason, SyncResponse
from reference_coordinator.classic.events import Choices, Timer, TimerFired, TimerKind
from reference_coordinator.classic.state import State
from reference_coordinator.replay.expected_lines import expected_lines
from tests.reference_coordinator.classic.playbook import SESSION_MS, Playbook, statics
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_coordinator

pytestmark = EVERY_RELEASE


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
