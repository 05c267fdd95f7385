"""Members that miss a rebalance, or never fetch their assignment."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.events import Choices
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    statics,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE

pytestmark = EVERY_RELEASE


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


LONG_MS = 100_000


@case("testStaticMemberFollowerFailToRejoinBeforeRebalanceTimeout")
def test_static_member_follower_fail_to_rejoin_before_rebalance_timeout():
    """At the rebalance timeout the silent follower is still one of three."""
    play = Playbook()
    leader, follower = statics(play, "L", "F", session_ms=LONG_MS)
    newcomer = play.join(instance="N", session_ms=LONG_MS)
    rejoin = play.join(leader, instance="L", session_ms=LONG_MS)
    play.after(REBALANCE_MS - 1)
    assert (rejoin.pending, newcomer.pending) == (True, True)
    play.after(1)
    assert {m for m, _, _ in rejoin.answer.members} == {leader, follower, "N-1"}
    assert newcomer.answer.members == frozenset()
    assert (newcomer.answer.generation, newcomer.answer.leader) == (2, leader)
    assert play.transitions[-1].members == play.transitions[-1].static_members == 3


@pytest.mark.parametrize("picked", ["F-1", "N-1"])
@case("testStaticMemberLeaderFailToRejoinBeforeRebalanceTimeout")
def test_static_member_leader_fail_to_rejoin_before_rebalance_timeout(picked):
    """The silent leader stays a member; either of those who came may lead."""
    play = Playbook()
    leader, follower = statics(play, "L", "F", session_ms=LONG_MS)
    newcomer = play.join(instance="N", session_ms=LONG_MS)
    rejoin = play.join(follower, instance="F", session_ms=LONG_MS)
    play.choices = Choices(leader=picked)
    play.after(REBALANCE_MS)
    assert newcomer.answer.leader == rejoin.answer.leader == play.leader == picked
    assert newcomer.answer.generation == rejoin.answer.generation == 2
    leading = newcomer if picked == "N-1" else rejoin
    assert {m for m, _, _ in leading.answer.members} == {leader, follower, "N-1"}
    assert play.member_ids == {leader, follower, "N-1"}
    assert [b.refused for b in play.bound if b.kind == "leader"] == [""]


@case("groupStuckInRebalanceTimeoutDueToNonjoinedStaticMember")
def test_group_stuck_in_rebalance_timeout_due_to_nonjoined_static_member():
    """The dynamic leader is dropped, and nobody is there to start generation 3."""
    play = Playbook()
    leader = stuck(play)
    assert play.member_ids == {leader}
    assert (play.state, play.generation) == (State.PREPARING_REBALANCE, 2)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.NEW_MEMBER, Reason.LEAVE]


@case("testLeaderFailToRejoinBeforeFinalRebalanceTimeoutWithLongSessionTimeout")
def test_leader_fail_to_rejoin_before_final_rebalance_timeout_with_long_session_timeout():
    """The static leader's session ends, and the group is Empty in generation 3."""
    play = Playbook()
    stuck(play)
    play.after(REBALANCE_MS - 1)
    assert play.state is State.PREPARING_REBALANCE
    play.after(1)
    assert (play.state, play.generation, play.member_ids) == (State.EMPTY, 3, set())
    assert play.leader is None
    assert play.records[-1].generation == 3
    assert play.records[-1].members == ()


@case("testLeaderRejoinBeforeFinalRebalanceTimeoutWithLongSessionTimeout")
def test_leader_rejoin_before_final_rebalance_timeout_with_long_session_timeout():
    """The static leader returns in time and starts generation 3 alone."""
    play = Playbook()
    stuck(play)
    play.after(REBALANCE_MS / 2)
    back = play.join(instance="L")
    assert (back.error, back.answer.generation, back.answer.leader) == (Error.NONE, 3, "L-2")
    assert (play.state, play.member_ids) == (State.COMPLETING_REBALANCE, {"L-2"})


@case("testRebalanceCompletesBeforeMemberJoins")
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
    assert play.heartbeat(present) is Error.REBALANCE_IN_PROGRESS
    again = play.join(present, client="d")
    assert (again.error, again.answer.generation) == (Error.NONE, 3)
    play.sync(present)
    play.after(5 * SESSION_MS, alive=[present])
    assert (play.state, play.generation) == (State.STABLE, 3)


def joined(play: Playbook, *, static: bool) -> list[str]:
    """Bring a leader and two followers to CompletingRebalance; return their ids."""
    names = ("a", "b", "c")
    calls = [play.join(instance=n) if static else play.join_dynamic(n) for n in names]
    play.after(2 * INITIAL_DELAY_MS)
    assert play.state is State.COMPLETING_REBALANCE
    leader = play.leader or ""
    return [leader, *sorted({call.answer.member_id for call in calls} - {leader})]


SPARED = {"2.8.1": False, "kip-345": True}
"""What a proposal that leaves static members to their sessions has otherwise."""


@pytest.mark.parametrize("static", [False, True])
@case("testRebalanceTimesOutWhenSyncRequestIsNotReceived", spares_statics=SPARED)
def test_rebalance_times_out_when_sync_request_is_not_received(spares_statics, static):
    """Nobody syncs: all are removed, and heartbeats do not help."""
    play = Playbook()
    everyone = joined(play, static=static)
    play.after(REBALANCE_MS - 1, alive=everyone)
    assert [play.heartbeat(m) for m in everyone] == [Error.NONE] * 3
    play.after(1)
    if static and spares_statics:
        assert (play.state, play.member_ids) == (State.COMPLETING_REBALANCE, set(everyone))
        return
    assert (play.state, play.generation, play.member_ids) == (State.EMPTY, 2, set())
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.PENDING_SYNC]
    assert [play.heartbeat(m) for m in everyone] == [Error.UNKNOWN_MEMBER_ID] * 3


@pytest.mark.parametrize("static", [False, True])
@case("testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromFollowers", spares_statics=SPARED)
def test_rebalance_times_out_when_sync_request_is_not_received_from_followers(
    spares_statics, static
):
    """The leader alone syncs: the group is Stable until the followers are removed."""
    play = Playbook()
    leader, *followers = joined(play, static=static)
    assert play.sync(leader).error is Error.NONE
    assert play.state is State.STABLE
    play.after(REBALANCE_MS - 1, alive=[leader, *followers])
    assert play.rebalances == [Reason.NEW_MEMBER]
    play.after(1)
    if static and spares_statics:
        assert play.rebalances == [Reason.NEW_MEMBER]
        return
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.PENDING_SYNC]
    assert play.member_ids == {leader}
    assert play.heartbeat(leader) is Error.REBALANCE_IN_PROGRESS
    assert [play.heartbeat(m) for m in followers] == [Error.UNKNOWN_MEMBER_ID] * 2


@pytest.mark.parametrize("static", [False, True])
@case("testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromLeaders", spares_statics=SPARED)
def test_rebalance_times_out_when_sync_request_is_not_received_from_leaders(spares_statics, static):
    """The leader does not sync: it is removed, the others receive REBALANCE_IN_PROGRESS."""
    play = Playbook()
    leader, *followers = joined(play, static=static)
    syncs = [play.sync(follower) for follower in followers]
    play.after(REBALANCE_MS - 1, alive=[leader])
    assert all(sync.pending for sync in syncs)
    play.after(1)
    if static and spares_statics:
        assert all(sync.pending for sync in syncs)
        return
    assert [sync.error for sync in syncs] == [Error.REBALANCE_IN_PROGRESS] * 2
    assert play.member_ids == set(followers)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.PENDING_SYNC]
    assert play.heartbeat(leader) is Error.UNKNOWN_MEMBER_ID
    assert [play.heartbeat(m) for m in followers] == [Error.REBALANCE_IN_PROGRESS] * 2


@pytest.mark.parametrize("static", [False, True])
@case("testRebalanceDoesNotTimeOutWhenAllSyncAreReceived")
def test_rebalance_does_not_time_out_when_all_sync_are_received(static):
    """After its SyncGroup a member is removed only by its session timeout."""
    play = Playbook()
    everyone = joined(play, static=static)
    play.sync_everyone()
    play.after(2 * REBALANCE_MS, alive=everyone)
    assert (play.state, play.generation) == (State.STABLE, 1)
    assert play.rebalances == [Reason.NEW_MEMBER]


def test_silent_leader_cannot_be_picked():
    """Only those who completing may lead."""
    play = Playbook()
    leader, follower = statics(play, "L", "F", session_ms=LONG_MS)
    play.join(instance="N", session_ms=LONG_MS)
    play.join(follower, instance="F", session_ms=LONG_MS)
    play.choices = Choices(leader=leader)
    play.after(REBALANCE_MS)
    assert play.leader in {"F-1", "N-1"}
    assert [b.refused for b in play.bound if b.kind == "leader"] == [leader]


def test_rebalance_timeout_repeats_while_nobody_joins():
    """Seen live: the next timeout counts from the one that ended in nothing."""
    play = Playbook()
    leader = stuck(play)
    newcomer = play.join(instance="N")
    play.after(REBALANCE_MS - 1, alive=[leader])
    assert newcomer.pending
    play.after(1)
    assert (newcomer.answer.generation, newcomer.answer.leader) == (3, "N-1")
    assert {m for m, _, _ in newcomer.answer.members} == {leader, "N-1"}


def completing(play: Playbook) -> tuple[str, str, str]:
    """Bring a leader, a static and a dynamic follower to CompletingRebalance."""
    leader, follower = play.join(instance="L"), play.join(instance="F")
    dynamic = play.join_dynamic("d")
    play.after(2 * INITIAL_DELAY_MS)
    assert play.state is State.COMPLETING_REBALANCE
    return leader.answer.member_id, follower.answer.member_id, dynamic.answer.member_id


def test_pending_sync_timer_does_not_outlive_its_generation():
    """A new rebalance stops it; the next generation gets a timer of its own (KAFKA-12890)."""
    play = Playbook()
    leader, follower, dynamic = completing(play)
    play.after(REBALANCE_MS - 1, alive=[leader, follower, dynamic])
    play.leave((dynamic, None))
    play.join(leader, instance="L")
    play.join(follower, instance="F")
    assert play.generation == 2
    play.after(REBALANCE_MS - 1, alive=[leader, follower])
    assert play.member_ids == {leader, follower}
    play.after(1)
    assert play.rebalances[-1] is Reason.PENDING_SYNC


def test_absent_dynamic_member_is_dropped_at_the_rebalance_timeout():
    """Without an instance id, absent means gone; heartbeats do not help."""
    play = Playbook()
    leader = play.join_dynamic("a")
    absent = play.join_dynamic("b")
    play.after(2 * INITIAL_DELAY_MS)
    play.sync_everyone()
    rejoin = play.join(leader.answer.member_id, client="a")
    play.after(REBALANCE_MS, alive=[absent.answer.member_id])
    assert (rejoin.answer.generation, len(rejoin.answer.members)) == (2, 1)
    assert play.heartbeat(absent.answer.member_id) is Error.UNKNOWN_MEMBER_ID
