"""Checks of JoinGroup, SyncGroup and Heartbeat, and their order."""

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
    completing,
    statics,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, UNDER_ALL, by_rule

pytestmark = EVERY_RELEASE

INCONSISTENT = JoinResponse(Error.INCONSISTENT_GROUP_PROTOCOL)


@case(
    "testJoinGroupInconsistentProtocolType",
    "testJoinGroupWithEmptyProtocolType",
    "testJoinGroupWithEmptyGroupProtocol",
)
def test_a_group_has_one_protocol_type_and_each_member_a_protocol():
    """The first member has to name both, and who joins again as well."""
    play = Playbook()
    for given in ({"protocol_type": ""}, {"protocols": ()}):
        assert play.join(client="c", version=3, **given).answer == INCONSISTENT
        assert play.join(instance="I1", **given).answer == INCONSISTENT
    assert play.join(client="c", protocol_type="").answer == INCONSISTENT
    assert play.state is State.EMPTY
    pending = play.join(client="c").answer.member_id
    again = play.join(pending, client="c", protocol_type="")
    assert again.answer == JoinResponse(Error.INCONSISTENT_GROUP_PROTOCOL, pending)
    play = Playbook()
    statics(play, "I1")
    assert play.join(client="c", version=3, protocol_type="connect").answer == INCONSISTENT
    assert play.join(instance="I2", protocol_type="connect").answer == INCONSISTENT
    known = play.join("I1-1", instance="I1", protocol_type="connect")
    assert known.answer == JoinResponse(Error.INCONSISTENT_GROUP_PROTOCOL, "I1-1")


@case("testJoinGroupInconsistentGroupProtocol", "testJoinGroupSecondJoinInconsistentProtocol")
def test_join_group_inconsistent_group_protocol():
    """One protocol at least must be common to all; a rejoin is held to what was there before."""
    play = Playbook()
    pending = play.join(client="c", protocols=("range",)).answer.member_id
    refused = JoinResponse(Error.INCONSISTENT_GROUP_PROTOCOL, pending)
    assert play.join(pending, client="c", protocols=()).answer == refused
    joined = play.join(pending, client="c", protocols=("range",))
    other = play.join(client="c", version=3, protocols=("roundrobin",))
    assert other.answer == INCONSISTENT
    play.after(INITIAL_DELAY_MS)
    assert (joined.error, play.member_ids) == (Error.NONE, {pending})
    assert play.join(pending, client="c", protocols=("roundrobin",)).answer == refused


@case(
    "testSyncGroupReturnsAnErrorWhenProtocolTypeIsInconsistent",
    "testSyncGroupReturnsAnErrorWhenProtocolNameIsInconsistent",
    "testSyncGroupSucceedWhenProtocolTypeAndNameAreNotProvided",
    "testSyncGroupSucceedWhenProtocolTypeAndNameAreConsistent",
)
def test_protocol_type_and_name_in_sync_group():
    """From v5 on both are named, and must be the group's (KIP-559); the answer repeats them."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    refused = SyncResponse(Error.INCONSISTENT_GROUP_PROTOCOL)
    for member_id in ("L-1", "F-1"):
        for wrong in (("connect", "range"), ("consumer", "roundrobin")):
            named = dict(zip(("protocol_type", "protocol"), wrong, strict=True))
            assert play.sync(member_id, version=5, **named).answer == refused
    assert play.state is State.COMPLETING_REBALANCE
    right = {"protocol_type": "consumer", "protocol": "range"}
    led = play.sync("L-1", version=5, **right, **{"L-1": "all"})
    assert led.answer == SyncResponse(Error.NONE, "consumer", "range", "all")
    assert play.sync("L-1", version=4).answer == led.answer
    empty = SyncResponse(Error.NONE, "consumer", "range")
    assert play.sync("F-1", version=5, **right).answer == empty


@case(
    "testHeartbeatUnknownGroup",
    "testHeartbeatDeadGroup",
    "testHeartbeatEmptyGroup",
    "testHeartbeatUnknownConsumerExistingGroup",
    "testHeartbeatIllegalGeneration",
    "testHeartbeatDuringRebalanceCausesRebalanceInProgress",
)
def test_heartbeat_checks():
    """Dead, the ids, the generation, and the state at last."""
    play = Playbook()
    assert play.heartbeat("m", generation=-1) is Error.UNKNOWN_MEMBER_ID
    (member,) = statics(play, "I1")
    assert play.heartbeat("unknown") is Error.UNKNOWN_MEMBER_ID
    assert play.heartbeat("unknown", generation=9) is Error.UNKNOWN_MEMBER_ID
    for generation in (-1, 0, 2):
        assert play.heartbeat(member, generation=generation) is Error.ILLEGAL_GENERATION
    play.join_dynamic("c")
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.NEW_MEMBER]
    assert play.heartbeat(member, instance="I1") is Error.REBALANCE_IN_PROGRESS
    assert play.heartbeat(member, generation=9) is Error.ILLEGAL_GENERATION
    for state, error in (
        (State.EMPTY, Error.UNKNOWN_MEMBER_ID),
        (State.DEAD, Error.COORDINATOR_NOT_AVAILABLE),
    ):
        play.force(state)
        assert play.heartbeat(member, instance="I1") is error
        assert play.heartbeat("unknown", generation=9) is error
    left = Playbook()
    (member,) = statics(left, "I1")
    left.leave((member, "I1"))
    assert left.heartbeat(member) is Error.UNKNOWN_MEMBER_ID


@case(
    "testHeartbeatRebalanceInProgress",
    error={"2.4": Error.REBALANCE_IN_PROGRESS, "2.6.1": Error.NONE},
)
def test_heartbeat_rebalance_in_progress(error):
    """In CompletingRebalance all is well, since 2.6.1."""
    play = Playbook()
    assert play.heartbeat(completing(play)) is error


def test_an_empty_group_may_change_its_protocol_type():
    """Only members bind a group to its type."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.leave((member, "I1"))
    call = play.join(instance="I1", protocol_type="connect", protocols=("compatible",))
    play.after(INITIAL_DELAY_MS)
    assert (call.answer.protocol_type, call.answer.protocol) == ("connect", "compatible")


def test_sync_group_checks():
    """Dead, ids, generation, protocol, and the state at last."""
    play = Playbook()
    assert play.sync("m", generation=1).error is Error.UNKNOWN_MEMBER_ID
    leader, follower = statics(play, "L", "F")
    assert play.sync("unknown", generation=9).error is Error.UNKNOWN_MEMBER_ID
    assert play.sync(follower, generation=0).error is Error.ILLEGAL_GENERATION
    play.join(leader, instance="L")
    assert play.sync(follower, generation=0).error is Error.ILLEGAL_GENERATION
    inconsistent = play.sync(follower, protocol="sticky")
    assert inconsistent.error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert play.sync(follower).answer == SyncResponse(Error.REBALANCE_IN_PROGRESS)
    play.force(State.DEAD)
    assert play.sync("unknown", generation=9).error is Error.COORDINATOR_NOT_AVAILABLE


def test_sync_fills_holes_in_the_assignment():
    """A member that the leader leaves out gets an empty assignment."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    waiting = play.sync("F-1")
    play.sync("L-1", **{"L-1": "all", "unknown": "more"})
    assert waiting.answer == SyncResponse(Error.NONE, "consumer", "range", "")
    assert {m.member_id: m.assignment for m in play.records[-1].members} == {
        "L-1": "all",
        "F-1": "",
    }
    assert (play.assignments[-1].leader, play.assignments[-1].static_members) == ("L-1", 2)


def test_assignment_that_cannot_be_stored():
    """Everyone who waits gets the error, and the group starts over."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    play.hold_writes = True
    waiting = play.sync("F-1")
    leading = play.sync("L-1", **{"L-1": "all"})
    assert (waiting.pending, leading.pending) == (True, True)
    assert play.state is State.COMPLETING_REBALANCE
    play.written(leading, Error.COORDINATOR_NOT_AVAILABLE)
    failed = SyncResponse(Error.COORDINATOR_NOT_AVAILABLE)
    assert (waiting.answer, leading.answer) == (failed, failed)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.ASSIGNMENT_ERROR]


def test_assignment_of_a_generation_that_is_over():
    """A write that comes out after the next rebalance began changes nothing."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    play.hold_writes = True
    leading = play.sync("L-1", **{"L-1": "all"})
    play.join("F-1", instance="F", subscription="payments")
    assert leading.answer == SyncResponse(Error.REBALANCE_IN_PROGRESS)
    play.join("L-1", instance="L")
    assert (play.state, play.generation) == (State.COMPLETING_REBALANCE, 2)
    play.written(leading)
    assert play.state is State.COMPLETING_REBALANCE


def test_join_group_checks_session_range():
    """After the group id; the range is inclusive (10 ms to 10 minutes, as upstream)."""
    nameless = Playbook(group_id="")
    call = nameless.join("m", session_ms=1)
    assert call.answer == JoinResponse(Error.INVALID_GROUP_ID, "m")
    play = Playbook()
    for session_ms in (9, 600_001):
        call = play.join("m", session_ms=session_ms)
        assert call.answer == JoinResponse(Error.INVALID_SESSION_TIMEOUT, "m")
    assert play.join("m", session_ms=10).error is Error.UNKNOWN_MEMBER_ID
    assert play.join("m", session_ms=600_000).error is Error.UNKNOWN_MEMBER_ID


def test_every_request_of_a_member_needs_a_group_id():
    """`GroupCoordinatorService` (4.3): INVALID_GROUP_ID; a manual commit alone may do without."""
    play = Playbook(group_id="")
    assert play.sync("m", generation=1).error is Error.INVALID_GROUP_ID
    assert play.heartbeat("m", generation=1) is Error.INVALID_GROUP_ID
    assert play.leave(("m", None)) == LeaveResponse(Error.INVALID_GROUP_ID)
    assert play.commit(generation=-1) is Error.NONE


def test_join_group_unknown_group_with_a_member_id():
    """An id presupposes a group."""
    play = Playbook()
    call = play.join("m", instance="I1", protocols=())
    assert call.answer == JoinResponse(Error.UNKNOWN_MEMBER_ID, "m")


def test_join_group_checks_protocols_before_pending_and_ids():
    """An unknown id with impossible protocols hears of the protocols."""
    play = Playbook()
    statics(play, "I1")
    call = play.join("unknown", protocols=("sticky",))
    assert call.error is Error.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_dynamic_member_of_old_versions_joins_in_one_step(version):
    """KIP-394 begins with JoinGroup v4."""
    play = Playbook()
    call = play.join(client="c", version=version)
    play.after(INITIAL_DELAY_MS)
    assert (call.error, call.answer.member_id) == (Error.NONE, "c-1")


refused_if_unknown = by_rule(
    "unknown_instance_is_refused", "error", {True: Error.UNKNOWN_MEMBER_ID, False: Error.NONE}
)


@refused_if_unknown
def test_unknown_instance_is_refused_by_heartbeat_sync_and_commit(error):
    """Until 2.8 the member id alone counted then; who has another's instance is fenced anyway."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    assert play.heartbeat(follower, instance="nobody") is error
    assert play.sync(follower, instance="nobody").error is error
    assert play.commit(follower, instance="nobody") is error
    assert play.heartbeat(follower, instance="L") is Error.FENCED_INSTANCE_ID
    assert play.heartbeat("unknown", instance="nobody") is Error.UNKNOWN_MEMBER_ID


@refused_if_unknown
def test_unknown_instance_is_refused_by_leave(error):
    """A LeaveGroup names its member well, and an instance that nobody has."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    answer = play.leave((follower, "nobody"))
    assert answer.members == ((follower, "nobody", error),)
    assert (follower in play.member_ids) == (error is not Error.NONE)


@refused_if_unknown
def test_unknown_instance_is_refused_by_join_always(error):
    """JoinGroup never knew the exception."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    assert play.join(follower, instance="nobody").error is Error.UNKNOWN_MEMBER_ID


@by_rule(
    "heartbeats_count_while_completing",
    "error, session_ms",
    {True: (Error.NONE, SESSION_MS), False: (Error.REBALANCE_IN_PROGRESS, 1)},
    among=lambda profile: profile.new_members_have_sessions,
)
def test_heartbeats_count_while_completing(error, session_ms):
    """Without the rule the response is REBALANCE_IN_PROGRESS, and the session is not extended."""
    play = Playbook()
    play.join(instance="I1")
    play.after(INITIAL_DELAY_MS)
    play.after(SESSION_MS - 1)
    assert play.state is State.COMPLETING_REBALANCE
    assert play.heartbeat("I1-1", instance="I1") is error
    assert play.armed(TimerKind.SESSION, "I1-1") == session_ms


@by_rule("failures_are_answered_in_every_version", "answered", {True: True, False: False})
def test_failures_are_answered_in_every_version(answered):
    """JoinGroup v6 was new in 2.4, which knew no error answer for it."""
    play = Playbook()
    pending = play.join(client="c").answer.member_id
    failed = JoinResponse(Error.UNKNOWN_SERVER_ERROR)
    assert play.join(pending, instance="I1", version=5).answer == failed
    unanswered = play.join(pending, instance="I1", version=6)
    assert unanswered.response == (failed if answered else None)
    assert pending in play.group.pending_joins


@by_rule("session_range_comes_first", "error", {True: 26, False: 16})
def test_session_range_comes_first(error):
    """Java's first release looked at the broker first, as Scala always did."""
    play = Playbook()
    play.unload()
    assert play.join("m", session_ms=9).answer.error == error


@UNDER_ALL
def test_sync_v5_has_to_name_type_and_protocol():
    """KIP-559: both, from v5 on, and before anything else is looked at."""
    play = Playbook()
    (member,) = statics(play, "I1")
    refused = SyncResponse(Error.INCONSISTENT_GROUP_PROTOCOL)
    assert play.sync(member, version=5).answer == refused
    assert play.sync(member, version=5, protocol="range").answer == refused
    assert play.sync("unknown", version=5, protocol_type="consumer").answer == refused
    named = play.sync(member, version=5, protocol_type="consumer", protocol="range")
    assert named.error is Error.NONE
    assert play.sync(member, version=4).error is Error.NONE
