"""Members join again with the id they have."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    Playbook,
    statics,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE

pytestmark = EVERY_RELEASE


@case("staticMemberRejoinWithLeaderIdAndKnownMemberId")
def test_static_member_rejoin_with_leader_id_and_known_member_id():
    """The leader asks for a rebalance; the silent follower's session ends before it."""
    play = Playbook(initial_delay_ms=50)
    leader, _ = statics(play, "L", "F", session_ms=250)
    rejoin = play.join(leader, instance="L", session_ms=250)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEADER_REJOIN]
    play.after(249)
    assert rejoin.pending
    play.after(1)
    assert rejoin.answer == JoinResponse(
        Error.NONE,
        member_id=leader,
        generation=2,
        protocol_type="consumer",
        protocol="range",
        leader=leader,
        members=frozenset({(leader, "L", "range:orders")}),
    )
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEADER_REJOIN]


@case("staticMemberRejoinWithLeaderIdAndUnexpectedDeadGroup")
def test_static_member_rejoin_with_leader_id_and_unexpected_dead_group():
    """Nobody joins a Dead group."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    play.force(State.DEAD)
    call = play.join(leader, instance="L")
    assert call.answer == JoinResponse(Error.COORDINATOR_NOT_AVAILABLE, leader)


@pytest.mark.parametrize("left", [False, True])
@case("staticMemberRejoinWithLeaderIdAndUnexpectedEmptyGroup")
def test_static_member_rejoin_with_leader_id_and_unexpected_empty_group(left):
    """A member of old is unknown to a group that has become Empty, even if it is still there."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    if left:
        play.leave((leader, "L"), (follower, "F"))
    else:
        play.force(State.EMPTY)
    assert play.state is State.EMPTY
    call = play.join(leader, instance="L")
    assert call.answer == JoinResponse(Error.UNKNOWN_MEMBER_ID, leader)


@case("staticMemberRejoinWithFollowerIdAndChangeOfProtocol")
def test_static_member_rejoin_with_follower_id_and_change_of_protocol():
    """The silent leader is static, so it loses the lead but stays a member."""
    play = Playbook()
    leader, follower = statics(play, "L", "F", session_ms=100_000)
    rejoin = play.join(follower, instance="F", protocols=("roundrobin",), session_ms=100_000)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.MEMBER_METADATA]
    play.after(REBALANCE_MS - 1)
    assert rejoin.pending
    play.after(1)
    assert rejoin.answer == JoinResponse(
        Error.NONE,
        member_id=follower,
        generation=2,
        protocol_type="consumer",
        protocol="roundrobin",
        leader=follower,
        members=frozenset(
            {(leader, "L", "roundrobin:orders"), (follower, "F", "roundrobin:orders")}
        ),
    )
    assert play.member_ids == {leader, follower}


@case("staticMemberRejoinWithKnownLeaderIdToTriggerRebalanceAndFollowerWithChangeofProtocol")
def test_static_member_rejoin_with_known_leader_id_to_trigger_rebalance_and_follower_with_changeof_protocol():  # noqa: E501
    """The leader starts one rebalance, the follower's other protocols the next.

    The leader, silent in that one, is followed by the only one who came.
    """
    play = Playbook()
    leader, follower = statics(play, "L", "F", session_ms=100_000)
    first = play.join(leader, instance="L", session_ms=100_000)
    second = play.join(follower, instance="F", session_ms=100_000)
    assert (first.answer.generation, first.answer.leader) == (2, leader)
    assert (second.answer.generation, play.state) == (2, State.COMPLETING_REBALANCE)
    third = play.join(follower, instance="F", protocols=("roundrobin",), session_ms=100_000)
    assert (third.pending, play.state) == (True, State.PREPARING_REBALANCE)
    play.after(REBALANCE_MS)
    assert (third.answer.generation, third.answer.protocol) == (3, "roundrobin")
    assert third.answer.leader == follower
    assert play.member_ids == {leader, follower}
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEADER_REJOIN, Reason.MEMBER_METADATA]


@case("staticMemberRejoinAsFollowerWithKnownMemberIdAndNoProtocolChange")
def test_static_member_rejoin_as_follower_with_known_member_id_and_no_protocol_change():
    """Nothing new, so the running generation is the answer."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    call = play.join(follower, instance="F")
    assert call.answer == JoinResponse(
        Error.NONE,
        member_id=follower,
        generation=1,
        protocol_type="consumer",
        protocol="range",
        leader=leader,
    )
    assert (play.rebalances, play.state) == ([Reason.NEW_MEMBER], State.STABLE)


@case("testJoinGroupFromUnchangedFollowerDoesNotRebalance")
def test_join_group_from_unchanged_follower_does_not_rebalance():
    """Dynamic members; a follower that offers the same gets the same generation."""
    play = Playbook()
    first, second = play.join_dynamic("a"), play.join_dynamic("b")
    play.after(2 * INITIAL_DELAY_MS)
    play.sync_everyone()
    again = play.join(second.answer.member_id, client="b")
    assert (again.error, again.answer.generation) == (Error.NONE, 1)
    assert again.answer.leader == first.answer.member_id
    assert again.answer.members == frozenset()
    assert play.rebalances == [Reason.NEW_MEMBER]


@case("testJoinGroupFromUnchangedLeaderShouldRebalance")
def test_join_group_from_unchanged_leader_should_rebalance():
    """A leader's JoinGroup always asks for a rebalance in Stable."""
    play = Playbook()
    first = play.join_dynamic("a")
    play.after(INITIAL_DELAY_MS)
    play.sync_everyone()
    again = play.join(first.answer.member_id, client="a")
    assert (again.error, again.answer.generation) == (Error.NONE, 2)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEADER_REJOIN]


@pytest.mark.parametrize("state", [State.STABLE, State.COMPLETING_REBALANCE])
def test_join_group_from_changed_follower_triggers_rebalance(state):
    """Other metadata under the same protocol names counts as a change."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    if state is State.COMPLETING_REBALANCE:
        play.join(leader, instance="L")
        play.join(follower, instance="F")
    assert play.state is state
    again = play.join(follower, instance="F", subscription="orders,payments")
    assert again.pending
    assert play.rebalances[-1] is Reason.MEMBER_METADATA


def test_join_group_from_leader_in_completing_rebalance_lists_the_members():
    """Java and Scala: a leader that lost its response receives the members again."""
    play = Playbook()
    leader, follower = play.join(instance="L"), play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    assert play.join("L-1", instance="L").answer == leader.answer
    assert play.join("F-1", instance="F").answer == follower.answer
    assert len(leader.answer.members) == 2
    assert follower.answer.members == frozenset()


def test_two_processes_of_one_instance_fence_each_other_without_a_rebalance():
    """8.3: an endless ping-pong, and the coordinator's log is silent about it."""
    play = Playbook()
    statics(play, "L", "F")
    old = play.id_of("F")
    for _ in range(4):
        new = play.join(instance="F").answer.member_id
        assert play.heartbeat(old, instance="F") is Error.FENCED_INSTANCE_ID
        old = new
    assert (play.rebalances, play.generation) == ([Reason.NEW_MEMBER], 1)


def test_silent_member_that_wakes_after_its_session_is_unknown_not_fenced():
    """8.3: with the member its mapping went, so the way back is a rebalance."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.after(11_000, alive=[leader])
    play.join(leader, instance="L")
    assert play.heartbeat(follower, instance="F") is Error.UNKNOWN_MEMBER_ID
    assert play.join(instance="F").pending
    assert play.rebalances[-1] is Reason.NEW_MEMBER


def test_rolling_change_of_the_protocol_order_rebalances_once():
    """8.3: each member that returns moves one vote; only the vote that decides rebalances."""
    play = Playbook()
    names = ("a", "b", "c")
    statics(play, *names)
    for name in names:
        back = play.join(instance=name, protocols=("roundrobin", "range"))
        if back.pending:
            for other in set(names) - {name}:
                play.join(play.id_of(other), instance=other, protocols=order_of(play, other))
            play.sync_everyone()
        assert back.error is Error.NONE
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.PROTOCOL_CHANGE]
    assert play.group.protocol == "roundrobin"


def order_of(play: Playbook, instance: str) -> tuple[str, ...]:
    """Return the protocols a member offered last, in its order."""
    return tuple(name for name, _ in play.member(instance).protocols)
