"""Where released Kafka departs from what KIP-345 promises: seen live.

The profile of a release has to show these just as the release does.
"""

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    Playbook,
    statics,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE

pytestmark = EVERY_RELEASE


def test_stale_pending_sync_id_makes_a_spurious_rebalance():
    """5.2: a follower that dies between join and sync leaves its old id to the sync timer.

    It returns without a rebalance, and is made to pay one rebalance timeout after the join phase.
    """
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    play.sync("L-1")
    assert play.state is State.STABLE
    back = play.join(instance="F")
    assert play.sync(back.answer.member_id, instance="F").error is Error.NONE
    assert play.rebalances == [Reason.NEW_MEMBER]
    play.after(REBALANCE_MS - 1, alive=["L-1", "F-2"])
    assert play.rebalances == [Reason.NEW_MEMBER]
    play.after(1)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.PENDING_SYNC]
    assert play.member_ids == {"L-1", "F-2"}


def test_crash_between_join_and_sync_fences_the_live_member():
    """5.2: a replacement outside Stable is not stored before the leader's assignment is."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.join(leader, instance="L")
    back = play.join(instance="F")
    assert (back.error, back.answer.generation) == (Error.NONE, 2)
    play.crash()
    live = back.answer.member_id
    assert play.id_of("F") == follower
    assert play.sync(live, instance="F").error is Error.FENCED_INSTANCE_ID
    assert play.heartbeat(live, instance="F") is Error.FENCED_INSTANCE_ID
    assert play.join(live, instance="F").error is Error.FENCED_INSTANCE_ID


def test_static_member_returns_with_another_subscription():
    """KAFKA-12759: the protocol's name is the same, so nobody asks for an assignment."""
    play = Playbook()
    statics(play, "L", "F")
    back = play.join(instance="F", subscription="orders,payments")
    assert back.error is Error.NONE
    assert play.rebalances == [Reason.NEW_MEMBER]
    assert dict(play.member("F").protocols)["range"] == "range:orders,payments"


def test_two_processes_of_one_instance_fence_each_other_without_a_rebalance():
    """8.3: an endless ping-pong, and the coordinator's log is silent about it."""
    play = Playbook()
    statics(play, "L", "F")
    old = play.id_of("F")
    for _ in range(4):
        new = play.join(instance="F").answer.member_id
        assert play.heartbeat(old, instance="F") is Error.FENCED_INSTANCE_ID
        old = new
    assert (play.rebalances, play.generation) == ([Reason.NEW_MEMBER], 1)


def test_silent_member_that_wakes_after_its_session_is_unknown_not_fenced():
    """8.3: with the member its mapping went, so the way back is a rebalance."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.after(11_000, alive=[leader])
    play.join(leader, instance="L")
    assert play.heartbeat(follower, instance="F") is Error.UNKNOWN_MEMBER_ID
    assert play.join(instance="F").pending
    assert play.rebalances[-1] is Reason.NEW_MEMBER


def test_rolling_change_of_the_protocol_order_rebalances_once():
    """8.3: each member that returns moves one vote; only the vote that decides rebalances."""
    play = Playbook()
    names = ("a", "b", "c")
    statics(play, *names)
    for name in names:
        back = play.join(instance=name, protocols=("roundrobin", "range"))
        if back.pending:
            for other in set(names) - {name}:
                play.join(play.id_of(other), instance=other, protocols=order_of(play, other))
            play.sync_everyone()
        assert back.error is Error.NONE
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.PROTOCOL_CHANGE]
    assert play.group.protocol == "roundrobin"


def order_of(play: Playbook, instance: str) -> tuple[str, ...]:
    """Return the protocols a member offered last, in its order."""
    return tuple(name for name, _ in play.member(instance).protocols)
