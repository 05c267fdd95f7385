"""Static members join, and fence each other."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason, SyncResponse
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    Playbook,
    statics,
)


@case("staticMemberJoinAsFirstMember")
def test_static_member_join_as_first_member():
    """A static member is in at its first request, without MEMBER_ID_REQUIRED."""
    play = Playbook()
    first = play.join(instance="I1")
    assert first.pending
    play.after(INITIAL_DELAY_MS)
    assert first.answer == JoinResponse(
        Error.NONE,
        member_id="I1-1",
        generation=1,
        protocol_type="consumer",
        protocol="range",
        leader="I1-1",
        members=frozenset({("I1-1", "I1", "range:orders")}),
    )
    assert play.rebalances == [Reason.NEW_MEMBER]


@case("staticMemberReJoinWithExplicitUnknownMemberId")
def test_static_member_re_join_with_explicit_unknown_member_id():
    """A known instance with an id that nobody has is fenced."""
    play = Playbook()
    statics(play, "I1")
    unknown = play.join("unknown_member", instance="I1")
    assert unknown.answer == JoinResponse(Error.FENCED_INSTANCE_ID, "unknown_member")
    assert play.member_ids == {"I1-1"}


@case("staticMemberFenceDuplicateRejoinedFollower")
def test_static_member_fence_duplicate_rejoined_follower():
    """PreparingRebalance; the duplicate fences the follower's pending JoinGroup."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    dynamic = play.join_dynamic("d")
    old = play.join(follower, instance="F")
    assert old.pending
    duplicate = play.join(instance="F")
    assert old.answer == JoinResponse(Error.FENCED_INSTANCE_ID, follower)
    assert duplicate.pending
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.NEW_MEMBER]
    play.join(leader, instance="L")
    assert (duplicate.error, duplicate.answer.generation) == (Error.NONE, 2)
    assert play.member_ids == {leader, "F-2", dynamic.answer.member_id}


@case(
    "staticMemberFenceDuplicateSyncingFollowerAfterMemberIdChanged",
    generation={"2.4": 2, "2.5": 3},
    leader={"2.4": "L-1", "2.5": "F-2"},
)
def test_static_member_fence_duplicate_syncing_follower_after_member_id_changed(generation, leader):
    """CompletingRebalance; the pending SyncGroup is fenced, and the group starts over.

    The silent leader stays a member, but leads no longer. In 2.4 the duplicate was answered with
    the generation under way.
    """
    play = Playbook()
    old_leader, follower = statics(play, "L", "F", session_ms=100_000)
    rejoin = play.join(old_leader, instance="L", session_ms=100_000)
    play.join(follower, instance="F", session_ms=100_000)
    assert (rejoin.answer.generation, play.state) == (2, State.COMPLETING_REBALANCE)
    old = play.sync(follower, instance="F")
    assert old.pending
    duplicate = play.join(instance="F", session_ms=100_000, version=5)
    assert old.answer == SyncResponse(Error.FENCED_INSTANCE_ID)
    rebalances = generation == 3
    assert duplicate.pending == rebalances
    assert (play.state is State.PREPARING_REBALANCE) == rebalances
    assert (play.rebalances[-1] is Reason.STATIC_REPLACED) == rebalances
    if rebalances:
        play.after(REBALANCE_MS)
    assert (duplicate.error, duplicate.answer.generation) == (Error.NONE, generation)
    assert (duplicate.answer.member_id, duplicate.answer.leader) == ("F-2", leader)
    listed = {m for m, _, _ in duplicate.answer.members}
    assert listed == ({old_leader, "F-2"} if rebalances else set())
    assert play.state is State.COMPLETING_REBALANCE


@case("staticMemberFenceDuplicateRejoiningFollowerAfterMemberIdChanged")
def test_static_member_fence_duplicate_rejoining_follower_after_member_id_changed():
    """PreparingRebalance; the duplicate was first, so the old id is the one fenced."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    rejoin = play.join(leader, instance="L")
    assert rejoin.pending
    duplicate = play.join(instance="F")
    old = play.join(follower, instance="F")
    assert old.answer == JoinResponse(Error.FENCED_INSTANCE_ID, follower, generation=-1)
    assert (rejoin.answer.generation, rejoin.answer.leader) == (2, leader)
    assert {i for _, i, _ in rejoin.answer.members} == {"L", "F"}
    assert (duplicate.error, duplicate.answer.generation) == (Error.NONE, 2)
    assert duplicate.answer.member_id == play.id_of("F") == "F-2"
    assert play.state is State.COMPLETING_REBALANCE


@case("staticMemberRejoinWithKnownMemberId")
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


@case("shouldGetDifferentStaticMemberIdAfterEachRejoin")
def test_should_get_different_static_member_id_after_each_rejoin():
    """Each return of an instance gives it an id of its own, `<instance>-...`."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    ids = [leader]
    for _ in range(5):
        ids.append(play.join(instance="L").answer.member_id)
        assert play.id_of("L") == ids[-1]
    assert len(set(ids)) == 6
    assert all(member_id.startswith("L-") for member_id in ids)
    assert play.rebalances == [Reason.NEW_MEMBER]
    assert play.generation == 1


@case("staticMemberJoinWithUnknownInstanceIdAndKnownMemberId")
def test_static_member_join_with_unknown_instance_id_and_known_member_id():
    """The instance is looked at first, and nobody knows it."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    call = play.join(leader, instance="unknown_instance")
    assert call.answer == JoinResponse(Error.UNKNOWN_MEMBER_ID, leader)


@case("staticMemberReJoinWithIllegalStateAsUnknownMember")
def test_static_member_re_join_with_illegal_state_as_unknown_member():
    """An Empty group that still knows an instance cannot be: an exception inside, -1 outside."""
    play = Playbook()
    statics(play, "L", "F")
    play.force(State.EMPTY)
    back = play.join(instance="F", version=5)
    assert back.answer == JoinResponse(Error.UNKNOWN_SERVER_ERROR)


@case("testJoinGroupExistingPendingMemberWithGroupInstanceIdThrowsException")
def test_join_group_existing_pending_member_with_group_instance_id_throws_exception():
    """A pending member is dynamic; Kafka's IllegalStateException is error -1 on the wire."""
    play = Playbook()
    pending = play.join(client="c").answer.member_id
    call = play.join(pending, instance="I1", version=5)
    assert call.answer == JoinResponse(Error.UNKNOWN_SERVER_ERROR)
    assert play.state is State.EMPTY


@case("testJoinGroupReplaceStaticMember")
def test_join_group_replace_static_member():
    """The first join waits in the initial delay; the second fences and outlives it."""
    play = Playbook()
    first = play.join(instance="I1")
    second = play.join(instance="I1")
    assert first.answer == JoinResponse(Error.FENCED_INSTANCE_ID, "I1-1")
    assert second.pending
    play.after(INITIAL_DELAY_MS)
    assert (second.error, second.answer.generation) == (Error.NONE, 1)
    assert play.member_ids == {"I1-2"}


@case(
    "testReplaceStaticMemberInCompletingRebalanceStateTriggersRebalance",
    generation={"2.4": 1, "2.5": 2},
    leader={"2.4": "I1-1", "2.5": "I1-2"},
    rebalances={"2.4": [], "2.5": [Reason.STATIC_REPLACED]},
)
def test_replace_static_member_in_completing_rebalance_state_triggers_rebalance(
    generation, leader, rebalances
):
    """Alone in CompletingRebalance, who returns starts the next generation at once, since 2.5."""
    play = Playbook()
    play.join(instance="I1")
    play.after(INITIAL_DELAY_MS)
    assert play.state is State.COMPLETING_REBALANCE
    back = play.join(instance="I1", version=5)
    assert (back.error, back.answer.generation) == (Error.NONE, generation)
    assert (back.answer.member_id, back.answer.leader) == ("I1-2", leader)
    assert play.rebalances == [Reason.NEW_MEMBER, *rebalances]
    assert (play.state, play.member_ids) == (State.COMPLETING_REBALANCE, {"I1-2"})


@pytest.mark.parametrize("instance", ["L", "F"])
@case(
    "staticMemberRejoinAsFollowerWithMismatchedMemberId",
    "staticMemberRejoinAsLeaderWithMismatchedMemberId",
)
def test_static_member_rejoin_as_follower_with_mismatched_member_id(instance):
    """One member's id under another's instance is fenced, with either as leader."""
    play = Playbook()
    statics(play, "L", "F")
    other_id = play.id_of("F" if instance == "L" else "L")
    call = play.join(other_id, instance=instance)
    assert call.answer == JoinResponse(Error.FENCED_INSTANCE_ID, other_id)
    assert play.rebalances == [Reason.NEW_MEMBER]


@case(
    "staticMemberSyncAsLeaderWithInvalidMemberId",
    "staticMemberHeartbeatLeaderWithInvalidMemberId",
    "staticMemberCommitOffsetWithInvalidMemberId",
)
def test_an_invalid_member_id_under_a_known_instance():
    """It is fenced; without an instance, as in older versions, a static member's id is enough."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    assert play.sync("invalid", instance="L").error is Error.FENCED_INSTANCE_ID
    assert play.heartbeat("invalid", instance="L") is Error.FENCED_INSTANCE_ID
    assert play.commit("invalid", instance="L") is Error.FENCED_INSTANCE_ID
    assert play.sync(leader).answer.assignment == f"work of {leader}"
    for instance in (None, "L"):
        assert play.heartbeat(leader, instance=instance) is Error.NONE
        assert play.commit(leader, instance=instance) is Error.NONE
