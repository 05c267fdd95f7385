"""Members that miss a rebalance or never fetch their assignment: cases 25 to 29."""

import pytest

from reference_coordinator.effects import Reason
from reference_coordinator.errors import Error
from reference_coordinator.events import Choices
from reference_coordinator.state import State
from tests.reference_coordinator.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    statics,
)

LONG_MS = 100_000


def test_static_member_follower_fail_to_rejoin_before_rebalance_timeout():
    """At the rebalance timeout the silent follower is still one of three."""
    play = Playbook()
    leader, follower = statics(play, "L", "F", session_ms=LONG_MS)
    newcomer = play.join(instance="N", session_ms=LONG_MS)
    rejoin = play.join(leader, instance="L", session_ms=LONG_MS)
    play.after(REBALANCE_MS - 1)
    assert (rejoin.parked, newcomer.parked) == (True, True)
    play.after(1)
    assert {m for m, _, _ in rejoin.answer.members} == {leader, follower, "N-1"}
    assert newcomer.answer.members == frozenset()
    assert (newcomer.answer.generation, newcomer.answer.leader) == (2, leader)
    assert play.transitions[-1].members == play.transitions[-1].static_members == 3


@pytest.mark.parametrize("picked", ["F-1", "N-1"])
def test_static_member_leader_fail_to_rejoin_before_rebalance_timeout(picked):
    """The silent leader stays a member; either of those who came may lead."""
    play = Playbook()
    leader, follower = statics(play, "L", "F", session_ms=LONG_MS)
    newcomer = play.join(instance="N", session_ms=LONG_MS)
    play.join(follower, instance="F", session_ms=LONG_MS)
    play.choices = Choices(leader=picked)
    play.after(REBALANCE_MS)
    assert newcomer.answer.leader == play.leader == picked
    assert newcomer.answer.generation == 2
    assert play.member_ids == {leader, follower, "N-1"}
    assert [b.refused for b in play.bound if b.kind == "leader"] == [""]


def test_silent_leader_cannot_be_picked():
    """Case 26, the other way round: only those who joined may lead."""
    play = Playbook()
    leader, follower = statics(play, "L", "F", session_ms=LONG_MS)
    play.join(instance="N", session_ms=LONG_MS)
    play.join(follower, instance="F", session_ms=LONG_MS)
    play.choices = Choices(leader=leader)
    play.after(REBALANCE_MS)
    assert play.leader in {"F-1", "N-1"}
    assert [b.refused for b in play.bound if b.kind == "leader"] == [leader]


def stuck(play: Playbook) -> str:
    """Bring a group to where only a silent static leader is left of it; return its id."""
    session_ms = 2 * REBALANCE_MS
    leader, follower = statics(play, "L", "F", session_ms=session_ms)
    dynamic = play.join_dynamic("d", session_ms=session_ms)
    play.after(REBALANCE_MS)
    assert dynamic.answer.leader == dynamic.answer.member_id
    assert (dynamic.answer.generation, len(dynamic.answer.members)) == (2, 3)
    play.leave((follower, "F"))
    assert play.state is State.PREPARING_REBALANCE
    play.after(REBALANCE_MS)
    return leader


def test_group_stuck_in_rebalance_timeout_due_to_nonjoined_static_member():
    """The dynamic leader is dropped, and nobody is there to start generation 3."""
    play = Playbook()
    leader = stuck(play)
    assert play.member_ids == {leader}
    assert (play.state, play.generation) == (State.PREPARING_REBALANCE, 2)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.NEW_MEMBER, Reason.LEAVE]


def test_leader_fail_to_rejoin_before_final_rebalance_timeout_with_long_session_timeout():
    """The static leader's session ends, and the group is Empty in generation 3."""
    play = Playbook()
    stuck(play)
    play.after(REBALANCE_MS - 1)
    assert play.state is State.PREPARING_REBALANCE
    play.after(1)
    assert (play.state, play.generation, play.member_ids) == (State.EMPTY, 3, set())
    assert play.records[-1].generation == 3
    assert play.records[-1].members == ()


def test_leader_rejoin_before_final_rebalance_timeout_with_long_session_timeout():
    """The static leader returns in time and starts generation 3 alone."""
    play = Playbook()
    stuck(play)
    play.after(REBALANCE_MS / 2)
    back = play.join(instance="L")
    assert (back.error, back.answer.generation, back.answer.leader) == (Error.NONE, 3, "L-2")
    assert play.state is State.COMPLETING_REBALANCE


def test_rebalance_timeout_repeats_while_nobody_joins():
    """Facts 1.2, seen live: the next timeout counts from the one that ended in nothing."""
    play = Playbook()
    leader = stuck(play)
    newcomer = play.join(instance="N")
    play.after(REBALANCE_MS - 1, alive=[leader])
    assert newcomer.parked
    play.after(1)
    assert (newcomer.answer.generation, newcomer.answer.leader) == (3, "N-1")
    assert {m for m, _, _ in newcomer.answer.members} == {leader, "N-1"}


def test_rebalance_completes_before_member_joins():
    """A static member that only heartbeats misses the generation but stays a member."""
    play = Playbook()
    (absent,) = statics(play, "S")
    dynamic = play.join_dynamic("d")
    for _ in range(4):
        play.after(REBALANCE_MS / 4 - 1)
        assert play.heartbeat(absent, instance="S", generation=1) is Error.REBALANCE_IN_PROGRESS
    play.after(4)
    present = dynamic.answer.member_id
    assert dynamic.answer.generation == 2
    assert {m for m, _, _ in dynamic.answer.members} == {absent, present}
    assert play.heartbeat(absent, instance="S", generation=1) is Error.ILLEGAL_GENERATION
    play.sync(present, **{present: "all"})
    assert play.state is State.STABLE
    play.after(SESSION_MS - 1, alive=[present])
    assert play.member_ids == {absent, present}
    play.after(1)
    assert play.member_ids == {present}
    assert play.rebalances[-1] is Reason.SESSION_EXPIRED


def joined(play: Playbook) -> tuple[str, str, str]:
    """Bring a leader, a static and a dynamic follower to CompletingRebalance."""
    leader, follower = play.join(instance="L"), play.join(instance="F")
    dynamic = play.join_dynamic("d")
    play.after(2 * INITIAL_DELAY_MS)
    assert play.state is State.COMPLETING_REBALANCE
    return leader.answer.member_id, follower.answer.member_id, dynamic.answer.member_id


def test_rebalance_times_out_when_sync_request_is_not_received():
    """Case 29, nobody syncs: static or not, all are removed; heartbeats do not help."""
    play = Playbook()
    everyone = joined(play)
    play.after(REBALANCE_MS - 1, alive=everyone)
    assert play.member_ids == set(everyone)
    play.after(1)
    assert (play.state, play.generation, play.member_ids) == (State.EMPTY, 2, set())
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.PENDING_SYNC]
    assert [play.heartbeat(m) for m in everyone] == [Error.UNKNOWN_MEMBER_ID] * 3


def test_rebalance_times_out_when_sync_request_is_not_received_from_followers():
    """Case 29, the leader alone syncs: the group is Stable until the followers are removed."""
    play = Playbook()
    leader, *followers = joined(play)
    assert play.sync(leader).error is Error.NONE
    assert play.state is State.STABLE
    play.after(REBALANCE_MS - 1, alive=[leader, *followers])
    assert play.rebalances == [Reason.NEW_MEMBER]
    play.after(1)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.PENDING_SYNC]
    assert play.member_ids == {leader}
    assert play.heartbeat(leader) is Error.REBALANCE_IN_PROGRESS


def test_rebalance_times_out_when_sync_request_is_not_received_from_leader():
    """Case 29, the leader does not sync: it is removed, the others are told to join again."""
    play = Playbook()
    leader, *followers = joined(play)
    syncs = [play.sync(follower) for follower in followers]
    play.after(REBALANCE_MS - 1, alive=[leader])
    assert all(sync.parked for sync in syncs)
    play.after(1)
    assert [sync.error for sync in syncs] == [Error.REBALANCE_IN_PROGRESS] * 2
    assert play.member_ids == set(followers)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.PENDING_SYNC]


def test_rebalance_does_not_time_out_when_all_sync_are_received():
    """The last SyncGroup stops the timer."""
    play = Playbook()
    everyone = joined(play)
    play.sync_everyone()
    play.after(2 * REBALANCE_MS, alive=everyone)
    assert (play.state, play.generation) == (State.STABLE, 1)
    assert play.rebalances == [Reason.NEW_MEMBER]


def test_pending_sync_timer_does_not_outlive_its_generation():
    """A new rebalance stops it; the next generation gets a timer of its own (KAFKA-12890)."""
    play = Playbook()
    leader, follower, dynamic = joined(play)
    play.after(REBALANCE_MS - 1, alive=[leader, follower, dynamic])
    play.leave((dynamic, None))
    play.join(leader, instance="L")
    play.join(follower, instance="F")
    assert play.generation == 2
    play.after(REBALANCE_MS - 1, alive=[leader, follower])
    assert play.member_ids == {leader, follower}
    play.after(1)
    assert play.rebalances[-1] is Reason.PENDING_SYNC


def test_absent_static_member_is_removed_by_the_pending_sync_timer():
    """Facts 5.4 and 1.9, seen live: kept at the join phase's end, gone one timeout later."""
    play = Playbook()
    leader, follower = statics(play, "L", "F", session_ms=LONG_MS)
    rejoin = play.join(leader, instance="L", session_ms=LONG_MS)
    play.after(REBALANCE_MS)
    assert (rejoin.answer.generation, len(rejoin.answer.members)) == (2, 2)
    play.sync(leader)
    assert play.state is State.STABLE
    play.after(REBALANCE_MS, alive=[leader])
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEADER_REJOIN, Reason.PENDING_SYNC]
    assert follower not in play.member_ids


def test_absent_dynamic_member_is_dropped_at_the_rebalance_timeout():
    """Facts 5.4: without an instance id, absent means gone; heartbeats do not help."""
    play = Playbook()
    leader = play.join_dynamic("a")
    absent = play.join_dynamic("b")
    play.after(2 * INITIAL_DELAY_MS)
    play.sync_everyone()
    rejoin = play.join(leader.answer.member_id, client="a")
    play.after(REBALANCE_MS, alive=[absent.answer.member_id])
    assert (rejoin.answer.generation, len(rejoin.answer.members)) == (2, 1)
    assert play.heartbeat(absent.answer.member_id) is Error.UNKNOWN_MEMBER_ID
