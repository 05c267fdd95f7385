"""`group.max.size`: cases 34 and 35."""

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

FULL = JoinAnswer(Error.GROUP_MAX_SIZE_REACHED, member_id="")


def test_static_members_join_group_with_max_size():
    """One too many is refused; those who are in may come again with their ids."""
    play = Playbook(max_size=2)
    calls = [play.join(instance=f"I{n}") for n in (1, 2, 3)]
    assert calls[2].answer == FULL
    play.after(2 * INITIAL_DELAY_MS)
    assert [call.answer.generation for call in calls[:2]] == [1, 1]
    again = play.join("I2-1", instance="I2")
    assert (again.error, again.answer.generation) == (Error.NONE, 1)
    play.sync_everyone()
    assert play.join("I2-1", instance="I2").error is Error.NONE
    assert play.join(instance="I4").answer == FULL


def test_static_member_cannot_return_to_a_full_group():
    """Facts 5.2, seen live on every release: a restart within the session is refused as well."""
    play = Playbook(max_size=2)
    _, follower = statics(play, "I1", "I2")
    assert play.join(instance="I2").answer == FULL
    assert play.id_of("I2") == follower
    assert play.rebalances == [Reason.NEW_MEMBER]


def test_join_group_should_receive_error_if_group_over_max_size():
    """Dynamic members are counted before they are given an id."""
    play = Playbook(max_size=2)
    play.join_dynamic("a")
    play.join_dynamic("b")
    assert play.join(client="c").answer == FULL
    play.after(2 * INITIAL_DELAY_MS)
    assert play.join(client="c").answer == FULL
    play.sync_everyone()
    assert play.join(client="c").answer == FULL
    assert len(play.member_ids) == 2


def test_dynamic_members_join_group_with_max_size_and_required_known_member():
    """Ids are given out freely; the size is held to where they are used.

    `classicGroupJoinToClassicGroup` removes the pending member it refuses (`group.remove`).
    """
    play = Playbook(max_size=2)
    ids = [play.join(client=name).answer.member_id for name in ("a", "b", "c")]
    calls = [play.join(member_id, client="x") for member_id in ids]
    assert [call.parked for call in calls] == [True, True, False]
    assert calls[2].answer == FULL
    assert play.group.pending_joins == frozenset()
    play.after(2 * INITIAL_DELAY_MS)
    assert play.member_ids == set(ids[:2])
    assert calls[0].answer.generation == 1


def test_refused_pending_member_no_longer_holds_up_the_join_phase():
    """The same in a group that has members: the join phase ends without the one refused."""
    play = Playbook(max_size=2)
    (first,) = statics(play, "I1")
    pending = play.join(client="c").answer.member_id
    second = play.join(instance="I2")
    play.join(first, instance="I1")
    assert second.parked
    assert play.join(pending, client="c").answer == FULL
    play.join(first, instance="I1")
    assert second.answer.generation == 2


def overloaded(play: Playbook, *, static: bool) -> list[str]:
    """Load a group of four, stored where four were allowed, under `play`'s limit; name them."""
    before = Playbook()
    names = ("a", "b", "c", "d")
    calls = [before.join(instance=n) if static else before.join_dynamic(n) for n in names]
    before.after(2 * INITIAL_DELAY_MS)
    before.sync_everyone()
    play.start_loading()
    play.load(before.records[-1])
    return [call.answer.member_id for call in calls]


@pytest.mark.parametrize("static", [False, True])
def test_last_joining_members_are_kicked_out_when_rejoining_group_with_max_size(static):
    """The first to join again stay; who is refused is a member no longer."""
    play = Playbook(max_size=2)
    ids = overloaded(play, static=static)
    assert play.rebalances == [Reason.OVER_CAPACITY]
    names = ("a", "b", "c", "d")
    calls = [
        play.join(member_id, instance=name if static else None, protocols=("range",))
        for member_id, name in zip(ids, names, strict=True)
    ]
    assert [call.response for call in calls[2:]] == [FULL, FULL]
    assert play.member_ids == set(ids[:2])
    assert set(play.group.static_ids) == ({"a", "b"} if static else set())
    play.after(REBALANCE_MS)
    assert [call.answer.generation for call in calls[:2]] == [2, 2]
    assert play.transitions[-1].members == 2


def test_member_that_waits_already_is_not_shed():
    """A JoinGroup sent again takes the place of the one that waits."""
    play = Playbook(max_size=2)
    ids = overloaded(play, static=True)
    play.join(ids[0], instance="a", protocols=("range",))
    play.join(ids[1], instance="b", protocols=("range",))
    assert play.join(ids[0], instance="a", protocols=("range",)).parked
    assert play.state is State.PREPARING_REBALANCE
