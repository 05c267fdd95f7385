"""Static members join, and fence each other."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason, SyncResponse
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    accepted,
    listed,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_rule

pytestmark = EVERY_RELEASE
LONG_MS = 100_000


@case("staticMemberJoinAsFirstMember", "testInitNextGeneration", "testInvokeJoinCallback")
def test_static_member_joins_an_empty_group_at_its_first_request(play):
    """Without MEMBER_ID_REQUIRED. The join phase's end answers it, and settles the protocol."""
    first = play.join(instance="I1", protocols=("roundrobin",))
    assert (first.pending, play.group.awaiting) == (True, 1)
    assert (play.generation, play.group.protocol) == (0, None)
    play.after(INITIAL_DELAY_MS)
    assert first.answer == accepted("I1-1", 1, "I1-1", "I1-1", protocol="roundrobin")
    assert (play.group.awaiting, play.member("I1").join) == (0, None)
    assert (play.state, play.group.protocol) == (State.COMPLETING_REBALANCE, "roundrobin")
    assert play.rebalances == [Reason.NEW_MEMBER]


@case(
    "staticMemberReJoinWithExplicitUnknownMemberId",
    "staticMemberRejoinAsFollowerWithMismatchedMemberId",
    "staticMemberRejoinAsLeaderWithMismatchedMemberId",
    "staticMemberJoinWithUnknownInstanceIdAndKnownMemberId",
)
def test_the_instance_is_looked_at_before_the_member_id(play):
    """A known one with any id but its own is fenced, an unknown one unknown."""
    play.statics("L", "F")
    for member_id, instance in (("unknown", "L"), ("F-1", "L"), ("L-1", "F")):
        refused = JoinResponse(Error.FENCED_INSTANCE_ID, member_id)
        assert play.join(member_id, instance=instance).answer == refused
    unknown = play.join("L-1", instance="unknown")
    assert unknown.answer == JoinResponse(Error.UNKNOWN_MEMBER_ID, "L-1")
    assert (play.member_ids, play.rebalances) == ({"L-1", "F-1"}, [Reason.NEW_MEMBER])


@case(
    "staticMemberFenceDuplicateRejoinedFollower",
    "staticMemberFenceDuplicateRejoiningFollowerAfterMemberIdChanged",
)
def test_duplicate_fences_the_old_id_in_preparing_rebalance(play):
    """Whether the old one's JoinGroup waits already or comes after the duplicate's."""
    play.statics("L", "F", "G")
    leading, waiting = play.rejoin("L-1", "F-1")
    first = play.join(instance="F")
    assert waiting.answer == JoinResponse(Error.FENCED_INSTANCE_ID, "F-1")
    second = play.join(instance="G")
    (late,) = play.rejoin("G-1")
    assert late.answer == JoinResponse(Error.FENCED_INSTANCE_ID, "G-1")
    assert leading.answer.members == listed("L-1", "F-2", "G-2")
    assert first.answer == accepted("F-2", 2, "L-1")
    assert second.answer == accepted("G-2", 2, "L-1")
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEADER_REJOIN]


@case("testJoinGroupReplaceStaticMember", "testReplaceGroupInstance")
def test_duplicate_fences_the_first_join_of_its_instance(play):
    """It takes its place in the initial delay, as the leader too, and fences its SyncGroup."""
    first, second = play.join(instance="I1"), play.join(instance="I1")
    assert first.answer == JoinResponse(Error.FENCED_INSTANCE_ID, "I1-1")
    play.after(INITIAL_DELAY_MS)
    assert (second.error, second.answer.leader) == (Error.NONE, "I1-2")
    play.hold_writes = True
    syncing = play.sync("I1-2", instance="I1")
    play.join(instance="I1")
    assert syncing.answer == SyncResponse(Error.FENCED_INSTANCE_ID)
    assert (play.leader, dict(play.group.static_ids)) == ("I1-3", {"I1": "I1-3"})
    assert (play.member_ids, play.member("I1").sync) == ({"I1-3"}, None)


@case(
    "staticMemberFenceDuplicateSyncingFollowerAfterMemberIdChanged",
    generation={"2.4": 2, "2.5": 3},
    leader={"2.4": "L-1", "2.5": "F-2"},
)
def test_duplicate_fences_a_pending_sync(play, generation, leader):
    """In CompletingRebalance, and the group starts over; the silent leader leads no longer.

    In 2.4 the duplicate was answered with the generation under way (KAFKA-9801): the leader gives
    the work to an id that nobody has any longer.
    """
    play.statics("L", "F", session_ms=LONG_MS)
    play.rejoin("L-1", "F-1", session_ms=LONG_MS)
    assert (play.state, play.generation) == (State.COMPLETING_REBALANCE, 2)
    old = play.sync("F-1", instance="F")
    back = play.join(instance="F", session_ms=LONG_MS, version=5)
    assert old.answer == SyncResponse(Error.FENCED_INSTANCE_ID)
    starts_over = generation == 3
    assert back.pending == starts_over
    if starts_over:
        assert play.rebalances[-1] is Reason.STATIC_REPLACED
        play.after(REBALANCE_MS)
    members = ("L-1", "F-2") if starts_over else ()
    assert back.answer == accepted("F-2", generation, leader, *members)
    assert play.state is State.COMPLETING_REBALANCE
    if not starts_over:
        play.sync("L-1", **{"L-1": "some", "F-1": "the rest"})
        assert play.state is State.STABLE
        assert play.sync("F-2").answer.assignment == ""


@pytest.mark.parametrize("followers", [[], ["F"]], ids=["alone", "with a follower"])
@case(
    "testReplaceStaticMemberInCompletingRebalanceStateTriggersRebalance",
    generation={"2.4": 1, "2.5": 2},
)
def test_leader_returns_in_completing_rebalance(play, generation, followers):
    """Since 2.5 it starts the next generation, once its followers have joined again.

    On 2.4 its response names its old id as the leader, and nobody sends the assignment.
    """
    _, *others = play.completing("L", *followers)
    back = play.join(instance="L", version=5)
    starts_over = generation == 2
    assert back.pending == (starts_over and others != [])
    assert play.rebalances[1:] == [Reason.STATIC_REPLACED] * starts_over
    if back.pending:
        assert play.state is State.PREPARING_REBALANCE
        play.rejoin(*others)
    leader, *members = ("L-2", "L-2", *others) if starts_over else ("L-1",)
    assert back.answer == accepted("L-2", generation, leader, *members)
    assert (play.state, play.leader) == (State.COMPLETING_REBALANCE, "L-2")
    assert play.member_ids == {"L-2", *others}


@by_rule(
    "return_makes_completing_group_rebalance",
    "error, error_again",
    {
        True: (Error.REBALANCE_IN_PROGRESS, None),
        False: (Error.UNKNOWN_SERVER_ERROR, Error.UNKNOWN_SERVER_ERROR),
    },
)
def test_assignment_fails_while_a_member_lacks_the_protocol(play, error, error_again):
    """On 2.4 a return leaves the group with a protocol that it does not offer, and storing fails.

    The leader receives the error, but its SyncGroup stays pending; a JoinGroup does not help.
    """
    play.completing("L", "F")
    play.join(instance="F", protocols=("roundrobin",), version=6)
    sync = play.sync("L-1", version=3, **{"L-1": "some", "F-2": "the rest"})
    assert sync.error is error
    again = play.join("L-1", instance="L", version=5)
    assert play.state is State.COMPLETING_REBALANCE
    assert play.generation == (2 if error_again is None else 1)
    if error_again is not None:
        assert again.error is error_again
        assert play.group.members["L-1"].is_awaiting


@by_rule(
    "failures_are_answered_in_every_version",
    "answered",
    {False: False},
    among=lambda profile: not profile.return_makes_completing_group_rebalance,
)
def test_failed_sync_stays_pending(play, answered):
    """On 2.4 the newest version of SyncGroup has no answer for that, and the others get two."""
    play.completing("L", "F")
    play.join(instance="F", protocols=("roundrobin",), version=6)
    sync = play.sync("L-1", version=4, **{"L-1": "some", "F-2": "the rest"})
    assert sync.pending is not answered
    assert play.group.members["L-1"].sync == sync.request
    play.leave(("", "F"))
    assert sync.error is Error.REBALANCE_IN_PROGRESS


@case(
    "staticMemberRejoinWithKnownMemberId",
    "staticMemberRejoinAsFollowerWithKnownMemberIdAndNoProtocolChange",
    "testJoinGroupFromUnchangedFollowerDoesNotRebalance",
)
def test_join_sent_again_gets_the_running_generation(play):
    """In CompletingRebalance from everyone, in Stable from followers, static or not.

    A leader that lost its response receives the members again.
    """
    leading, following = play.join(instance="L"), play.join(instance="F")
    dynamic = play.join_dynamic("c")
    play.after(2 * INITIAL_DELAY_MS)
    assert len(leading.answer.members) == 3
    assert [call.answer for call in play.rejoin("L-1", "F-1")] == [
        leading.answer,
        following.answer,
    ]
    play.sync_everyone()
    (again,) = play.rejoin("F-1")
    assert again.answer == accepted("F-1", 1, "L-1")
    assert play.join(dynamic.answer.member_id, client="c").answer == dynamic.answer
    assert (play.rebalances, play.state) == ([Reason.NEW_MEMBER], State.STABLE)


@case(
    "staticMemberReJoinWithIllegalStateAsUnknownMember",
    "testJoinGroupExistingPendingMemberWithGroupInstanceIdThrowsException",
)
def test_what_cannot_be_is_an_unknown_error(play):
    """Kafka throws inside: a pending member with an instance, an Empty group that knows one."""
    failed = JoinResponse(Error.UNKNOWN_SERVER_ERROR)
    pending = play.join(client="c").answer.member_id
    assert play.join(pending, instance="I1", version=5).answer == failed
    play.statics("L", "F")
    play.force(State.EMPTY)
    assert play.join(instance="F", version=5).answer == failed


@by_rule("failures_are_answered_in_every_version", "answered", {True: True, False: False})
def test_failures_are_answered_in_every_version(play, answered):
    """JoinGroup v6 was new in 2.4, which knew no error answer for it."""
    pending = play.join(client="c").answer.member_id
    failed = play.join(pending, instance="I1", version=6)
    assert failed.response == (JoinResponse(Error.UNKNOWN_SERVER_ERROR) if answered else None)
    assert pending in play.group.pending_joins
