"""Checks of JoinGroup, SyncGroup, Heartbeat, OffsetCommit and TxnOffsetCommit."""

from functools import partial

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason, SyncResponse
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.conformance.checklist import case
from tests.reference_coordinator.classic.playbook import INITIAL_DELAY_MS, Playbook, statics

INCONSISTENT = JoinResponse(Error.INCONSISTENT_GROUP_PROTOCOL)


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


def completing(play: Playbook) -> str:
    """Let one dynamic member join, and tell its id."""
    call = play.join(client="c", version=3)
    play.after(INITIAL_DELAY_MS)
    assert play.state is State.COMPLETING_REBALANCE
    return call.answer.member_id


@case("testTxnCommitOffsetWithFencedInstanceId")
def test_txn_commit_offset_with_fenced_instance_id():
    """A wrong id, or none, under a known instance."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    commit = partial(play.commit, instance="L", version=3, transactional=True)
    assert commit("", generation=-1) is Error.FENCED_INSTANCE_ID
    assert commit("invalid-member", generation=-1) is Error.FENCED_INSTANCE_ID
    assert commit(leader, generation=1) is Error.NONE


@case("testTxnCommitOffsetWithInvalidMemberId")
def test_txn_commit_offset_with_invalid_member_id():
    """An id that nobody has, with a generation or without; old clients name none and pass."""
    play = Playbook()
    completing(play)
    commit = partial(play.commit, version=3, transactional=True)
    assert commit("invalid-member", generation=-1) is Error.UNKNOWN_MEMBER_ID
    assert commit("invalid-member", generation=1) is Error.UNKNOWN_MEMBER_ID
    assert commit(generation=-1) is Error.NONE
    assert play.commit(generation=-1, version=2, transactional=True) is Error.NONE


@case(
    "testTxnCommitOffsetWithKnownMemberId",
    without_generation={"2.5": Error.NONE, "3.0": Error.ILLEGAL_GENERATION},
)
def test_txn_commit_offset_with_known_member_id(without_generation):
    """A request with a member id needs a generation as well, since 3.0."""
    play = Playbook()
    member_id = completing(play)
    commit = partial(play.commit, version=3, transactional=True)
    assert commit(member_id, generation=1) is Error.NONE
    assert commit(member_id, generation=-1) is without_generation


@case("testTxnCommitOffsetWithIllegalGeneration")
def test_txn_commit_offset_with_illegal_generation():
    """Only the running one will do."""
    play = Playbook()
    member_id = completing(play)
    error = play.commit(member_id, generation=6, version=3, transactional=True)
    assert error is Error.ILLEGAL_GENERATION


@case("testTxnCommitOffsetWithLegalGeneration")
def test_txn_commit_offset_with_legal_generation():
    """It will do in CompletingRebalance too."""
    play = Playbook()
    member_id = completing(play)
    assert play.commit(member_id, generation=1, version=3, transactional=True) is Error.NONE


@case("testCommitOffsetInCompletingRebalance")
def test_commit_offset_in_completing_rebalance():
    """The member has to sync first."""
    play = Playbook()
    assert play.commit(completing(play)) is Error.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("member_id", ["", "unknown"])
@case("testCommitOffsetInCompletingRebalanceFromUnknownMemberId")
def test_commit_offset_in_completing_rebalance_from_unknown_member_id(member_id):
    """Its id is checked before."""
    play = Playbook()
    completing(play)
    assert play.commit(member_id) is Error.UNKNOWN_MEMBER_ID


@case("testCommitOffsetInCompletingRebalanceFromIllegalGeneration")
def test_commit_offset_in_completing_rebalance_from_illegal_generation():
    """The generation is checked, too."""
    play = Playbook()
    assert play.commit(completing(play), generation=2) is Error.ILLEGAL_GENERATION


@case("testJoinGroupInconsistentProtocolType")
def test_join_group_inconsistent_protocol_type():
    """A group is of one protocol type."""
    play = Playbook()
    statics(play, "I1")
    assert play.join(client="c", version=3, protocol_type="connect").answer == INCONSISTENT
    assert play.join(instance="I2", protocol_type="connect").answer == INCONSISTENT
    known = play.join("I1-1", instance="I1", protocol_type="connect")
    assert known.answer == JoinResponse(Error.INCONSISTENT_GROUP_PROTOCOL, "I1-1")


@case("testJoinGroupWithEmptyProtocolType")
def test_join_group_with_empty_protocol_type():
    """The first member has to name one, and who joins again as well."""
    play = Playbook()
    assert play.join(client="c", version=3, protocol_type="").answer == INCONSISTENT
    assert play.join(client="c", protocol_type="").answer == INCONSISTENT
    assert play.state is State.EMPTY
    pending = play.join(client="c").answer.member_id
    again = play.join(pending, client="c", protocol_type="")
    assert again.answer == JoinResponse(Error.INCONSISTENT_GROUP_PROTOCOL, pending)


@case("testJoinGroupWithEmptyGroupProtocol")
def test_join_group_with_empty_group_protocol():
    """And at least one protocol."""
    play = Playbook()
    assert play.join(client="c", version=3, protocols=()).answer == INCONSISTENT
    assert play.join(instance="I1", protocols=()).answer == INCONSISTENT
    assert play.state is State.EMPTY


@case("testJoinGroupInconsistentGroupProtocol")
def test_join_group_inconsistent_group_protocol():
    """One protocol at least must be common to all."""
    play = Playbook()
    first = play.join(client="c", version=3, protocols=("range",))
    other = play.join(client="c", version=3, protocols=("roundrobin",))
    assert other.answer == INCONSISTENT
    play.after(INITIAL_DELAY_MS)
    assert first.error is Error.NONE
    assert play.member_ids == {first.answer.member_id}


@case("testJoinGroupSecondJoinInconsistentProtocol")
def test_join_group_second_join_inconsistent_protocol():
    """A rejoin is checked too, against the protocols of the earlier join."""
    play = Playbook()
    pending = play.join(client="c", protocols=("range",)).answer.member_id
    none = play.join(pending, client="c", protocols=())
    assert none.answer == JoinResponse(Error.INCONSISTENT_GROUP_PROTOCOL, pending)
    joined = play.join(pending, client="c", protocols=("range",))
    play.after(INITIAL_DELAY_MS)
    assert joined.error is Error.NONE
    again = play.join(pending, client="c", protocols=("roundrobin",))
    assert again.answer == JoinResponse(Error.INCONSISTENT_GROUP_PROTOCOL, pending)


def synced(protocol_type: str | None, protocol: str | None, version: int) -> list[SyncResponse]:
    """Let a leader and its follower sync; return their answers, all of which must be there."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    sync = partial(play.sync, protocol_type=protocol_type, protocol=protocol, version=version)
    return [sync(member_id).answer for member_id in ("L-1", "F-1")]


@case("testSyncGroupReturnsAnErrorWhenProtocolTypeIsInconsistent")
def test_sync_group_returns_an_error_when_protocol_type_is_inconsistent():
    """The group's own, from SyncGroup v5 on (KIP-559)."""
    refused = SyncResponse(Error.INCONSISTENT_GROUP_PROTOCOL)
    assert synced("whatever", "range", 5) == [refused, refused]


@case("testSyncGroupReturnsAnErrorWhenProtocolNameIsInconsistent")
def test_sync_group_returns_an_error_when_protocol_name_is_inconsistent():
    """The selected one, from SyncGroup v5 on (KIP-559)."""
    refused = SyncResponse(Error.INCONSISTENT_GROUP_PROTOCOL)
    assert synced("consumer", "whatever", 5) == [refused, refused]


@case("testSyncGroupSucceedWhenProtocolTypeAndNameAreNotProvided")
def test_sync_group_succeed_when_protocol_type_and_name_are_not_provided():
    """Before v5 there is no field for either."""
    answers = synced(None, None, 4)
    assert [answer.error for answer in answers] == [Error.NONE] * 2


@case("testSyncGroupSucceedWhenProtocolTypeAndNameAreConsistent")
def test_sync_group_succeed_when_protocol_type_and_name_are_consistent():
    """The answer repeats both."""
    assert synced("consumer", "range", 5) == [SyncResponse(Error.NONE, "consumer", "range")] * 2


@case("testHeartbeatUnknownGroup")
def test_heartbeat_unknown_group():
    """A group nobody knows."""
    assert Playbook().heartbeat("m", generation=-1) is Error.UNKNOWN_MEMBER_ID


@case("testHeartbeatDeadGroup")
def test_heartbeat_dead_group():
    """A Dead group, with any member id."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.force(State.DEAD)
    assert play.heartbeat(member, instance="I1") is Error.COORDINATOR_NOT_AVAILABLE
    assert play.heartbeat("unknown", generation=9) is Error.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("left", [False, True])
@case("testHeartbeatEmptyGroup")
def test_heartbeat_empty_group(left):
    """Nobody is a member of an Empty group, even if it is still there."""
    play = Playbook()
    (member,) = statics(play, "I1")
    if left:
        play.leave((member, "I1"))
    else:
        play.force(State.EMPTY)
    assert play.state is State.EMPTY
    assert play.heartbeat(member) is Error.UNKNOWN_MEMBER_ID


@case("testHeartbeatUnknownConsumerExistingGroup")
def test_heartbeat_unknown_consumer_existing_group():
    """The ids are looked at before the generation."""
    play = Playbook()
    statics(play, "I1")
    assert play.heartbeat("unknown") is Error.UNKNOWN_MEMBER_ID
    assert play.heartbeat("unknown", generation=9) is Error.UNKNOWN_MEMBER_ID


@case(
    "testHeartbeatRebalanceInProgress",
    error={"2.4": Error.REBALANCE_IN_PROGRESS, "2.6.1": Error.NONE},
)
def test_heartbeat_rebalance_in_progress(error):
    """In CompletingRebalance all is well, since 2.6.1."""
    play = Playbook()
    assert play.heartbeat(completing(play)) is error


@pytest.mark.parametrize("generation", [-1, 0, 2])
@case("testHeartbeatIllegalGeneration")
def test_heartbeat_illegal_generation(generation):
    """Only the running generation will do."""
    play = Playbook()
    (member,) = statics(play, "I1")
    assert play.heartbeat(member, generation=generation) is Error.ILLEGAL_GENERATION


@case("testHeartbeatDuringRebalanceCausesRebalanceInProgress")
def test_heartbeat_during_rebalance_causes_rebalance_in_progress():
    """In PreparingRebalance the error is REBALANCE_IN_PROGRESS, unless the generation is wrong."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.join_dynamic("c")
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.NEW_MEMBER]
    assert play.heartbeat(member, instance="I1") is Error.REBALANCE_IN_PROGRESS
    assert play.heartbeat(member, generation=9) is Error.ILLEGAL_GENERATION
