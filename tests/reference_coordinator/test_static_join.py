"""Static members join, join twice, and fence each other: cases 1 to 6 and 20 to 24.

Each test bears the name of Kafka's own test of the same case (GroupCoordinatorTest in Scala,
GroupMetadataManagerTest in Java).
"""

import pytest

from reference_coordinator.effects import JoinAnswer, Reason, SyncAnswer
from reference_coordinator.errors import Error
from reference_coordinator.state import State
from tests.reference_coordinator.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    Playbook,
    statics,
)


def test_static_member_join_as_first_member():
    """A static member is in at its first request, without MEMBER_ID_REQUIRED."""
    play = Playbook()
    first = play.join(instance="I1")
    assert first.parked
    play.after(INITIAL_DELAY_MS)
    assert first.answer == JoinAnswer(
        Error.NONE,
        member_id="I1-1",
        generation=1,
        protocol_type="consumer",
        protocol="range",
        leader="I1-1",
        members=frozenset({("I1-1", "I1", "range:orders")}),
    )
    assert play.rebalances == [Reason.NEW_MEMBER]


def test_static_member_re_join_with_explicit_unknown_member_id():
    """A known instance with an id that nobody has is fenced."""
    play = Playbook()
    statics(play, "I1")
    stranger = play.join("unknown_member", instance="I1")
    assert stranger.answer == JoinAnswer(Error.FENCED_INSTANCE_ID, "unknown_member")
    assert play.member_ids == {"I1-1"}


def test_static_member_fence_duplicate_rejoined_follower():
    """PreparingRebalance; the duplicate fences the follower's parked JoinGroup."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    dynamic = play.join_dynamic("d")
    old = play.join(follower, instance="F")
    assert old.parked
    duplicate = play.join(instance="F")
    assert old.answer == JoinAnswer(Error.FENCED_INSTANCE_ID, follower)
    assert duplicate.parked
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.NEW_MEMBER]
    play.join(leader, instance="L")
    assert (duplicate.error, duplicate.answer.generation) == (Error.NONE, 2)
    assert play.member_ids == {leader, "F-2", dynamic.answer.member_id}


def test_static_member_fence_duplicate_syncing_follower_after_member_id_changed():
    """CompletingRebalance; the parked SyncGroup is fenced and the group starts over."""
    play = Playbook()
    leader, follower = statics(play, "L", "F", session_ms=100_000)
    rejoin = play.join(leader, instance="L", session_ms=100_000)
    play.join(follower, instance="F", session_ms=100_000)
    assert (rejoin.answer.generation, play.state) == (2, State.COMPLETING_REBALANCE)
    old = play.sync(follower, instance="F")
    assert old.parked
    duplicate = play.join(instance="F", session_ms=100_000)
    assert old.answer == SyncAnswer(Error.FENCED_INSTANCE_ID)
    assert play.rebalances[-1] is Reason.STATIC_REPLACED
    assert play.state is State.PREPARING_REBALANCE
    play.after(REBALANCE_MS)
    assert (duplicate.error, duplicate.answer.generation) == (Error.NONE, 3)
    assert duplicate.answer.leader == "F-2"
    assert {m for m, _, _ in duplicate.answer.members} == {leader, "F-2"}


def test_static_member_fence_duplicate_rejoining_follower_after_member_id_changed():
    """PreparingRebalance; the duplicate was first, so the old id is the one fenced."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.join_dynamic("d")
    duplicate = play.join(instance="F")
    old = play.join(follower, instance="F")
    assert old.answer == JoinAnswer(Error.FENCED_INSTANCE_ID, follower, generation=-1)
    assert duplicate.parked
    play.join(leader, instance="L")
    assert (duplicate.error, duplicate.answer.generation) == (Error.NONE, 2)
    assert duplicate.answer.member_id == play.id_of("F") == "F-2"


def test_static_member_rejoin_with_known_member_id():
    """CompletingRebalance; a repeated JoinGroup gets the running generation at once."""
    play = Playbook()
    play.join(instance="I1")
    play.after(INITIAL_DELAY_MS)
    again = play.join("I1-1", instance="I1")
    assert (again.error, again.answer.generation) == (Error.NONE, 1)
    assert again.answer.members == frozenset({("I1-1", "I1", "range:orders")})
    assert play.state is State.COMPLETING_REBALANCE
    play.sync_everyone()
    assert play.rebalances == [Reason.NEW_MEMBER]


def test_should_get_different_static_member_id_after_each_rejoin():
    """Each return of an instance gives it an id of its own, `<instance>-...`."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    ids = [follower]
    for _ in range(5):
        ids.append(play.join(instance="F").answer.member_id)
        assert play.id_of("F") == ids[-1]
    assert len(set(ids)) == 6
    assert all(member_id.startswith("F-") for member_id in ids)
    assert play.rebalances == [Reason.NEW_MEMBER]
    assert play.generation == 1


def test_static_member_join_with_unknown_instance_id_and_known_member_id():
    """The instance is looked at first, and nobody knows it."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    call = play.join(leader, instance="unknown_instance")
    assert call.answer == JoinAnswer(Error.UNKNOWN_MEMBER_ID, leader)


def test_join_group_existing_pending_member_with_group_instance_id_throws_exception():
    """A pending member is dynamic; Kafka's IllegalStateException is error -1 on the wire.

    The case's other half, an Empty group that still knows an instance, cannot come about by
    events: `test_properties` holds the machine to that.
    """
    play = Playbook()
    pending = play.join(client="c").answer.member_id
    call = play.join(pending, instance="I1")
    assert call.answer == JoinAnswer(Error.UNKNOWN_SERVER_ERROR)
    assert play.state is State.EMPTY


def test_join_group_replace_static_member():
    """The first join waits in the initial delay; the second fences and outlives it."""
    play = Playbook()
    first = play.join(instance="I1")
    second = play.join(instance="I1")
    assert first.answer == JoinAnswer(Error.FENCED_INSTANCE_ID, "I1-1")
    assert second.parked
    play.after(INITIAL_DELAY_MS)
    assert second.answer.generation == 1
    assert play.member_ids == {"I1-2"}


def test_replace_static_member_in_completing_rebalance_state_triggers_rebalance():
    """Alone in CompletingRebalance, the returning member starts generation 2 at once."""
    play = Playbook()
    play.join(instance="I1")
    play.after(INITIAL_DELAY_MS)
    assert play.state is State.COMPLETING_REBALANCE
    back = play.join(instance="I1")
    assert (back.error, back.answer.generation) == (Error.NONE, 2)
    assert back.answer.leader == back.answer.member_id == "I1-2"
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.STATIC_REPLACED]


@pytest.mark.parametrize("offered", ["", "F-1", "stranger-7"])
def test_a_new_member_id_is_bound_only_to_what_kafka_could_have_drawn(offered):
    """An id is `<instance>-<random>` and in nobody's use; any other offer is refused (1.7.6)."""
    play = Playbook()
    statics(play, "L", "F")
    back = play.join(instance="F", drawn=offered)
    assert play.bound[-1].refused == offered
    assert back.answer.member_id not in {offered, "F-1"}
