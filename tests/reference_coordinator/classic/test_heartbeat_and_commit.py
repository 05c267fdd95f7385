"""Heartbeat and OffsetCommit, beside Kafka's own tests."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import INITIAL_DELAY_MS, Playbook, statics
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_coordinator

pytestmark = EVERY_RELEASE


def test_manual_commit_to_a_group_with_members():
    """There an instance is checked as ever, and nobody is nobody."""
    play = Playbook()
    (member,) = statics(play, "I1")
    assert play.commit("", instance="I1", generation=-1) is Error.FENCED_INSTANCE_ID
    assert play.commit("", generation=-1) is Error.UNKNOWN_MEMBER_ID
    assert play.commit("unknown", generation=-1) is Error.UNKNOWN_MEMBER_ID
    assert play.commit(member, instance="I1", generation=-1) is Error.ILLEGAL_GENERATION


def test_commit_to_unknown_group():
    """A generation presupposes a group (OffsetCommitRequestTest)."""
    assert Playbook().commit("m", generation=0, version=8) is Error.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", [9, 10])
@by_coordinator("error", scala=Error.ILLEGAL_GENERATION, java=Error.GROUP_ID_NOT_FOUND)
def test_commit_to_unknown_group_v9(version, error):
    """Seen live on 3.9.1: Java has the error of KIP-848 for it."""
    assert Playbook().commit("m", generation=0, version=version) is error


def test_commit_makes_the_group_known():
    """A manual commit creates the group: what follows is checked against its members."""
    play = Playbook()
    play.commit(generation=-1)
    assert play.commit("m", generation=0) is Error.UNKNOWN_MEMBER_ID


def test_commit_offset_in_preparing_rebalance():
    """Members of the old generation may still commit while the new one gathers."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.join(leader, instance="L")
    assert play.state is State.PREPARING_REBALANCE
    assert play.commit(follower, instance="F") is Error.NONE


def test_commit_offset_to_dead_group():
    """Dead comes before all else."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.force(State.DEAD)
    assert play.commit(member, instance="I1") is Error.COORDINATOR_NOT_AVAILABLE
    assert play.commit(generation=-1) is Error.COORDINATOR_NOT_AVAILABLE


def test_heartbeat_and_commit_keep_a_member_alive_in_preparing_rebalance():
    """OffsetCommit restarts the session in Stable and PreparingRebalance alone."""
    play = Playbook()
    play.join(instance="I1")
    play.after(INITIAL_DELAY_MS)
    session = play.member("I1").session_timeout_ms
    play.after(session - 1)
    assert play.commit("I1-1") is Error.REBALANCE_IN_PROGRESS
    play.after(1)
    assert play.state is State.EMPTY
