"""Members join again with the id they have: cases 8 to 10, 15, 17 to 19, 48."""

import pytest

from reference_coordinator.effects import JoinAnswer, Reason
from reference_coordinator.errors import Error
from reference_coordinator.state import State
from tests.reference_coordinator.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    Playbook,
    statics,
)


def test_static_member_rejoin_with_leader_id_and_known_member_id():
    """The leader asks for a rebalance; the silent follower's session ends before it."""
    play = Playbook(initial_delay_ms=50)
    leader, _ = statics(play, "L", "F", session_ms=250)
    rejoin = play.join(leader, instance="L", session_ms=250)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEADER_REJOIN]
    play.after(249)
    assert rejoin.parked
    play.after(1)
    assert rejoin.answer == JoinAnswer(
        Error.NONE,
        member_id=leader,
        generation=2,
        protocol_type="consumer",
        protocol="range",
        leader=leader,
        members=frozenset({(leader, "L", "range:orders")}),
    )
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEADER_REJOIN]


def test_static_member_rejoin_with_leader_id_and_unexpected_dead_group():
    """Nobody joins a Dead group."""
    play = Playbook()
    (leader,) = statics(play, "L")
    play.force(State.DEAD)
    call = play.join(leader, instance="L")
    assert call.answer == JoinAnswer(Error.COORDINATOR_NOT_AVAILABLE, leader)


def test_static_member_rejoin_with_leader_id_and_unexpected_empty_group():
    """A member of old is unknown to a group that has become Empty."""
    play = Playbook()
    (leader,) = statics(play, "L")
    play.leave((leader, "L"))
    assert play.state is State.EMPTY
    call = play.join(leader, instance="L")
    assert call.answer == JoinAnswer(Error.UNKNOWN_MEMBER_ID, leader)


def test_static_member_rejoin_with_follower_id_and_change_of_protocol():
    """The silent leader is static, so it loses the lead but stays a member."""
    play = Playbook()
    leader, follower = statics(play, "L", "F", session_ms=100_000)
    rejoin = play.join(follower, instance="F", protocols=("roundrobin",), session_ms=100_000)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.MEMBER_METADATA]
    play.after(REBALANCE_MS - 1)
    assert rejoin.parked
    play.after(1)
    assert rejoin.answer == JoinAnswer(
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


def test_static_member_rejoin_with_known_leader_id_and_follower_with_change_of_protocol():
    """The leader starts one rebalance, the follower's other protocols the next."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.join(leader, instance="L")
    second = play.join(follower, instance="F")
    assert (second.answer.generation, play.state) == (2, State.COMPLETING_REBALANCE)
    third = play.join(follower, instance="F", protocols=("roundrobin",))
    assert play.state is State.PREPARING_REBALANCE
    play.join(leader, instance="L")
    assert (third.answer.generation, third.answer.protocol) == (3, "roundrobin")
    assert play.rebalances == [
        Reason.NEW_MEMBER,
        Reason.LEADER_REJOIN,
        Reason.MEMBER_METADATA,
    ]


def test_static_member_rejoin_as_follower_with_known_member_id_and_no_protocol_change():
    """Nothing new, so the running generation is the answer."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    call = play.join(follower, instance="F")
    assert call.answer == JoinAnswer(
        Error.NONE,
        member_id=follower,
        generation=1,
        protocol_type="consumer",
        protocol="range",
        leader=leader,
    )
    assert (play.rebalances, play.state) == ([Reason.NEW_MEMBER], State.STABLE)


@pytest.mark.parametrize(("owner", "instance"), [("L", "F"), ("F", "L")])
def test_static_member_rejoin_with_mismatched_instance_id(owner, instance):
    """One member's id under another's instance is fenced."""
    play = Playbook()
    statics(play, "L", "F")
    stray = play.id_of(owner)
    call = play.join(stray, instance=instance)
    assert call.answer == JoinAnswer(Error.FENCED_INSTANCE_ID, stray)


def test_static_member_sync_as_leader_with_invalid_member_id():
    """SyncGroup; without an instance (v0 to v2) a static member's id is enough."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    assert play.sync("invalid", instance="L").error is Error.FENCED_INSTANCE_ID
    assert play.sync(leader).answer.assignment == f"work of {leader}"


def test_static_member_heartbeat_leader_with_invalid_member_id():
    """Heartbeat."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    assert play.heartbeat("invalid", instance="L") is Error.FENCED_INSTANCE_ID
    assert play.heartbeat(leader) is Error.NONE
    assert play.heartbeat(leader, instance="L") is Error.NONE


def test_static_member_commit_offset_with_invalid_member_id():
    """OffsetCommit."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    assert play.commit("invalid", instance="L") is Error.FENCED_INSTANCE_ID
    assert play.commit(leader) is Error.NONE
    assert play.commit(leader, instance="L") is Error.NONE


def test_requests_with_an_unknown_instance_and_a_known_member_id():
    """The instance is looked at first (5.4; 3.0 and later)."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    assert play.sync(leader, instance="nobody").error is Error.UNKNOWN_MEMBER_ID
    assert play.heartbeat(leader, instance="nobody") is Error.UNKNOWN_MEMBER_ID
    assert play.commit(leader, instance="nobody") is Error.UNKNOWN_MEMBER_ID


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
    """Facts 1.5: other metadata under the same protocol names counts as a change."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    if state is State.COMPLETING_REBALANCE:
        play.join(leader, instance="L")
        play.join(follower, instance="F")
    assert play.state is state
    again = play.join(follower, instance="F", subscription="orders,payments")
    assert again.parked
    assert play.rebalances[-1] is Reason.MEMBER_METADATA


def test_join_group_from_leader_in_completing_rebalance_lists_the_members():
    """Java and Scala: a leader that lost its answer is told the members again."""
    play = Playbook()
    leader, follower = play.join(instance="L"), play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    assert play.join("L-1", instance="L").answer == leader.answer
    assert play.join("F-1", instance="F").answer == follower.answer
    assert len(leader.answer.members) == 2
    assert follower.answer.members == frozenset()
