"""Members that miss a rebalance or never fetch their assignment, beside Kafka's own tests."""

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import Reason
from reference_coordinator.classic.events import Choices
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    Playbook,
    statics,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE
from tests.reference_coordinator.classic.situations import stuck

pytestmark = EVERY_RELEASE

LONG_MS = 100_000


def test_silent_leader_cannot_be_picked():
    """Only those who joined may lead."""
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


def joined(play: Playbook) -> tuple[str, str, str]:
    """Bring a leader, a static and a dynamic follower to CompletingRebalance."""
    leader, follower = play.join(instance="L"), play.join(instance="F")
    dynamic = play.join_dynamic("d")
    play.after(2 * INITIAL_DELAY_MS)
    assert play.state is State.COMPLETING_REBALANCE
    return leader.answer.member_id, follower.answer.member_id, dynamic.answer.member_id


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
    """Seen live: kept at the join phase's end, gone one timeout later."""
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
