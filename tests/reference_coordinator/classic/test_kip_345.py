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
)
from tests.reference_coordinator.classic.releases import under

FULL = JoinResponse(Error.GROUP_MAX_SIZE_REACHED, member_id="")

pytestmark = under([(KIP_345, {"kept": True}), (NEWEST, {"kept": False})])
"""Run a play under the proposal, where its promise is kept, and as the newest release has it."""


def test_instance_keeps_its_place(kept):
    """A restart needs no room, in Stable and while all wait; nor does it make room for others."""
    play = Playbook(max_size=2)
    first, second = play.join(instance="I1"), play.join(instance="I2")
    waiting = play.join(instance="I2")
    assert (second.response is not None) == kept
    assert waiting.response == (None if kept else FULL)
    play.after(2 * INITIAL_DELAY_MS)
    assert (first.answer.generation, play.generation) == (1, 1)
    play.sync_everyone()
    old = play.id_of("I2")
    back = play.join(instance="I2")
    if not kept:
        assert back.answer == FULL
        return
    assert (back.error, back.answer.generation) == (Error.NONE, 1)
    assert play.rebalances == [Reason.NEW_MEMBER]
    assert play.join(instance="I3").answer == FULL
    assert play.heartbeat(old, instance="I2") is Error.FENCED_INSTANCE_ID


def test_replaced_id_stays_pending_sync(play, kept):
    """A follower that died between join and sync costs nothing once it is back."""
    play.completing("L", "F")
    play.sync("L-1")
    back = play.join(instance="F")
    assert play.group.pending_syncs == (frozenset() if kept else {"F-1"})
    assert (play.armed(TimerKind.SYNC) is None) == kept
    play.sync(back.answer.member_id, instance="F")
    play.after(REBALANCE_MS, alive=["L-1", "F-2"])
    assert play.rebalances[1:] == ([] if kept else [Reason.PENDING_SYNC])


def test_sessions_wait_for_clients(play, kept):
    """A broker that starts takes up its groups, and who could not reach it yet is no less alive."""
    play.statics("I1", "I2")
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


def test_sessions_begin_with_the_load_where_clients_can_tell(play, kept):
    """That the broker opens later, or has long done so, changes nothing."""
    play.statics("I1", "I2")
    play.crash()
    play.after(SESSION_MS / 2)
    play.open()
    play.after(SESSION_MS / 2)
    assert play.state is State.EMPTY


def test_sync_timer_spares_statics(play, kept):
    """An absent member has the time that its session gives it, and no less."""
    session_ms = 3 * REBALANCE_MS
    play.statics("L", "F", session_ms=session_ms)
    play.rejoin("L-1", session_ms=session_ms)
    play.after(REBALANCE_MS)
    assert (play.state, play.generation) == (State.COMPLETING_REBALANCE, 2)
    play.sync("L-1")
    assert play.state is State.STABLE
    play.after(REBALANCE_MS, alive=["L-1"])
    assert play.rebalances[2:] == ([] if kept else [Reason.PENDING_SYNC])
    assert ("F-1" in play.member_ids) == kept
    if kept:
        play.after(session_ms - REBALANCE_MS, alive=["L-1"])
        assert play.rebalances[2:] == [Reason.SESSION_EXPIRED]


def test_sync_timer_takes_dynamic_members_all_the_same(play, kept):
    """The rule of KAFKA-12890 is theirs; a static member that is late with them stays."""
    leader = play.join_dynamic("c")
    play.join(instance="F")
    late = play.join_dynamic("d")
    play.after(3 * INITIAL_DELAY_MS)
    leader_id, late_id = leader.answer.member_id, late.answer.member_id
    assert play.sync(leader_id).error is Error.NONE
    play.after(REBALANCE_MS, alive=[leader_id, late_id, "F-1"])
    assert play.rebalances[1:] == [Reason.PENDING_SYNC]
    assert play.member_ids == {leader_id} | ({"F-1"} if kept else set())


@pytest.mark.parametrize("all_are_in", [True, False])
def test_every_return_is_stored(play, kept, all_are_in):
    """The coordinator may die at any time after: the next one knows the live member.

    Its generation, the last that was stored, is another; so the member joins again.
    """
    play.statics("L", "F", "G")
    play.rejoin("L-1")
    back = play.join(instance="F")
    assert back.pending
    if all_are_in:
        play.rejoin("G-1")
        assert back.answer.generation == 2
    live = play.id_of("F")
    play.crash()
    assert play.id_of("F") == (live if kept else "F-1")
    assert (play.state, play.generation) == (State.STABLE, 1)
    error = Error.ILLEGAL_GENERATION if kept else Error.FENCED_INSTANCE_ID
    assert play.sync(live, instance="F", generation=2).error is error
    assert play.heartbeat(live, instance="F", generation=2) is error
    again = play.join(live, instance="F", protocols=("range",))
    assert again.error is (Error.NONE if kept else Error.FENCED_INSTANCE_ID)


def test_a_leader_s_return_is_stored_as_the_leader_s(play, kept):
    """The one who leads in the record stays the one who leads."""
    play.statics("L", "F")
    play.join("F-1", instance="F", subscription="payments")
    assert play.state is State.PREPARING_REBALANCE
    play.join(instance="L")
    play.crash()
    assert play.leader == play.id_of("L") == ("L-2" if kept else "L-1")


@pytest.mark.parametrize("members", [["L"], []], ids=["beside another", "alone"])
def test_a_newcomer_s_return_is_not_stored_before_it_is(play, kept, members):
    """No record knows it yet, so there is nothing to write anew."""
    if members:
        play.statics(*members)
    play.join(instance="N")
    stored = len(play.records)
    play.join(instance="N")
    assert len(play.records) == stored


def test_changed_subscription_rebalances(play, kept):
    """KAFKA-12759: with the same protocol's name and other topics somebody has to assign anew."""
    play.statics("L", "F")
    back = play.join(instance="F", subscription="orders,payments")
    assert back.pending == kept
    assert play.rebalances[1:] == ([Reason.MEMBER_METADATA] if kept else [])
    if kept:
        (leading,) = play.rejoin("L-1")
        members = {(member, metadata) for member, _, metadata in leading.answer.members}
        assert members == {("L-1", "range:orders"), ("F-2", "range:orders,payments")}
