"""Members that fall silent: cases 30, 31 and 33."""

from dataclasses import replace

import pytest

from reference_coordinator.effects import JoinAnswer, Reason
from reference_coordinator.errors import Error
from reference_coordinator.events import TimerKind
from reference_coordinator.profiles import NEW_MEMBER_JOIN_TIMEOUT_MS, kafka_4_3
from reference_coordinator.state import State
from tests.reference_coordinator.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    statics,
)

FIVE_MINUTES_MS = 300_000
TEN_MINUTES_MS = 600_000


def test_session_timeout():
    """The session ends, and with it the membership."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.after(SESSION_MS - 1, alive=[leader])
    assert play.member_ids == {leader, follower}
    play.after(1)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.SESSION_EXPIRED]
    assert play.transitions[-1].member_id == follower
    assert play.heartbeat(follower, instance="F") is Error.UNKNOWN_MEMBER_ID
    assert play.heartbeat(leader, instance="L") is Error.REBALANCE_IN_PROGRESS


def test_heartbeat_maintains_session():
    """Each heartbeat restarts the session."""
    play = Playbook()
    (member,) = statics(play, "I1")
    for _ in range(5):
        play.after(SESSION_MS - 1)
        assert play.heartbeat(member, instance="I1") is Error.NONE
    assert play.rebalances == [Reason.NEW_MEMBER]


def test_commit_maintains_session():
    """So does each commit."""
    play = Playbook()
    (member,) = statics(play, "I1")
    for _ in range(5):
        play.after(SESSION_MS - 1)
        assert play.commit(member, instance="I1") is Error.NONE
    assert play.rebalances == [Reason.NEW_MEMBER]


def test_refused_heartbeats_and_commits_do_not_maintain_the_session():
    """Only a request that passes the checks is a sign of life."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.after(SESSION_MS - 1)
    assert play.heartbeat(member, generation=7) is Error.ILLEGAL_GENERATION
    assert play.commit(member, generation=7) is Error.ILLEGAL_GENERATION
    play.after(1)
    assert play.state is State.EMPTY


def test_sync_in_stable_does_not_maintain_the_session():
    """Facts 5.3: Scala restarts the session here, Java does not."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.after(SESSION_MS - 1)
    assert play.sync(member, instance="I1").error is Error.NONE
    play.after(1)
    assert play.state is State.EMPTY


def test_session_timeout_during_rebalance():
    """In PreparingRebalance heartbeats count; without them the join phase goes on."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    rejoin = play.join(leader, instance="L")
    play.after(SESSION_MS - 1)
    assert play.heartbeat(follower, instance="F") is Error.REBALANCE_IN_PROGRESS
    play.after(SESSION_MS - 1)
    assert rejoin.parked
    play.after(1)
    assert (rejoin.answer.generation, len(rejoin.answer.members)) == (2, 1)
    assert play.heartbeat(follower, instance="F") is Error.UNKNOWN_MEMBER_ID
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEADER_REJOIN]


def test_two_expiries_make_one_rebalance():
    """Facts 1.9, seen live: the second member to expire only ends what the first began."""
    play = Playbook()
    statics(play, "L", "F")
    play.after(SESSION_MS)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.SESSION_EXPIRED]
    assert (play.state, play.generation) == (State.EMPTY, 2)


def test_waiting_members_do_not_expire():
    """Facts 5.4: a known member lives as long as it waits, and gets a fresh session after."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    rejoin = play.join(leader, instance="L")
    play.after(REBALANCE_MS - 1, alive=[follower])
    assert rejoin.parked
    play.join(follower, instance="F")
    assert rejoin.answer.generation == 2
    waiting = play.sync(follower)
    play.after(2 * SESSION_MS, alive=[leader])
    assert waiting.parked
    play.sync(leader)
    assert waiting.error is Error.NONE
    play.after(SESSION_MS - 1, alive=[leader])
    assert play.member_ids == {leader, follower}
    play.after(1)
    assert play.member_ids == {leader}


def test_new_member_timeout_completion():
    """A join that waits for five minutes fails with UNKNOWN_MEMBER_ID."""
    play = Playbook(initial_delay_ms=TEN_MINUTES_MS)
    first = play.join(instance="I1")
    play.after(FIVE_MINUTES_MS - 1)
    assert first.parked
    play.after(1)
    assert first.answer == JoinAnswer(Error.UNKNOWN_MEMBER_ID)
    assert NEW_MEMBER_JOIN_TIMEOUT_MS == FIVE_MINUTES_MS


def test_new_member_join_expiration():
    """The same in a group that waits for an old member; that one is not affected."""
    play = Playbook()
    (old,) = statics(play, "I1", rebalance_ms=TEN_MINUTES_MS)
    newcomer = play.join(instance="I2")
    play.after(FIVE_MINUTES_MS - 1, alive=[old])
    assert newcomer.parked
    play.after(1)
    assert newcomer.answer == JoinAnswer(Error.UNKNOWN_MEMBER_ID)
    assert play.member_ids == {old}
    assert play.state is State.PREPARING_REBALANCE


@pytest.mark.parametrize("synced", [False, True])
def test_new_member_failure_after_completion(synced):
    """Once answered, after JoinGroup or SyncGroup, its session is like any other."""
    play = Playbook()
    leader, newcomer = play.join(instance="L"), play.join(instance="N")
    play.after(2 * INITIAL_DELAY_MS)
    if synced:
        play.sync_everyone()
    play.after(SESSION_MS - 1, alive=[leader.answer.member_id])
    assert play.rebalances == [Reason.NEW_MEMBER]
    play.after(1)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.SESSION_EXPIRED]
    assert newcomer.answer.member_id not in play.member_ids


def test_heartbeat_expiration_should_remove_pending_member():
    """An id that is never used is forgotten after the session of its request."""
    play = Playbook()
    pending = play.join(client="c", session_ms=SESSION_MS).answer.member_id
    assert play.group.pending_joins == {pending}
    play.after(SESSION_MS - 1)
    assert play.group.pending_joins == {pending}
    play.after(1)
    assert play.group.pending_joins == frozenset()
    assert play.join(pending, client="c").answer == JoinAnswer(Error.UNKNOWN_MEMBER_ID, pending)
    assert play.transitions == []


def test_heartbeat_expiration_should_remove_member():
    """In Java an expiry ends the initial delay, here with nobody left."""
    play = Playbook(initial_delay_ms=TEN_MINUTES_MS)
    play.join(instance="I1")
    play.after(FIVE_MINUTES_MS)
    assert (play.state, play.generation, play.member_ids) == (State.EMPTY, 1, set())
    assert play.armed(TimerKind.JOIN) is None


def test_pending_member_that_expires_ends_the_initial_delay_in_java():
    """All others have joined, so the join phase ends long before time."""
    play = Playbook(initial_delay_ms=TEN_MINUTES_MS)
    first = play.join(instance="I1")
    play.join(client="c", session_ms=SESSION_MS)
    play.after(SESSION_MS - 1)
    assert first.parked
    play.after(1)
    assert first.answer.generation == 1


def test_pending_member_that_expires_does_not_end_the_initial_delay_in_scala():
    """Facts 5.3: in the Scala coordinator the delay always runs out."""
    scala = replace(kafka_4_3(), expiry_ends_initial_delay=False)
    play = Playbook(initial_delay_ms=2 * SESSION_MS, profile=scala)
    first = play.join(instance="I1")
    play.join(client="c", session_ms=SESSION_MS)
    play.after(2 * SESSION_MS - 1)
    assert first.parked
    play.after(1)
    assert first.answer.generation == 1


def test_pending_member_holds_up_the_join_phase():
    """Facts 5.4: a join phase waits for pending members too, until they expire."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.join(client="c", session_ms=SESSION_MS)
    rejoin = play.join(leader, instance="L")
    play.join(follower, instance="F")
    assert rejoin.parked
    play.after(SESSION_MS)
    assert rejoin.answer.generation == 2
    assert play.group.pending_joins == frozenset()
