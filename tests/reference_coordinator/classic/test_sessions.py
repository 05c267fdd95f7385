"""Sessions, of members, of newcomers and of ids that are not used yet."""

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
)
from tests.reference_coordinator.classic.releases import (
    EVERY_RELEASE,
    UNDER_ALL,
    by_coordinator,
    by_rule,
)

pytestmark = EVERY_RELEASE

FIVE_MINUTES_MS = 300_000


@case("testNewMemberTimeoutCompletion")
def test_new_member_timeout_completion(play):
    """The five minutes of a new member end with its first join phase; then its session counts."""
    session_ms = FIVE_MINUTES_MS + 5_000
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
def test_new_member_join_expiration(play, static):
    """A new member that waits 5 min fails with UNKNOWN_MEMBER_ID; an old one is not affected."""
    (old,) = play.statics("I1", rebalance_ms=2 * FIVE_MINUTES_MS)
    newcomer = play.join(instance="I2") if static else play.join(client="c", version=3)
    assert [play.group.members[m].is_new for m in play.member_ids - {old}] == [True]
    play.after(FIVE_MINUTES_MS - 1, alive=[old])
    assert newcomer.pending
    play.after(1)
    assert newcomer.answer == JoinResponse(Error.UNKNOWN_MEMBER_ID)
    assert (play.member_ids, play.state) == ({old}, State.PREPARING_REBALANCE)


@pytest.mark.parametrize("synced", [False, True])
@case(
    "testNewMemberFailureAfterJoinGroupCompletion",
    "testNewMemberFailureAfterSyncGroupCompletion",
    newcomer_stays={"2.4.0": False, "2.4.1": True, "2.5.0": False},
)
def test_newcomer_that_falls_silent(play, newcomer_stays, synced):
    """Once its JoinGroup is answered, a newcomer's session is like any other.

    Save for 2.4.1, which begins it with its first sign of life after that.
    """
    leader = play.join(client="a", version=3)
    play.after(INITIAL_DELAY_MS)
    play.sync_everyone()
    newcomer = play.join(client="b", version=3)
    again = play.join(leader.answer.member_id, client="a")
    ids = {leader.answer.member_id, newcomer.answer.member_id}
    assert (again.error, newcomer.error) == (Error.NONE, Error.NONE)
    assert (play.state, play.generation) == (State.COMPLETING_REBALANCE, 2)
    if synced:
        play.sync_everyone()
    play.after(SESSION_MS - 1)
    assert play.member_ids == ids
    play.after(1)
    stays = newcomer_stays and not synced
    assert play.member_ids == ({newcomer.answer.member_id} if stays else set())
    assert (play.state is State.EMPTY) != stays


@case("testHeartbeatExpirationShouldRemovePendingMember")
def test_id_that_is_never_used_is_forgotten(play):
    """After the session of its request."""
    pending = play.join(client="c", session_ms=SESSION_MS).answer.member_id
    play.after(SESSION_MS - 1)
    assert play.group.pending_joins == {pending}
    play.after(1)
    assert play.group.pending_joins == frozenset()
    assert play.join(pending, client="c").answer == JoinResponse(Error.UNKNOWN_MEMBER_ID, pending)
    assert play.transitions == []


@case("testSessionTimeout")
def test_session_timeout(play):
    """With the member its instance goes: the member is unknown, not fenced, and joins as new."""
    play.statics("L", "F")
    play.after(SESSION_MS - 1, alive=["L-1"])
    assert play.member_ids == {"L-1", "F-1"}
    play.after(1)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.SESSION_EXPIRED]
    assert play.transitions[-1].member_id == "F-1"
    assert play.heartbeat("F-1", instance="F") is Error.UNKNOWN_MEMBER_ID
    assert play.heartbeat("L-1", instance="L") is Error.REBALANCE_IN_PROGRESS
    play.rejoin("L-1")
    assert play.join(instance="F").pending
    assert play.rebalances[-1] is Reason.NEW_MEMBER


@case("testHeartbeatMaintainsSession", "testCommitMaintainsSession")
def test_heartbeats_and_commits_maintain_the_session(play):
    """Those that pass the checks."""
    play.statics("I1")
    for sign_of_life in (play.heartbeat, play.commit) * 3:
        play.after(SESSION_MS - 1)
        assert sign_of_life("I1-1", instance="I1") is Error.NONE
    assert play.rebalances == [Reason.NEW_MEMBER]
    play.after(SESSION_MS - 1)
    assert play.heartbeat("I1-1", generation=7) is Error.ILLEGAL_GENERATION
    assert play.commit("I1-1", generation=7) is Error.ILLEGAL_GENERATION
    play.after(1)
    assert play.state is State.EMPTY


@case("testSessionTimeoutDuringRebalance")
def test_session_timeout_during_rebalance(play):
    """In PreparingRebalance heartbeats count; without them the join phase goes on."""
    (first,) = play.statics("I1")
    newcomer = play.join_dynamic("c")
    play.after(SESSION_MS - 1)
    assert play.heartbeat(first, instance="I1") is Error.REBALANCE_IN_PROGRESS
    play.after(SESSION_MS - 1)
    assert newcomer.pending
    play.after(1)
    assert (newcomer.answer.generation, len(newcomer.answer.members)) == (2, 1)
    assert play.heartbeat(first, instance="I1") is Error.UNKNOWN_MEMBER_ID
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.NEW_MEMBER]


@by_coordinator("lives_ms", scala=SESSION_MS, java=1)
def test_sync_in_stable_restarts_session(play, lives_ms):
    """Seen live on 3.9.1: in Scala it does, in Java not."""
    play.statics("I1")
    play.after(SESSION_MS - 1)
    assert play.sync("I1-1", instance="I1").error is Error.NONE
    assert play.armed(TimerKind.SESSION, "I1-1") == lives_ms
    play.after(lives_ms)
    assert play.state is State.EMPTY


def test_two_expiries_make_one_rebalance(play):
    """Seen live: the second member to expire only ends what the first began."""
    play.statics("L", "F")
    play.after(SESSION_MS)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.SESSION_EXPIRED]
    assert (play.state, play.generation) == (State.EMPTY, 2)


def test_waiting_members_do_not_expire(play):
    """A known member lives as long as it waits, and gets a fresh session after."""
    play.statics("L", "F")
    (leading,) = play.rejoin("L-1")
    play.after(REBALANCE_MS - 1, alive=["F-1"])
    assert leading.pending
    play.rejoin("F-1")
    assert leading.answer.generation == 2
    waiting = play.sync("F-1")
    play.after(2 * SESSION_MS, alive=["L-1"])
    assert waiting.pending
    play.sync("L-1")
    assert waiting.error is Error.NONE
    play.after(SESSION_MS - 1, alive=["L-1"])
    assert play.member_ids == {"L-1", "F-1"}
    play.after(1)
    assert play.member_ids == {"L-1"}


def test_replaced_member_of_old_lives_as_long_as_it_waits(play):
    """A member that completed a join phase is not new any more, nor is its static replacement."""
    play.statics("I1", "I2")
    back, again = (play.join(instance="I2", protocols=("roundrobin",)) for _ in range(2))
    assert back.error is Error.FENCED_INSTANCE_ID
    play.after(2 * SESSION_MS, alive=["I1-1"])
    assert again.pending


def test_pending_member_holds_up_the_join_phase(play):
    """A join phase waits for pending members too, until they expire."""
    play.statics("L", "F")
    play.join(client="c", session_ms=SESSION_MS)
    leading, _ = play.rejoin("L-1", "F-1")
    assert leading.pending
    play.after(SESSION_MS)
    assert leading.answer.generation == 2
    assert play.group.pending_joins == frozenset()


@by_rule("new_members_have_sessions", "remaining_ms", {True: SESSION_MS, False: None})
def test_newcomers_have_sessions(play, remaining_ms):
    """On 2.4.1 a member that falls silent right after its first join phase stays for good.

    A heartbeat of one that waits puts the session in the place of the five minutes; on 2.4.1
    nothing.
    """
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    assert play.armed(TimerKind.SESSION, "F-1") == remaining_ms
    assert play.sync("L-1").error is Error.NONE
    assert play.armed(TimerKind.SESSION, "L-1") == SESSION_MS
    play.after(2 * REBALANCE_MS, alive=["L-1"])
    assert ("F-1" in play.member_ids) == (remaining_ms is None)
    other = Playbook()
    other.statics("L")
    other.join(instance="N")
    assert other.armed(TimerKind.SESSION, "N-1") == NEW_MEMBER_JOIN_TIMEOUT_MS
    assert other.heartbeat("N-1") is Error.REBALANCE_IN_PROGRESS
    assert other.armed(TimerKind.SESSION, "N-1") == remaining_ms


@by_rule(
    "replaced_new_member_stays_new",
    "stays",
    {True: False, False: True},
    among=lambda profile: profile.new_members_have_sessions,
)
def test_replaced_newcomer_stays_new(play, stays):
    """Scala counts it as new since 2.4.1, so its session ends while it waits."""
    play.statics("L")
    for _ in range(2):
        play.join(instance="N")
    play.after(SESSION_MS, alive=["L-1"])
    assert play.state is State.PREPARING_REBALANCE
    assert ("N" in play.group.static_ids) == stays


@UNDER_ALL
def test_an_overtaken_pending_timer_still_removes_its_member(play):
    """Seen live on 3.9.1: it looks for the id it was started for, not for the one that replaced it.

    Neither the member nor the group hears of it; `onExpireHeartbeat` with `isPending`.
    """
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


@by_coordinator("runs_on", scala=True, java=False)
def test_forgotten_pending_timer_runs_on(runs_on):
    """Seen live on 3.9.1: one session later Scala logs the removal of the member that left.

    Or was refused. `tryCompleteHeartbeat` of a pending member completes only when it joins.
    """
    for refused in (False, True):
        play = Playbook(max_size=1)
        first, pending = (play.join(client="c").answer.member_id for _ in range(2))
        if refused:
            play.join(first, client="c")
            assert play.join(pending, client="c").error is Error.GROUP_MAX_SIZE_REACHED
        else:
            play.leave((first, None), (pending, None))
        assert (pending in play.group.removed_pending_joins) == runs_on
        assert (play.armed(TimerKind.SESSION, pending) is not None) == runs_on
        before = play.group
        play.after(SESSION_MS)
        fired = TimerFired(play.now_ms, Timer(TimerKind.SESSION, pending))
        lines = [(due.line, due.subject) for due in expected_lines(before, play.group, fired)]
        assert lines == ([("pending_expired", pending)] if runs_on else [])
        assert play.group.removed_pending_joins == frozenset()
        assert refused or play.timers == {}
