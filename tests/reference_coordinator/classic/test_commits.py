"""OffsetCommit and TxnOffsetCommit."""

from functools import partial

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    Playbook,
    completing,
    statics,
)
from tests.reference_coordinator.classic.releases import (
    EVERY_RELEASE,
    UNDER_ALL,
    by_coordinator,
    by_rule,
)

pytestmark = EVERY_RELEASE


@pytest.mark.parametrize(("member_id", "instance"), [("", "instance-id"), ("unknown", None)])
@case(
    "testManualCommitOffsetShouldNotValidateMemberIdAndInstanceId",
    error={"2.4": Error.NONE, "3.0": Error.UNKNOWN_MEMBER_ID, "3.3.0": Error.NONE},
)
def test_manual_commit_offset_should_not_validate_member_id_and_instance_id(
    error, member_id, instance
):
    """Without a generation an Empty group takes a commit from anybody; 3.0 to 3.2 checked the ids.

    Where it has members, an instance is checked as ever.
    """
    play = Playbook()
    assert play.commit(member_id, instance=instance, generation=-1) is error
    (member,) = statics(play, "I1")
    assert play.commit("", instance="I1", generation=-1) is Error.FENCED_INSTANCE_ID
    play.leave((member, "I1"))
    assert play.state is State.EMPTY
    assert play.commit(member_id, instance=instance, generation=-1) is error
    assert play.commit(generation=-1) is Error.NONE


@case(
    "testCommitOffsetInCompletingRebalance",
    "testCommitOffsetInCompletingRebalanceFromUnknownMemberId",
    "testCommitOffsetInCompletingRebalanceFromIllegalGeneration",
)
def test_commit_offset_in_completing_rebalance():
    """The member has to sync first; its id and generation are checked before."""
    play = Playbook()
    member_id = completing(play)
    assert play.commit("") is Error.UNKNOWN_MEMBER_ID
    assert play.commit("unknown") is Error.UNKNOWN_MEMBER_ID
    assert play.commit(member_id, generation=2) is Error.ILLEGAL_GENERATION
    assert play.commit(member_id) is Error.REBALANCE_IN_PROGRESS


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


@UNDER_ALL
def test_a_refused_commit_without_a_generation_makes_the_group_known_too():
    """The group is created first: a later commit with a generation is UNKNOWN_MEMBER_ID."""
    play = Playbook()
    assert play.commit("m", generation=0, version=8) is Error.ILLEGAL_GENERATION
    play.commit("m", generation=-1, version=8)
    assert play.commit("m", generation=0, version=8) is Error.UNKNOWN_MEMBER_ID


@by_rule(
    "transaction_creates_group",
    "error",
    {True: Error.UNKNOWN_MEMBER_ID, False: Error.ILLEGAL_GENERATION},
    among=lambda profile: profile.transaction_is_checked_as_a_whole,
)
def test_transaction_creates_group(error):
    """KIP-447: a TxnOffsetCommit with a generation, to a group nobody knows."""
    play = Playbook()
    assert play.commit("m", generation=1, version=3, transactional=True) is error
    assert play.group.exists == (error is Error.UNKNOWN_MEMBER_ID)
    assert play.commit(generation=-1, version=2, transactional=True) is Error.NONE


@by_rule(
    "transaction_to_unknown_group_v6",
    "error",
    {
        Error.GROUP_ID_NOT_FOUND: Error.GROUP_ID_NOT_FOUND,
        Error.ILLEGAL_GENERATION: Error.ILLEGAL_GENERATION,
    },
    among=lambda profile: not profile.transaction_creates_group,
)
def test_transaction_to_unknown_group_v6(error):
    """KIP-1319: a transaction hears what an OffsetCommit v9 hears, from v6 on."""
    play = Playbook()
    assert play.commit("m", generation=1, version=5, transactional=True) is Error.ILLEGAL_GENERATION
    assert play.commit("m", generation=1, version=6, transactional=True) is error
    assert not play.group.exists
    assert play.commit(generation=-1, version=6, transactional=True) is Error.NONE


@case(
    "testTxnCommitOffsetWithFencedInstanceId",
    "testTxnCommitOffsetWithInvalidMemberId",
    "testTxnCommitOffsetWithKnownMemberId",
    "testTxnCommitOffsetWithIllegalGeneration",
    "testTxnCommitOffsetWithLegalGeneration",
    no_generation={"2.4": Error.NONE, "3.0": Error.ILLEGAL_GENERATION},
    unknown={"2.4": Error.NONE, "3.0": Error.UNKNOWN_MEMBER_ID},
)
def test_transactions_are_checked_as_a_whole(no_generation, unknown):
    """Wrong ids and generations are refused, in CompletingRebalance too.

    What is left out counts since 3.0; old clients name neither and pass.
    """
    play = Playbook()
    play.join(instance="I1")
    play.after(INITIAL_DELAY_MS)
    for state in (State.COMPLETING_REBALANCE, State.STABLE):
        assert play.state is state
        commit = partial(play.commit, version=3, transactional=True)
        assert commit(generation=-1) is Error.NONE
        assert commit("I1-1", instance="I1") is Error.NONE
        assert commit("I1-1", generation=1) is Error.NONE
        assert commit("wrong", instance="I1") is Error.FENCED_INSTANCE_ID
        assert commit("", instance="I1", generation=-1) is Error.FENCED_INSTANCE_ID
        assert commit("wrong", generation=-1) is Error.UNKNOWN_MEMBER_ID
        assert commit("wrong") is Error.UNKNOWN_MEMBER_ID
        assert commit("I1-1", generation=6) is Error.ILLEGAL_GENERATION
        assert commit("I1-1", generation=-1) is no_generation
        assert commit() is unknown
        assert commit("I1-1", instance="nobody") is unknown
        assert play.commit(generation=-1, version=2, transactional=True) is Error.NONE
        play.sync("I1-1")


@UNDER_ALL
def test_transactions_do_not_care_for_the_group_s_state():
    """They keep nobody alive either, and a group without a name has none."""
    play = Playbook()
    play.join(instance="I1")
    play.after(INITIAL_DELAY_MS)
    assert play.state is State.COMPLETING_REBALANCE
    before = dict(play.timers)
    play.after(1)
    assert play.commit("I1-1", version=3, transactional=True) is Error.NONE
    play.force(State.STABLE)
    assert play.commit("I1-1", version=3, transactional=True) is Error.NONE
    assert play.timers == before
    play.force(State.DEAD)
    error = play.commit(generation=-1, transactional=True)
    assert error is Error.COORDINATOR_NOT_AVAILABLE
    nameless = Playbook(group_id="")
    assert nameless.commit(generation=-1, transactional=True) is Error.INVALID_GROUP_ID
