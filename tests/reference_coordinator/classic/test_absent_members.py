"""Members that miss a rebalance, or never fetch their assignment."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.events import TimerKind
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    listed,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_rule

pytestmark = EVERY_RELEASE


def stuck(play: Playbook) -> None:
    """Bring a group to where only its silent static leader, L-1, is left of it."""
    session_ms = 2 * REBALANCE_MS
    play.statics("L", "F", session_ms=session_ms)
    dynamic = play.join_dynamic("d", session_ms=session_ms)
    play.after(REBALANCE_MS)
    assert dynamic.answer.leader == dynamic.answer.member_id
    assert (dynamic.answer.generation, len(dynamic.answer.members)) == (2, 3)
    play.leave(("F-1", "F"))
    assert play.state is State.PREPARING_REBALANCE
    play.after(REBALANCE_MS)


@case(
    "groupStuckInRebalanceTimeoutDueToNonjoinedStaticMember",
    "testLeaderFailToRejoinBeforeFinalRebalanceTimeoutWithLongSessionTimeout",
)
def test_group_of_a_silent_leader_is_stuck_until_its_session_ends(play):
    """The dynamic member is dropped, and nobody is there to start generation 3."""
    stuck(play)
    assert play.member_ids == {"L-1"}
    assert (play.state, play.generation) == (State.PREPARING_REBALANCE, 2)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.NEW_MEMBER, Reason.LEAVE]
    play.after(REBALANCE_MS - 1)
    assert play.state is State.PREPARING_REBALANCE
    play.after(1)
    assert (play.state, play.generation, play.member_ids) == (State.EMPTY, 3, set())
    assert play.leader is None
    assert (play.records[-1].generation, play.records[-1].members) == (3, ())


@case("testLeaderRejoinBeforeFinalRebalanceTimeoutWithLongSessionTimeout")
def test_silent_leader_returns_in_time(play):
    """It starts generation 3 alone."""
    stuck(play)
    play.after(REBALANCE_MS / 2)
    back = play.join(instance="L")
    assert (back.error, back.answer.generation, back.answer.leader) == (Error.NONE, 3, "L-2")
    assert (play.state, play.member_ids) == (State.COMPLETING_REBALANCE, {"L-2"})


def test_rebalance_timeout_repeats_while_nobody_joins(play):
    """Seen live: the next timeout counts from the one that ended in nothing."""
    stuck(play)
    newcomer = play.join(instance="N")
    play.after(REBALANCE_MS - 1, alive=["L-1"])
    assert newcomer.pending
    play.after(1)
    assert (newcomer.answer.generation, newcomer.answer.leader) == (3, "N-1")
    assert newcomer.answer.members == listed("L-1", "N-1")


@case("testRebalanceCompletesBeforeMemberJoins")
def test_heartbeats_keep_a_static_member_in_the_group_not_in_the_generation(play):
    play.statics("S")
    dynamic = play.join_dynamic("d")
    for _ in range(4):
        play.after(REBALANCE_MS / 4 - 1)
        assert play.heartbeat("S-1", instance="S", generation=1) is Error.REBALANCE_IN_PROGRESS
    play.after(4)
    present = dynamic.answer.member_id
    assert dynamic.answer.generation == 2
    assert {m for m, _, _ in dynamic.answer.members} == {"S-1", present}
    assert play.heartbeat("S-1", instance="S", generation=1) is Error.ILLEGAL_GENERATION
    play.sync(present, **{present: "all"})
    assert play.state is State.STABLE
    play.after(SESSION_MS - 1, alive=[present])
    assert play.member_ids == {"S-1", present}
    play.after(1)
    assert (play.member_ids, play.rebalances[-1]) == ({present}, Reason.SESSION_EXPIRED)
    assert play.heartbeat(present) is Error.REBALANCE_IN_PROGRESS
    again = play.join(present, client="d")
    assert (again.error, again.answer.generation) == (Error.NONE, 3)
    play.sync(present)
    play.after(5 * SESSION_MS, alive=[present])
    assert (play.state, play.generation) == (State.STABLE, 3)


def test_absent_dynamic_member_is_dropped_at_the_rebalance_timeout(play):
    """Without an instance id, absent means gone; heartbeats do not help."""
    leader, absent = (play.join_dynamic(client) for client in "ab")
    play.after(2 * INITIAL_DELAY_MS)
    play.sync_everyone()
    again = play.join(leader.answer.member_id, client="a")
    play.after(REBALANCE_MS, alive=[absent.answer.member_id])
    assert (again.answer.generation, len(again.answer.members)) == (2, 1)
    assert play.heartbeat(absent.answer.member_id) is Error.UNKNOWN_MEMBER_ID


def joined(play: Playbook, *, static: bool) -> list[str]:
    """Bring a leader and two followers to CompletingRebalance; return their ids."""
    if static:
        return play.completing("a", "b", "c")
    calls = [play.join_dynamic(name) for name in "abc"]
    play.after(2 * INITIAL_DELAY_MS)
    leader = play.leader or ""
    return [leader, *sorted({call.answer.member_id for call in calls} - {leader})]


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
@pytest.mark.parametrize(
    "syncing", [(), ("leader",), ("followers",)], ids=["nobody", "leader", "followers"]
)
@case(
    "testRebalanceTimesOutWhenSyncRequestIsNotReceived",
    "testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromFollowers",
    "testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromLeaders",
    spares_statics={"2.8.1": False, "kip-345": True},
)
def test_who_does_not_sync_is_removed_at_the_rebalance_timeout(
    play, spares_statics, static, syncing
):
    """Heartbeats do not help. A proposal leaves static members to their sessions.

    With the leader's SyncGroup the group is Stable until then; who waits without it, and who is
    left, receives REBALANCE_IN_PROGRESS.
    """
    everyone = joined(play, static=static)
    leader, *followers = everyone
    syncs = [play.sync(m) for m in followers if "followers" in syncing]
    if "leader" in syncing:
        assert play.sync(leader).error is Error.NONE
    before = State.STABLE if "leader" in syncing else State.COMPLETING_REBALANCE
    late = [m for m in everyone if ("leader" if m == leader else "followers") not in syncing]
    play.after(REBALANCE_MS - 1, alive=everyone)
    assert (play.state, play.rebalances) == (before, [Reason.NEW_MEMBER])
    assert [play.heartbeat(m) for m in everyone] == [Error.NONE] * 3
    assert [sync.pending for sync in syncs] == [True] * len(syncs)
    play.after(1)
    if static and spares_statics:
        assert (play.state, play.member_ids) == (before, set(everyone))
        assert [sync.pending for sync in syncs] == [True] * len(syncs)
        return
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.PENDING_SYNC]
    assert play.member_ids == set(everyone) - set(late)
    for member_id in everyone:
        gone = Error.UNKNOWN_MEMBER_ID if member_id in late else Error.REBALANCE_IN_PROGRESS
        assert play.heartbeat(member_id) is gone
    assert (play.state is State.EMPTY) == (late == everyone)
    assert [sync.error for sync in syncs] == [Error.REBALANCE_IN_PROGRESS] * len(syncs)


@by_rule(
    "sync_timer_spares_statics",
    "left",
    {True: {"L-1", "S-1"}, False: {"L-1"}},
    among=lambda profile: profile.pending_sync_timer,
)
def test_who_spares_static_members_removes_a_dynamic_one_beside_them(play, left):
    for instance in "LS":
        play.join(instance=instance)
    dynamic = play.join_dynamic("d")
    play.after(2 * INITIAL_DELAY_MS)
    play.sync("L-1")
    play.after(REBALANCE_MS, alive=["L-1", "S-1", dynamic.answer.member_id])
    assert play.rebalances[1:] == [Reason.PENDING_SYNC]
    assert play.member_ids == left


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
@case("testRebalanceDoesNotTimeOutWhenAllSyncAreReceived")
def test_all_sync(play, static):
    """After its SyncGroup a member is removed only by its session timeout."""
    everyone = joined(play, static=static)
    play.sync_everyone()
    play.after(2 * REBALANCE_MS, alive=everyone)
    assert (play.state, play.generation) == (State.STABLE, 1)
    assert play.rebalances == [Reason.NEW_MEMBER]


def test_pending_sync_timer_does_not_outlive_its_generation(play):
    """A new rebalance stops it; the next generation gets a timer of its own (KAFKA-12890)."""
    for instance in "LF":
        play.join(instance=instance)
    dynamic = play.join_dynamic("d")
    play.after(2 * INITIAL_DELAY_MS)
    member_id = dynamic.answer.member_id
    play.after(REBALANCE_MS - 1, alive=["L-1", "F-1", member_id])
    play.leave((member_id, None))
    play.rejoin("L-1", "F-1")
    assert play.generation == 2
    play.after(REBALANCE_MS - 1, alive=["L-1", "F-1"])
    assert play.member_ids == {"L-1", "F-1"}
    play.after(1)
    assert play.rebalances[-1] is Reason.PENDING_SYNC


@by_rule(
    "pending_sync_timer",
    "rebalances",
    {True: [Reason.PENDING_SYNC], False: []},
    among=lambda profile: not profile.sync_timer_spares_statics,
)
def test_pending_sync_timer(play, rebalances):
    """Heartbeats do not help who never syncs; 2.6.1 to 2.8.0 were stuck with it.

    Before, its heartbeats did not count in CompletingRebalance, so its session ended.
    """
    play.completing("L", "F")
    assert (play.armed(TimerKind.SYNC) is not None) == bool(rebalances)
    play.sync("F-1")
    heard = play.profile.heartbeats_count_while_completing
    play.after(REBALANCE_MS - 1, alive=["L-1"])
    stuck = heard or not play.profile.new_members_have_sessions
    assert play.rebalances[1:] == ([] if stuck else [Reason.SESSION_EXPIRED])
    if heard:
        play.after(1)
        assert play.rebalances[1:] == rebalances
        assert play.member_ids == ({"F-1"} if rebalances else {"L-1", "F-1"})


@by_rule(
    "stale_sync_id_stops_timer",
    "rebalances, left",
    {
        True: ([], {"L-1", "F-2", "H-1"}),
        False: ([Reason.PENDING_SYNC], {"L-1", "F-2"}),
    },
    among=lambda profile: profile.pending_sync_timer and profile.replaced_id_stays_pending_sync,
)
def test_stale_sync_id_stops_timer(play, rebalances, left):
    """A follower dies between join and sync and returns: 2.8.1 fails to find its old id.

    Those before it are not removed either. Seen live on 2.8.1: G-1, F-1, H-1 is the order of
    Scala's set, by their hashes.
    """
    for others, stay in (("LF", {"L-1", "F-2"}), ("LFGH", left)):
        play = Playbook()
        play.completing(*others)
        play.sync("L-1")
        back = play.join(instance="F")
        assert play.sync(back.answer.member_id, instance="F").error is Error.NONE
        play.after(REBALANCE_MS, alive=["L-1", "F-2", "G-1", "H-1"])
        assert (play.rebalances[1:], play.member_ids) == (rebalances, stay)
