"""Heartbeat and OffsetCommit: cases 44, 46 and 49."""

import pytest

from reference_coordinator.errors import Error
from reference_coordinator.state import State
from tests.reference_coordinator.playbook import INITIAL_DELAY_MS, Playbook, statics


def test_heartbeat_unknown_group():
    """A group nobody knows."""
    assert Playbook().heartbeat("m", generation=-1) is Error.UNKNOWN_MEMBER_ID


def test_heartbeat_dead_group():
    """A Dead group, whoever asks."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.force(State.DEAD)
    assert play.heartbeat(member, instance="I1") is Error.COORDINATOR_NOT_AVAILABLE
    assert play.heartbeat("unknown", generation=9) is Error.COORDINATOR_NOT_AVAILABLE


def test_heartbeat_empty_group():
    """Nobody is a member of an Empty group."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.leave((member, "I1"))
    assert play.state is State.EMPTY
    assert play.heartbeat(member) is Error.UNKNOWN_MEMBER_ID
    assert play.heartbeat(member, instance="I1") is Error.UNKNOWN_MEMBER_ID


def test_heartbeat_unknown_consumer_existing_group():
    """The ids are looked at before the generation."""
    play = Playbook()
    statics(play, "I1")
    assert play.heartbeat("unknown", generation=9) is Error.UNKNOWN_MEMBER_ID


def test_heartbeat_rebalance_in_progress():
    """In CompletingRebalance all is well (since 2.6.1)."""
    play = Playbook()
    play.join(instance="I1")
    play.after(INITIAL_DELAY_MS)
    assert play.state is State.COMPLETING_REBALANCE
    assert play.heartbeat("I1-1", instance="I1") is Error.NONE


@pytest.mark.parametrize("generation", [-1, 0, 2])
def test_heartbeat_illegal_generation(generation):
    """Only the running generation will do."""
    play = Playbook()
    (member,) = statics(play, "I1")
    assert play.heartbeat(member, generation=generation) is Error.ILLEGAL_GENERATION


def test_heartbeat_during_preparing_rebalance():
    """The members are told to join again, unless their generation is wrong anyway."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.join(leader, instance="L")
    assert play.heartbeat(follower, instance="F") is Error.REBALANCE_IN_PROGRESS
    assert play.heartbeat(follower, generation=9) is Error.ILLEGAL_GENERATION


@pytest.mark.parametrize("member_id", ["", "anyone"])
@pytest.mark.parametrize("instance", [None, "I9"])
def test_manual_commit_offset_should_not_validate_member_id_and_instance_id(member_id, instance):
    """Case 44 (KAFKA-14201, 3.3): without a generation an Empty group takes it from anybody."""
    play = Playbook()
    assert play.commit(member_id, instance=instance, generation=-1) is Error.NONE
    (member,) = statics(play, "I1")
    play.leave((member, "I1"))
    assert play.commit(member_id, instance=instance, generation=-1) is Error.NONE


def test_manual_commit_to_a_group_with_members():
    """There an instance is checked as ever, and nobody is nobody."""
    play = Playbook()
    (member,) = statics(play, "I1")
    assert play.commit("", instance="I1", generation=-1) is Error.FENCED_INSTANCE_ID
    assert play.commit("", generation=-1) is Error.UNKNOWN_MEMBER_ID
    assert play.commit("unknown", generation=-1) is Error.UNKNOWN_MEMBER_ID
    assert play.commit(member, instance="I1", generation=-1) is Error.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    ("version", "error"),
    [(8, Error.ILLEGAL_GENERATION), (9, Error.GROUP_ID_NOT_FOUND), (10, Error.GROUP_ID_NOT_FOUND)],
)
def test_commit_to_unknown_group(version, error):
    """Facts 3.3 and 5.3 (OffsetCommitRequestTest): v9 has an error of its own for it."""
    assert Playbook().commit("m", generation=0, version=version) is error


def test_commit_makes_the_group_known():
    """A manual commit creates the group: what follows is checked against its members."""
    play = Playbook()
    play.commit(generation=-1)
    assert play.commit("m", generation=0) is Error.UNKNOWN_MEMBER_ID


def test_commit_offset_in_completing_rebalance():
    """The member has to sync first; its ids and generation are checked before that."""
    play = Playbook()
    play.join(instance="I1")
    play.after(INITIAL_DELAY_MS)
    assert play.commit("I1-1", instance="I1") is Error.REBALANCE_IN_PROGRESS
    assert play.commit("unknown") is Error.UNKNOWN_MEMBER_ID
    assert play.commit("unknown", instance="I1") is Error.FENCED_INSTANCE_ID
    assert play.commit("I1-1", instance="I1", generation=9) is Error.ILLEGAL_GENERATION


def test_commit_offset_in_preparing_rebalance():
    """Members of the old generation may still commit while the new one gathers."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.join(leader, instance="L")
    assert play.state is State.PREPARING_REBALANCE
    assert play.commit(follower, instance="F") is Error.NONE


def test_commit_offset_to_dead_group():
    """Facts 5.4: Dead comes before all else."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.force(State.DEAD)
    assert play.commit(member, instance="I1") is Error.COORDINATOR_NOT_AVAILABLE
    assert play.commit(generation=-1) is Error.COORDINATOR_NOT_AVAILABLE


def test_heartbeat_and_commit_keep_a_member_alive_in_preparing_rebalance():
    """OffsetCommit restarts the session in Stable and PreparingRebalance alone (Java)."""
    play = Playbook()
    play.join(instance="I1")
    play.after(INITIAL_DELAY_MS)
    session = play.member("I1").session_timeout_ms
    play.after(session - 1)
    assert play.commit("I1-1") is Error.REBALANCE_IN_PROGRESS
    play.after(1)
    assert play.state is State.EMPTY
