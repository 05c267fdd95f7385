"""Checks of JoinGroup, SyncGroup, Heartbeat and commits, and their order."""

from functools import partial

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, LeaveResponse, Reason, SyncResponse
from reference_coordinator.classic.events import TimerKind
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    SESSION_MS,
    Playbook,
    in_state,
)
from tests.reference_coordinator.classic.releases import (
    EVERY_RELEASE,
    UNDER_ALL,
    by_coordinator,
    by_rule,
)

pytestmark = EVERY_RELEASE

INCONSISTENT = JoinResponse(Error.INCONSISTENT_GROUP_PROTOCOL)
UNKNOWN, FENCED = Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID
REBALANCING, OTHER_GENERATION = Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION
NOBODY = "an instance that nobody has"


@pytest.mark.parametrize(
    "state", [State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE, State.STABLE]
)
@case(
    "testHeartbeatUnknownConsumerExistingGroup",
    "testHeartbeatIllegalGeneration",
    "staticMemberSyncAsLeaderWithInvalidMemberId",
    "staticMemberHeartbeatLeaderWithInvalidMemberId",
    "staticMemberCommitOffsetWithInvalidMemberId",
    "testCommitOffsetInCompletingRebalanceFromUnknownMemberId",
    "testCommitOffsetInCompletingRebalanceFromIllegalGeneration",
    "testValidateOffsetCommit",
    unknown_instance={"2.4": None, "3.0": UNKNOWN},
)
def test_ids_and_then_the_generation_are_checked_before_the_state(state, unknown_instance):
    """Alike for SyncGroup, Heartbeat and OffsetCommit.

    Before 3.0 the member id alone counted where nobody has the instance.
    """
    for member_id, instance, generation, error in (
        ("unknown", None, None, UNKNOWN),
        ("unknown", None, 9, UNKNOWN),
        ("unknown", NOBODY, None, UNKNOWN),
        ("", None, None, UNKNOWN),
        ("unknown", "L", None, FENCED),
        ("F-1", "L", 9, FENCED),
        ("", "L", -1, FENCED),
        ("", None, -1, UNKNOWN),
        ("L-1", "L", -1, OTHER_GENERATION),
        ("L-1", "L", 0, OTHER_GENERATION),
        ("L-1", None, 3, OTHER_GENERATION),
        ("F-1", NOBODY, 0, unknown_instance or OTHER_GENERATION),
    ):
        named = {"instance": instance, "generation": generation}
        play = in_state(state)
        assert play.sync(member_id, **named).error is error
        assert play.heartbeat(member_id, **named) is error
        assert play.commit(member_id, **named) is error


@case(
    "testHeartbeatRebalanceInProgress",
    "testHeartbeatDuringRebalanceCausesRebalanceInProgress",
    "testHeartbeatEmptyGroup",
    "testHeartbeatDeadGroup",
    "testCommitOffsetInCompletingRebalance",
    "testValidateOffsetCommit",
    completing={"2.4": REBALANCING, "2.6.1": Error.NONE},
)
@pytest.mark.parametrize("instance", [None, "F"])
def test_the_state_decides_for_members(instance, completing):
    """With their right ids, which need no instance.

    In PreparingRebalance members of the old generation may still commit; in CompletingRebalance
    they sync first, and may send heartbeats since 2.6.1.
    """
    dead = Error.COORDINATOR_NOT_AVAILABLE
    for state, synced, beaten, committed in (
        (State.EMPTY, UNKNOWN, UNKNOWN, UNKNOWN),
        (State.PREPARING_REBALANCE, REBALANCING, REBALANCING, Error.NONE),
        (State.COMPLETING_REBALANCE, None, completing, REBALANCING),
        (State.STABLE, Error.NONE, Error.NONE, Error.NONE),
        (State.DEAD, dead, dead, dead),
    ):
        play = in_state(state)
        sync = play.sync("F-1", instance=instance)
        if synced is None:
            assert sync.pending
        else:
            work = "work of F-1" if synced is Error.NONE else ""
            assert (sync.error, sync.answer.assignment) == (synced, work)
        assert play.heartbeat("F-1", instance=instance) is beaten
        assert play.commit("F-1", instance=instance) is committed
        if state in {State.EMPTY, State.DEAD}:
            assert play.heartbeat("unknown", generation=9) is beaten
            assert play.sync("unknown", generation=9).error is synced
    assert in_state(State.DEAD).commit(generation=-1) is dead


@case("testHeartbeatUnknownGroup")
def test_group_that_nobody_knows(play):
    """A member id presupposes a group, whatever else is wrong."""
    assert play.heartbeat("m", generation=-1) is UNKNOWN
    assert play.sync("m", generation=1).error is UNKNOWN
    refused = play.join("m", instance="I1", protocols=())
    assert refused.answer == JoinResponse(UNKNOWN, "m")
    nameless = Playbook(group_id="")
    refused = nameless.join("m", session_ms=1)
    assert refused.answer == JoinResponse(Error.INVALID_GROUP_ID, "m")
    assert nameless.sync("m", generation=1).error is Error.INVALID_GROUP_ID
    assert nameless.heartbeat("m", generation=1) is Error.INVALID_GROUP_ID
    assert nameless.leave(("m", None)) == LeaveResponse(Error.INVALID_GROUP_ID)
    assert nameless.commit(generation=-1) is Error.NONE
    error = nameless.commit(generation=-1, transactional=True)
    assert error is Error.INVALID_GROUP_ID


@by_rule("unknown_instance_is_refused", "error", {True: UNKNOWN, False: Error.NONE})
def test_unknown_instance_is_refused(play, error):
    """Until 2.8 the member id alone counted then, but in JoinGroup."""
    play.statics("L", "F")
    assert play.heartbeat("F-1", instance=NOBODY) is error
    assert play.sync("F-1", instance=NOBODY).error is error
    assert play.commit("F-1", instance=NOBODY) is error
    assert play.join("F-1", instance=NOBODY).error is UNKNOWN
    assert play.leave(("F-1", NOBODY)).members == (("F-1", NOBODY, error),)
    assert ("F-1" in play.member_ids) == (error is not Error.NONE)


@by_rule(
    "heartbeats_count_while_completing",
    "error, session_ms",
    {True: (Error.NONE, SESSION_MS), False: (REBALANCING, 1)},
    among=lambda profile: profile.new_members_have_sessions,
)
def test_heartbeats_count_while_completing(play, error, session_ms):
    """Without the rule the response is REBALANCE_IN_PROGRESS, and the session is not extended."""
    play.completing("I1")
    play.after(SESSION_MS - INITIAL_DELAY_MS - 1)
    assert play.heartbeat("I1-1", instance="I1") is error
    assert play.armed(TimerKind.SESSION, "I1-1") == session_ms


# JoinGroup and SyncGroup


@case(
    "testJoinGroupInconsistentProtocolType",
    "testJoinGroupWithEmptyProtocolType",
    "testJoinGroupWithEmptyGroupProtocol",
    "testJoinGroupInconsistentGroupProtocol",
    "testJoinGroupSecondJoinInconsistentProtocol",
)
def test_a_group_has_one_protocol_type_and_each_member_a_common_protocol(play):
    """The first member has to name both; a rejoin is held to what was there before.

    Protocols come before ids; an Empty group may change its type.
    """
    for given in ({"protocol_type": ""}, {"protocols": ()}):
        assert play.join(client="c", version=3, **given).answer == INCONSISTENT
        assert play.join(instance="I1", **given).answer == INCONSISTENT
    assert play.join(client="c", protocol_type="").answer == INCONSISTENT
    assert play.state is State.EMPTY
    pending = play.join(client="c").answer.member_id
    refused = JoinResponse(Error.INCONSISTENT_GROUP_PROTOCOL, pending)
    for given in ({"protocol_type": ""}, {"protocols": ()}):
        assert play.join(pending, client="c", **given).answer == refused
    joined = play.join(pending, client="c", protocols=("range",))
    for given in ({"protocols": ("roundrobin",)}, {"protocol_type": "connect"}):
        assert play.join(client="c", version=3, **given).answer == INCONSISTENT
        assert play.join(instance="I2", **given).answer == INCONSISTENT
        assert play.join("unknown", **given).error is Error.INCONSISTENT_GROUP_PROTOCOL
    play.after(INITIAL_DELAY_MS)
    assert (joined.error, play.member_ids) == (Error.NONE, {pending})
    for given in ({"protocols": ("roundrobin",)}, {"protocol_type": "connect"}):
        assert play.join(pending, client="c", **given).answer == refused
    play.leave((pending, None))
    other = play.join(instance="I1", protocol_type="connect", protocols=("compatible",))
    play.after(INITIAL_DELAY_MS)
    assert (other.answer.protocol_type, other.answer.protocol) == ("connect", "compatible")


@case(
    "testSyncGroupReturnsAnErrorWhenProtocolTypeIsInconsistent",
    "testSyncGroupReturnsAnErrorWhenProtocolNameIsInconsistent",
    "testSyncGroupSucceedWhenProtocolTypeAndNameAreNotProvided",
    "testSyncGroupSucceedWhenProtocolTypeAndNameAreConsistent",
)
def test_protocol_type_and_name_in_sync_group(play):
    """Both are named from v5 on, before anything else is looked at; they must be the group's.

    KIP-559. The answer repeats them. Before v5 a name is looked at before the state alone.
    """
    play.completing("L", "F")
    refused = SyncResponse(Error.INCONSISTENT_GROUP_PROTOCOL)
    for member_id in ("L-1", "F-1"):
        for kind, name in (("connect", "range"), ("consumer", "roundrobin"), (None, "range")):
            sync = play.sync(member_id, version=5, protocol_type=kind, protocol=name)
            assert sync.answer == refused
    assert play.sync("unknown", version=5, protocol_type="consumer").answer == refused
    assert play.state is State.COMPLETING_REBALANCE
    right = {"protocol_type": "consumer", "protocol": "range"}
    led = play.sync("L-1", version=5, **right, **{"L-1": "all"})
    assert led.answer == SyncResponse(Error.NONE, "consumer", "range", "all")
    assert play.sync("L-1", version=4).answer == led.answer
    empty = SyncResponse(Error.NONE, "consumer", "range")
    assert play.sync("F-1", version=5, **right).answer == empty
    play.rejoin("L-1")
    assert play.sync("F-1", protocol="sticky").answer == refused
    assert play.sync("F-1", protocol="sticky", generation=0).error is OTHER_GENERATION


def test_assignment_that_cannot_be_stored(play):
    """Everyone who waits gets the error, and the group starts over."""
    play.completing("L", "F")
    play.hold_writes = True
    waiting = play.sync("F-1")
    leading = play.sync("L-1", **{"L-1": "all"})
    assert (waiting.pending, leading.pending) == (True, True)
    assert play.state is State.COMPLETING_REBALANCE
    play.written(leading, Error.COORDINATOR_NOT_AVAILABLE)
    failed = SyncResponse(Error.COORDINATOR_NOT_AVAILABLE)
    assert (waiting.answer, leading.answer) == (failed, failed)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.ASSIGNMENT_ERROR]


def test_assignment_of_a_generation_that_is_over(play):
    """A write that comes out after the next rebalance began changes nothing."""
    play.completing("L", "F")
    play.hold_writes = True
    leading = play.sync("L-1", **{"L-1": "all"})
    play.join("F-1", instance="F", subscription="payments")
    assert leading.answer == SyncResponse(REBALANCING)
    play.rejoin("L-1")
    assert (play.state, play.generation) == (State.COMPLETING_REBALANCE, 2)
    play.written(leading)
    assert play.state is State.COMPLETING_REBALANCE


def test_join_group_checks_session_range(play):
    """The range is inclusive (10 ms to 10 minutes, as upstream)."""
    for session_ms in (9, 600_001):
        call = play.join("m", session_ms=session_ms)
        assert call.answer == JoinResponse(Error.INVALID_SESSION_TIMEOUT, "m")
    for session_ms in (10, 600_000):
        assert play.join("m", session_ms=session_ms).error is UNKNOWN


@by_rule(
    "session_range_comes_first",
    "error",
    {True: Error.INVALID_SESSION_TIMEOUT, False: Error.NOT_COORDINATOR},
)
def test_session_range_comes_first(play, error):
    """Java's first release looked at the broker first, as Scala always did."""
    play.unload()
    assert play.join("m", session_ms=9).error is error


# OffsetCommit and TxnOffsetCommit


@pytest.mark.parametrize(("member_id", "instance"), [("", "instance-id"), ("unknown", None)])
@case(
    "testManualCommitOffsetShouldNotValidateMemberIdAndInstanceId",
    error={"2.4": Error.NONE, "3.0": UNKNOWN, "3.3.0": Error.NONE},
)
def test_manual_commit(play, error, member_id, instance):
    """Without a generation an Empty group takes a commit from anybody; 3.0 to 3.2 checked the ids.

    Where it has members, these are checked as ever.
    """
    assert play.commit(member_id, instance=instance, generation=-1) is error
    play.statics("I1")
    play.leave(("", "I1"))
    assert play.state is State.EMPTY
    assert play.commit(member_id, instance=instance, generation=-1) is error
    assert play.commit(generation=-1) is Error.NONE


@UNDER_ALL
@pytest.mark.parametrize("member_id", ["", "m"])
def test_commit_to_unknown_group(play, member_id):
    """A generation presupposes a group (OffsetCommitRequestTest).

    A manual commit creates it, refused or not: what follows is checked against its members.
    """
    assert play.commit("m", generation=0, version=8) is OTHER_GENERATION
    play.commit(member_id, generation=-1, version=8)
    assert play.commit("m", generation=0, version=8) is UNKNOWN


@pytest.mark.parametrize("version", [9, 10])
@by_coordinator("error", scala=OTHER_GENERATION, java=Error.GROUP_ID_NOT_FOUND)
def test_commit_to_unknown_group_v9(play, version, error):
    """Seen live on 3.9.1: Java has the error of KIP-848 for it."""
    assert play.commit("m", generation=0, version=version) is error


def test_commit_keeps_nobody_alive_in_completing_rebalance(play):
    """OffsetCommit restarts the session in Stable and PreparingRebalance alone."""
    play.completing("I1")
    left_ms = play.armed(TimerKind.SESSION, "I1-1")
    play.after(left_ms - 1)
    assert play.commit("I1-1") is REBALANCING
    play.after(1)
    assert play.state is State.EMPTY


@by_rule(
    "transaction_creates_group",
    "error",
    {True: UNKNOWN, False: OTHER_GENERATION},
    among=lambda profile: profile.transaction_is_checked_as_a_whole,
)
def test_transaction_creates_group(play, error):
    """KIP-447: a TxnOffsetCommit with a generation, to a group nobody knows."""
    assert play.commit("m", generation=1, version=3, transactional=True) is error
    assert play.group.exists == (error is UNKNOWN)
    assert play.commit(generation=-1, version=2, transactional=True) is Error.NONE


@by_rule(
    "transaction_to_unknown_group_v6",
    "error",
    {error: error for error in (Error.GROUP_ID_NOT_FOUND, OTHER_GENERATION)},
    among=lambda profile: not profile.transaction_creates_group,
)
def test_transaction_to_unknown_group_v6(play, error):
    """KIP-1319: a transaction hears what an OffsetCommit v9 hears, from v6 on."""
    assert play.commit("m", generation=1, version=5, transactional=True) is OTHER_GENERATION
    assert play.commit("m", generation=1, version=6, transactional=True) is error
    assert not play.group.exists
    assert play.commit(generation=-1, version=6, transactional=True) is Error.NONE


@case(
    "testTxnCommitOffsetWithFencedInstanceId",
    "testTxnCommitOffsetWithInvalidMemberId",
    "testTxnCommitOffsetWithKnownMemberId",
    "testTxnCommitOffsetWithIllegalGeneration",
    "testTxnCommitOffsetWithLegalGeneration",
    no_generation={"2.4": Error.NONE, "3.0": OTHER_GENERATION},
    unknown={"2.4": Error.NONE, "3.0": UNKNOWN},
)
def test_transactions_are_checked_as_a_whole(play, no_generation, unknown):
    """Wrong ids and generations are refused, in CompletingRebalance too.

    What is left out counts since 3.0; old clients name neither and pass.
    """
    play.completing("I1")
    for state in (State.COMPLETING_REBALANCE, State.STABLE):
        assert play.state is state
        commit = partial(play.commit, version=3, transactional=True)
        assert commit(generation=-1) is Error.NONE
        assert commit("I1-1", instance="I1") is Error.NONE
        assert commit("I1-1", generation=1) is Error.NONE
        assert commit("wrong", instance="I1") is FENCED
        assert commit("", instance="I1", generation=-1) is FENCED
        assert commit("wrong", generation=-1) is UNKNOWN
        assert commit("wrong") is UNKNOWN
        assert commit("I1-1", generation=6) is OTHER_GENERATION
        assert commit("I1-1", generation=-1) is no_generation
        assert commit() is unknown
        assert commit("I1-1", instance="nobody") is unknown
        assert play.commit(generation=-1, version=2, transactional=True) is Error.NONE
        play.sync("I1-1")


@UNDER_ALL
def test_transactions_keep_nobody_alive(play):
    """And a Dead group takes none."""
    play.completing("I1")
    before = dict(play.timers)
    play.after(1)
    for state in (State.COMPLETING_REBALANCE, State.STABLE):
        play.force(state)
        assert play.commit("I1-1", version=3, transactional=True) is Error.NONE
    assert play.timers == before
    play.force(State.DEAD)
    error = play.commit(generation=-1, transactional=True)
    assert error is Error.COORDINATOR_NOT_AVAILABLE
