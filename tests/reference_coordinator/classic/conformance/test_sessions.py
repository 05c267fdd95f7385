"""Members that fall silent, and how long the first rebalance waits."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.conformance.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    SESSION_MS,
    Playbook,
    statics,
)

FIVE_MINUTES_MS = 300_000
TEN_MINUTES_MS = 600_000


@case("testNewMemberTimeoutCompletion")
def test_new_member_timeout_completion():
    """The five minutes of a new member end with its first join phase; then its session counts."""
    session_ms = FIVE_MINUTES_MS + 5_000
    play = Playbook()
    first = play.join(client="c", version=3, session_ms=session_ms)
    play.after(INITIAL_DELAY_MS)
    member_id = first.answer.member_id
    assert play.sync(member_id).error is Error.NONE
    play.after(FIVE_MINUTES_MS + 100)
    assert play.member_ids == {member_id}
    play.after(session_ms + 100)
    assert (play.state, play.member_ids) == (State.EMPTY, set())


@pytest.mark.parametrize("static", [False, True])
@case("testNewMemberJoinExpiration")
def test_new_member_join_expiration(static):
    """A new member that waits 5 min fails with UNKNOWN_MEMBER_ID; an old one is not affected."""
    play = Playbook()
    (old,) = statics(play, "I1", rebalance_ms=TEN_MINUTES_MS)
    newcomer = play.join(instance="I2") if static else play.join(client="c", version=3)
    assert [play.group.members[m].is_new for m in play.member_ids - {old}] == [True]
    play.after(FIVE_MINUTES_MS - 1, alive=[old])
    assert newcomer.pending
    play.after(1)
    assert newcomer.answer == JoinResponse(Error.UNKNOWN_MEMBER_ID)
    assert play.member_ids == {old}
    assert play.state is State.PREPARING_REBALANCE


def second_joins(play: Playbook) -> tuple[str, str]:
    """Let a second dynamic member join a Stable group; return both ids, in CompletingRebalance."""
    first = play.join(client="a", version=3)
    play.after(INITIAL_DELAY_MS)
    leader = first.answer.member_id
    assert play.sync(leader).error is Error.NONE
    other = play.join(client="b", version=3)
    again = play.join(leader, client="a")
    assert (again.error, other.error) == (Error.NONE, Error.NONE)
    assert (play.state, play.generation) == (State.COMPLETING_REBALANCE, 2)
    return leader, other.answer.member_id


@case(
    "testNewMemberFailureAfterJoinGroupCompletion",
    newcomer_stays={"2.4.0": False, "2.4.1": True, "2.5.0": False},
)
def test_new_member_failure_after_join_group_completion(newcomer_stays):
    """Once its JoinGroup is answered, a newcomer's session is like any other.

    Save for 2.4.1, which begins it with its first sign of life after that.
    """
    play = Playbook()
    leader, newcomer = second_joins(play)
    play.after(SESSION_MS - 1)
    assert play.member_ids == {leader, newcomer}
    play.after(1)
    assert play.member_ids == ({newcomer} if newcomer_stays else set())
    assert (play.state is State.EMPTY) != newcomer_stays


@case("testNewMemberFailureAfterSyncGroupCompletion")
def test_new_member_failure_after_sync_group_completion():
    """Once its SyncGroup is answered as well, everywhere."""
    play = Playbook()
    leader, newcomer = second_joins(play)
    assert play.sync(leader).error is Error.NONE
    assert play.sync(newcomer).error is Error.NONE
    play.after(SESSION_MS - 1)
    assert play.member_ids == {leader, newcomer}
    play.after(1)
    assert (play.state, play.member_ids) == (State.EMPTY, set())


@case("testHeartbeatExpirationShouldRemovePendingMember")
def test_heartbeat_expiration_should_remove_pending_member():
    """An id that is never used is forgotten after the session of its request."""
    play = Playbook()
    pending = play.join(client="c", session_ms=SESSION_MS).answer.member_id
    assert play.group.pending_joins == {pending}
    play.after(SESSION_MS - 1)
    assert play.group.pending_joins == {pending}
    play.after(1)
    assert play.group.pending_joins == frozenset()
    assert play.join(pending, client="c").answer == JoinResponse(Error.UNKNOWN_MEMBER_ID, pending)
    assert play.transitions == []


@case(
    "testHeartbeatExpirationShouldRemoveMember",
    empty_after_ms={"2.4": TEN_MINUTES_MS, "java": FIVE_MINUTES_MS},
)
def test_heartbeat_expiration_should_remove_member(empty_after_ms):
    """In a long initial delay a new member expires; Java's join phase then ends at once."""
    play = Playbook(initial_delay_ms=TEN_MINUTES_MS)
    first = play.join(client="c", version=3)
    play.after(FIVE_MINUTES_MS - 1)
    assert first.pending
    play.after(1)
    assert first.answer == JoinResponse(Error.UNKNOWN_MEMBER_ID)
    assert play.member_ids == set()
    play.after(empty_after_ms - FIVE_MINUTES_MS - 1)
    assert (play.state is State.EMPTY) == (empty_after_ms == FIVE_MINUTES_MS)
    play.after(1)
    assert (play.state, play.generation) == (State.EMPTY, 1)
    assert play.records[-1].members == ()


DELAY_MS = 1_000


@case("shouldDelayInitialRebalanceByGroupInitialRebalanceDelayOnEmptyGroup")
def test_should_delay_initial_rebalance_by_group_initial_rebalance_delay_on_empty_group():
    """One member alone is in after one delay."""
    play = Playbook(initial_delay_ms=DELAY_MS)
    first = play.join(instance="I1")
    assert (play.state, play.rebalances) == (State.PREPARING_REBALANCE, [Reason.NEW_MEMBER])
    play.after(DELAY_MS - 1)
    assert first.pending
    play.after(1)
    assert first.answer.generation == 1


@case("shouldResetRebalanceDelayWhenNewMemberJoinsGroupInInitialRebalance")
def test_should_reset_rebalance_delay_when_new_member_joins_group_in_initial_rebalance():
    """A member that joins within a delay starts another one at its end."""
    play = Playbook(initial_delay_ms=DELAY_MS)
    first = play.join(instance="I1")
    play.after(DELAY_MS - 1)
    second = play.join(instance="I2")
    play.after(1)
    assert (first.pending, second.pending) == (True, True)
    play.after(DELAY_MS - 1)
    third = play.join(instance="I3")
    play.after(1)
    assert third.pending
    play.after(DELAY_MS - 1)
    assert (first.pending, second.pending, third.pending) == (True, True, True)
    play.after(1)
    assert [call.answer.generation for call in (first, second, third)] == [1, 1, 1]
    assert play.rebalances == [Reason.NEW_MEMBER]


@case("shouldDelayRebalanceUptoRebalanceTimeout")
def test_should_delay_rebalance_upto_rebalance_timeout():
    """Newcomers cannot put it off past the rebalance timeout."""
    play = Playbook(initial_delay_ms=DELAY_MS)
    timeout = 2 * DELAY_MS + 500
    calls = [play.join(instance="I1", rebalance_ms=timeout)]
    for n in range(2, 5):
        play.after(800)
        calls.append(play.join(instance=f"I{n}", rebalance_ms=timeout))
    play.after(timeout - 2_400 - 1)
    assert all(call.pending for call in calls)
    play.after(1)
    assert {call.answer.generation for call in calls} == {1}


@case("testSessionTimeout")
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


@case("testHeartbeatMaintainsSession")
def test_heartbeat_maintains_session():
    """Each heartbeat restarts the session."""
    play = Playbook()
    (member,) = statics(play, "I1")
    for _ in range(5):
        play.after(SESSION_MS - 1)
        assert play.heartbeat(member, instance="I1") is Error.NONE
    assert play.rebalances == [Reason.NEW_MEMBER]


@case("testCommitMaintainsSession")
def test_commit_maintains_session():
    """Each commit restarts the session."""
    play = Playbook()
    (member,) = statics(play, "I1")
    for _ in range(5):
        play.after(SESSION_MS - 1)
        assert play.commit(member, instance="I1") is Error.NONE
    assert play.rebalances == [Reason.NEW_MEMBER]


@case("testSessionTimeoutDuringRebalance")
def test_session_timeout_during_rebalance():
    """In PreparingRebalance heartbeats count; without them the join phase goes on."""
    play = Playbook()
    (first,) = statics(play, "I1")
    newcomer = play.join_dynamic("c")
    play.after(SESSION_MS - 1)
    assert play.heartbeat(first, instance="I1") is Error.REBALANCE_IN_PROGRESS
    play.after(SESSION_MS - 1)
    assert newcomer.pending
    play.after(1)
    assert (newcomer.answer.generation, len(newcomer.answer.members)) == (2, 1)
    assert play.heartbeat(first, instance="I1") is Error.UNKNOWN_MEMBER_ID
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.NEW_MEMBER]
