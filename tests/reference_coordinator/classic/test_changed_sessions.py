"""Sessions, timeouts and the pending-sync timer, where a release changed them."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.events import Timer, TimerFired, TimerKind
from reference_coordinator.classic.profiles import NEW_MEMBER_JOIN_TIMEOUT_MS
from reference_coordinator.classic.state import State
from reference_coordinator.replay.expected_lines import expected_lines
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    statics,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, UNDER_ALL, by_rule

pytestmark = EVERY_RELEASE


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


@UNDER_ALL
def test_newcomers_that_sync_have_sessions_always():
    """Its assignment is the first sign of life that counts everywhere."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    play.sync("F-1")
    play.sync("L-1")
    assert play.state is State.STABLE
    assert play.armed(TimerKind.SESSION, "F-1") == SESSION_MS
    play.after(SESSION_MS)
    assert play.state is State.EMPTY


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
    "joins_update_timeouts",
    "session_ms, rebalance_ms",
    {True: (3 * SESSION_MS, 2 * REBALANCE_MS), False: (SESSION_MS, REBALANCE_MS)},
)
@pytest.mark.parametrize("known", [True, False])
def test_joins_update_timeouts(session_ms, rebalance_ms, known):
    """KAFKA-14009 speaks of returns; it holds for known members that join again as well."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    play.join(
        follower if known else "",
        instance="F",
        protocols=("range",),
        session_ms=3 * SESSION_MS,
        rebalance_ms=2 * REBALANCE_MS,
    )
    member = play.member("F")
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (session_ms, rebalance_ms)


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
