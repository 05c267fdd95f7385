"""What KIP-345 promises and Kafka does not keep: each rule alone, and the profile."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.events import TimerKind
from reference_coordinator.classic.releases import KIP_345, NEWEST
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    statics,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, under

pytestmark = EVERY_RELEASE

FULL = JoinResponse(Error.GROUP_MAX_SIZE_REACHED, member_id="")

kept = under([(KIP_345, {"kept": True}), (NEWEST, {"kept": False})])
"""Run a play under the proposal, where its promise is kept, and as the newest release has it."""


@kept
def test_instance_keeps_its_place(kept):
    """A restart needs no room: neither in Stable nor before, nor does it make room for others."""
    play = Playbook(max_size=2)
    _, follower = statics(play, "I1", "I2")
    back = play.join(instance="I2")
    if not kept:
        assert back.answer == FULL
        return
    assert (back.error, back.answer.generation) == (Error.NONE, 1)
    assert play.rebalances == [Reason.NEW_MEMBER]
    assert play.join(instance="I3").answer == FULL
    assert play.heartbeat(follower, instance="I2") is Error.FENCED_INSTANCE_ID


@kept
def test_instance_keeps_its_place_while_all_wait(kept):
    """A static rejoin replaces the member that is waiting under the same instance id."""
    play = Playbook(max_size=2)
    first, second = play.join(instance="I1"), play.join(instance="I2")
    back = play.join(instance="I2")
    assert (second.response is not None) == kept
    if kept:
        play.after(2 * INITIAL_DELAY_MS)
        assert (first.answer.generation, back.answer.generation) == (1, 1)
    else:
        assert back.answer == FULL


@kept
def test_replaced_id_stays_pending_sync(kept):
    """A follower that died between join and sync costs nothing once it is back."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    play.sync("L-1")
    back = play.join(instance="F")
    assert play.group.pending_syncs == (frozenset() if kept else {"F-1"})
    assert (play.armed(TimerKind.SYNC) is None) == kept
    play.sync(back.answer.member_id, instance="F")
    play.after(REBALANCE_MS, alive=["L-1", "F-2"])
    assert play.rebalances[1:] == ([] if kept else [Reason.PENDING_SYNC])


@kept
def test_sessions_wait_for_clients(kept):
    """A broker that starts takes up its groups, and who could not reach it yet is no less alive."""
    play = Playbook()
    statics(play, "I1", "I2")
    play.start_loading()
    play.load(play.records[-1], requests_disabled=True)
    play.after(2 * SESSION_MS)
    assert play.rebalances[1:] == ([] if kept else [Reason.SESSION_EXPIRED])
    if kept:
        play.open()
        play.after(SESSION_MS - 1)
        assert play.state is State.STABLE
        play.after(1)
        assert play.state is State.EMPTY


@kept
def test_sessions_begin_with_the_load_where_clients_can_tell(kept):
    """That the broker opens later, or has long done so, changes nothing."""
    play = Playbook()
    statics(play, "I1", "I2")
    play.start_loading()
    play.load(play.records[-1])
    play.after(SESSION_MS / 2)
    play.open()
    play.after(SESSION_MS / 2)
    assert play.state is State.EMPTY


@kept
def test_sync_timer_spares_statics(kept):
    """An absent member has the time that its session gives it, and no less."""
    session_ms = 3 * REBALANCE_MS
    play = Playbook()
    leader, follower = statics(play, "L", "F", session_ms=session_ms)
    play.join(leader, instance="L", session_ms=session_ms)
    play.after(REBALANCE_MS)
    assert (play.state, play.generation) == (State.COMPLETING_REBALANCE, 2)
    play.sync(leader)
    assert play.state is State.STABLE
    play.after(REBALANCE_MS, alive=[leader])
    assert play.rebalances[2:] == ([] if kept else [Reason.PENDING_SYNC])
    assert (follower in play.member_ids) == kept
    if kept:
        play.after(session_ms - REBALANCE_MS, alive=[leader])
        assert play.rebalances[2:] == [Reason.SESSION_EXPIRED]


@kept
def test_sync_timer_takes_dynamic_members_all_the_same(kept):
    """The rule of KAFKA-12890 is theirs; a static member that is late with them stays."""
    play = Playbook()
    leader = play.join_dynamic("c")
    play.join(instance="F")
    late = play.join_dynamic("d")
    play.after(3 * INITIAL_DELAY_MS)
    assert play.sync(leader.answer.member_id).error is Error.NONE
    play.after(REBALANCE_MS, alive=[leader.answer.member_id, late.answer.member_id, "F-1"])
    assert play.rebalances[1:] == [Reason.PENDING_SYNC]
    assert play.member_ids == {leader.answer.member_id} | ({"F-1"} if kept else set())


@kept
@pytest.mark.parametrize("completing", [True, False])
def test_every_return_is_stored(kept, completing):
    """The coordinator may die at any time after: the next one knows the live member.

    Its generation, the last that was stored, is another; so the member joins again.
    """
    play = Playbook()
    leader, follower, other = statics(play, "L", "F", "G")
    play.join(leader, instance="L")
    back = play.join(instance="F")
    assert back.pending
    if completing:
        play.join(other, instance="G")
        assert back.answer.generation == 2
    live = play.id_of("F")
    play.crash()
    assert play.id_of("F") == (live if kept else follower)
    assert (play.state, play.generation) == (State.STABLE, 1)
    error = Error.ILLEGAL_GENERATION if kept else Error.FENCED_INSTANCE_ID
    assert play.sync(live, instance="F", generation=2).error is error
    assert play.heartbeat(live, instance="F", generation=2) is error
    rejoin = play.join(live, instance="F", protocols=("range",))
    assert rejoin.error is (Error.NONE if kept else Error.FENCED_INSTANCE_ID)


@kept
def test_a_leader_s_return_is_stored_as_the_leader_s(kept):
    """The one who leads in the record stays the one who leads."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    play.join(follower, instance="F", subscription="payments")
    assert play.state is State.PREPARING_REBALANCE
    play.join(instance="L")
    play.crash()
    assert play.leader == play.id_of("L") == ("L-2" if kept else "L-1")


@kept
def test_a_newcomer_s_return_is_not_stored_before_it_is(kept):
    """No record knows it yet, so there is nothing to write anew."""
    play = Playbook()
    statics(play, "L")
    play.join(instance="N")
    stored = len(play.records)
    play.join(instance="N")
    assert len(play.records) == stored
    fresh = Playbook()
    fresh.join(instance="N")
    stored = len(fresh.records)
    fresh.join(instance="N")
    assert len(fresh.records) == stored


@kept
def test_changed_subscription_rebalances(kept):
    """KAFKA-12759: with the same protocol's name and other topics somebody has to assign anew."""
    play = Playbook()
    statics(play, "L", "F")
    back = play.join(instance="F", subscription="orders,payments")
    assert back.pending == kept
    assert play.rebalances[1:] == ([Reason.MEMBER_METADATA] if kept else [])
    if kept:
        leading = play.join("L-1", instance="L")
        listed = {(member, metadata) for member, _, metadata in leading.answer.members}
        assert listed == {("L-1", "range:orders"), ("F-2", "range:orders,payments")}
