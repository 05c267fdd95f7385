"""Sessions, timeouts and the pending-sync timer."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.events import Timer, TimerFired, TimerKind
from reference_coordinator.classic.state import State
from reference_coordinator.replay.expected_lines import expected_lines
from reference_coordinator.timing import NEW_MEMBER_JOIN_TIMEOUT_MS
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    statics,
)
from tests.reference_coordinator.classic.releases import (
    EVERY_RELEASE,
    UNDER_ALL,
    by_coordinator,
    by_rule,
)

pytestmark = EVERY_RELEASE

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


@case("testHeartbeatMaintainsSession", "testCommitMaintainsSession")
def test_heartbeat_maintains_session():
    """Each heartbeat restarts the session, and so does each commit."""
    play = Playbook()
    (member,) = statics(play, "I1")
    for sign_of_life in (play.heartbeat, play.commit) * 3:
        play.after(SESSION_MS - 1)
        assert sign_of_life(member, instance="I1") is Error.NONE
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


def test_refused_heartbeats_and_commits_do_not_maintain_the_session():
    """Only a request that passes the checks is a sign of life."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.after(SESSION_MS - 1)
    assert play.heartbeat(member, generation=7) is Error.ILLEGAL_GENERATION
    assert play.commit(member, generation=7) is Error.ILLEGAL_GENERATION
    play.after(1)
    assert play.state is State.EMPTY


@by_coordinator("lives_ms", scala=SESSION_MS, java=1)
def test_sync_in_stable_restarts_session(lives_ms):
    """Seen live on 3.9.1: in Scala it does, in Java not."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.after(SESSION_MS - 1)
    assert play.sync(member, instance="I1").error is Error.NONE
    assert play.armed(TimerKind.SESSION, member) == lives_ms
    play.after(lives_ms)
    assert play.state is State.EMPTY


def test_two_expiries_make_one_rebalance():
    """Seen live: the second member to expire only ends what the first began."""
    play = Playbook()
    statics(play, "L", "F")
    play.after(SESSION_MS)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.SESSION_EXPIRED]
    assert (play.state, play.generation) == (State.EMPTY, 2)


def test_waiting_members_do_not_expire():
    """A known member lives as long as it waits, and gets a fresh session after."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    rejoin = play.join(leader, instance="L")
    play.after(REBALANCE_MS - 1, alive=[follower])
    assert rejoin.pending
    play.join(follower, instance="F")
    assert rejoin.answer.generation == 2
    waiting = play.sync(follower)
    play.after(2 * SESSION_MS, alive=[leader])
    assert waiting.pending
    play.sync(leader)
    assert waiting.error is Error.NONE
    play.after(SESSION_MS - 1, alive=[leader])
    assert play.member_ids == {leader, follower}
    play.after(1)
    assert play.member_ids == {leader}


def test_replaced_member_of_old_lives_as_long_as_it_waits():
    """A member that completed a join phase is not new any more, nor is its static replacement."""
    play = Playbook()
    old, _ = statics(play, "I1", "I2")
    back = play.join(instance="I2", subscription="payments", protocols=("roundrobin",))
    again = play.join(instance="I2", protocols=("roundrobin",))
    assert back.error is Error.FENCED_INSTANCE_ID
    play.after(2 * SESSION_MS, alive=[old])
    assert again.pending


def test_pending_member_holds_up_the_join_phase():
    """A join phase waits for pending members too, until they expire."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.join(client="c", session_ms=SESSION_MS)
    rejoin = play.join(leader, instance="L")
    play.join(follower, instance="F")
    assert rejoin.pending
    play.after(SESSION_MS)
    assert rejoin.answer.generation == 2
    assert play.group.pending_joins == frozenset()


@by_rule("new_members_have_sessions", "remaining_ms", {True: SESSION_MS, False: None})
def test_newcomers_have_sessions(remaining_ms):
    """On 2.4.1 a member that falls silent right after its first join phase stays for good."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    assert play.state is State.COMPLETING_REBALANCE
    assert play.armed(TimerKind.SESSION, "F-1") == remaining_ms
    assert play.sync("L-1").error is Error.NONE
    assert play.armed(TimerKind.SESSION, "L-1") == SESSION_MS
    play.after(2 * REBALANCE_MS, alive=["L-1"])
    assert ("F-1" in play.member_ids) == (remaining_ms is None)


@by_rule("new_members_have_sessions", "remaining_ms", {True: SESSION_MS, False: None})
def test_heartbeat_of_a_newcomer_that_waits(remaining_ms):
    """A client that knows its id may send one: it puts the session in the place of the 5 minutes.

    On 2.4.1 it puts nothing there.
    """
    play = Playbook()
    statics(play, "L")
    newcomer = play.join_dynamic("c")
    member_id = (play.member_ids - {"L-1"}).pop()
    assert newcomer.pending
    assert play.armed(TimerKind.SESSION, member_id) == NEW_MEMBER_JOIN_TIMEOUT_MS
    assert play.heartbeat(member_id) is Error.REBALANCE_IN_PROGRESS
    assert play.armed(TimerKind.SESSION, member_id) == remaining_ms


@by_rule(
    "replaced_new_member_stays_new",
    "stays",
    {True: False, False: True},
    among=lambda profile: profile.new_members_have_sessions,
)
def test_replaced_newcomer_stays_new(stays):
    """Scala counts it as new since 2.4.1, so its session ends while it waits."""
    play = Playbook()
    (leader,) = statics(play, "L")
    play.join(instance="N")
    play.join(instance="N")
    play.after(SESSION_MS, alive=[leader])
    assert play.state is State.PREPARING_REBALANCE
    assert ("N" in play.group.static_ids) == stays


@by_rule(
    "pending_sync_timer",
    "rebalances",
    {True: [Reason.PENDING_SYNC], False: []},
    among=lambda profile: not profile.sync_timer_spares_statics,
)
def test_pending_sync_timer(rebalances):
    """Heartbeats do not help who never syncs; 2.6.1 to 2.8.0 were stuck with it.

    Before, its heartbeats did not count in CompletingRebalance, so its session ended.
    """
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
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
    "rebalances",
    {True: [], False: [Reason.PENDING_SYNC]},
    among=lambda profile: profile.pending_sync_timer and profile.replaced_id_stays_pending_sync,
)
def test_stale_sync_id_stops_timer(rebalances):
    """A follower dies between join and sync and returns: 2.8.1 fails to find its old id."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    play.sync("L-1")
    back = play.join(instance="F")
    assert play.sync(back.answer.member_id, instance="F").error is Error.NONE
    play.after(REBALANCE_MS, alive=["L-1", "F-2"])
    assert play.rebalances[1:] == rebalances
    assert play.member_ids == {"L-1", "F-2"}


@by_rule(
    "stale_sync_id_stops_timer",
    "left",
    {True: {"L-1", "F-2", "H-1"}, False: {"L-1", "F-2"}},
    among=lambda profile: profile.pending_sync_timer and profile.replaced_id_stays_pending_sync,
)
def test_a_pending_sync_id_before_a_stale_one_is_not_removed(left):
    """Seen live on 2.8.1: G-1, F-1, H-1 is the order of Scala's set, by their hashes."""
    play = Playbook()
    for instance in "LFGH":
        play.join(instance=instance)
    play.after(2 * INITIAL_DELAY_MS)
    play.sync("L-1")
    back = play.join(instance="F")
    assert play.sync(back.answer.member_id, instance="F").error is Error.NONE
    play.after(REBALANCE_MS, alive=["L-1", "F-2", "G-1", "H-1"])
    assert play.member_ids == left
    assert len(play.rebalances) == (1 if "H-1" in left else 2)


@UNDER_ALL
def test_an_overtaken_pending_timer_still_removes_its_member():
    """Seen live on 3.9.1: it looks for the id it was started for, not for the one that replaced it.

    Neither the member nor the group hears of it; `onExpireHeartbeat` with `isPending`.
    """
    play = Playbook()
    joins = play.join_dynamic("c"), play.join_dynamic("d")
    play.after(3 * INITIAL_DELAY_MS)
    leader, late = (join.answer.member_id for join in joins)
    assert (play.state, play.member_ids) == (State.COMPLETING_REBALANCE, {leader, late})
    before, timer = play.group, Timer(TimerKind.SESSION, late)
    fired = TimerFired(play.now_ms, timer, of_pending=True)
    play.take(fired)
    assert (play.state, play.member_ids) == (State.COMPLETING_REBALANCE, {leader})
    assert play.rebalances == [Reason.NEW_MEMBER]
    (due,) = expected_lines(before, play.group, fired)
    assert (due.line, due.subject) == ("pending_expired", late)
