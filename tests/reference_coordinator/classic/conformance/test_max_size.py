"""`group.max.size`."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.call import Call
from tests.reference_coordinator.classic.conformance.checklist import case
from tests.reference_coordinator.classic.playbook import INITIAL_DELAY_MS, REBALANCE_MS, Playbook

MAX = 4
FULL = JoinResponse(Error.GROUP_MAX_SIZE_REACHED, member_id="")
IN, OUT = Error.NONE, Error.GROUP_MAX_SIZE_REACHED


def errors(calls: list[Call[JoinResponse]]) -> list[Error]:
    """Return what came of joins."""
    return [call.error for call in calls]


@case("testStaticMembersJoinGroupWithMaxSize")
def test_static_members_join_group_with_max_size():
    """A member beyond the maximum is refused; current members may rejoin with their ids."""
    play = Playbook(max_size=MAX)
    names = [f"I{n}" for n in range(MAX + 1)]
    calls = [play.join(instance=name) for name in names]
    assert calls[MAX].answer == FULL
    play.after(2 * INITIAL_DELAY_MS)
    assert errors(calls) == [IN] * MAX + [OUT]
    assert play.state is State.COMPLETING_REBALANCE
    again = [
        play.join(call.answer.member_id, instance=name)
        for name, call in zip(names, calls, strict=True)
    ]
    assert errors(again) == errors(calls)
    assert (play.state, len(play.member_ids)) == (State.COMPLETING_REBALANCE, MAX)


@case(
    "testDynamicMembersJoinGroupWithMaxSizeAndRequiredKnownMember",
    first={"2.4": [IN] * (MAX + 1), "2.6.0": [IN] * MAX + [OUT]},
    second={"2.4": [OUT] + [IN] * MAX, "2.6.0": [IN] * MAX + [OUT]},
)
def test_dynamic_members_join_group_with_max_size_and_required_known_member(first, second):
    """Ids are given out freely; the size is held to where they are used.

    Before 2.6.0 they were admitted all the same, and the first to rejoin was refused.
    """
    play = Playbook(max_size=MAX)
    ids = [play.join(client="c").answer.member_id for _ in range(MAX + 1)]
    calls = [play.join(member_id, client="c") for member_id in ids]
    play.after(2 * INITIAL_DELAY_MS)
    assert errors(calls) == first
    again = [play.join(member_id, client="c") for member_id in ids]
    assert errors(again) == second
    assert len(play.member_ids) == MAX


@case(
    "testDynamicMembersJoinGroupWithMaxSize",
    "testDynamicMembersJoinGroupWithMaxSizeAndNotRequiredKnownMember",
)
def test_dynamic_members_join_group_with_max_size():
    """Up to JoinGroup v3 the size is held to at the first request, there being no second."""
    play = Playbook(max_size=MAX)
    calls = [play.join(client="c", version=3) for _ in range(MAX + 1)]
    assert calls[MAX].answer == FULL
    play.after(2 * INITIAL_DELAY_MS)
    assert errors(calls) == [IN] * MAX + [OUT]
    again = [play.join(call.answer.member_id, client="c", version=3) for call in calls]
    assert errors(again) == errors(calls)
    assert (play.state, len(play.member_ids)) == (State.COMPLETING_REBALANCE, MAX)


@case(
    "testDynamicMembersCanReJoinGroupWithMaxSizeWhileRebalancing",
    joined={"2.4": [IN] * (MAX + 1), "2.6.0": [IN] * MAX + [OUT]},
)
def test_dynamic_members_can_re_join_group_with_max_size_while_rebalancing(joined):
    """A member whose JoinGroup is pending has its place, and may repeat the JoinGroup."""
    play = Playbook(max_size=MAX)
    ids = [play.join(client="c").answer.member_id for _ in range(MAX + 1)]
    for member_id in ids:
        play.join(member_id, client="c")
    again = [play.join(member_id, client="c") for member_id in ids]
    assert play.state is State.PREPARING_REBALANCE
    play.after(2 * INITIAL_DELAY_MS)
    assert errors(again) == joined
    assert play.state is State.COMPLETING_REBALANCE


def overloaded(play: Playbook, *, static: bool) -> dict[str, str]:
    """Load a group that is two too many for `play`'s broker; return its ids by their names."""
    before = Playbook()
    names = [f"m{n}" for n in range(MAX + 2)]
    session_ms = 2 * REBALANCE_MS
    calls = [
        before.join(instance=name, session_ms=session_ms)
        if static
        else before.join_dynamic(name, session_ms=session_ms)
        for name in names
    ]
    before.after(2 * INITIAL_DELAY_MS)
    before.sync_everyone()
    play.start_loading()
    play.load(before.records[-1])
    return {name: call.answer.member_id for name, call in zip(names, calls, strict=True)}


@pytest.mark.parametrize("static", [False, True])
@case(
    "testLastJoiningMembersAreKickedOutWhenReJoiningGroupWithMaxSize",
    came={"2.4": [OUT] * 2 + [IN] * MAX, "2.6.0": [IN] * MAX + [OUT] * 2},
)
def test_last_joining_members_are_kicked_out_when_re_joining_group_with_max_size(came, static):
    """The first to join again stay, and who is refused is a member no longer.

    Before 2.6.0 the first were refused until the rest had room.
    """
    play = Playbook(max_size=MAX)
    ids = overloaded(play, static=static)
    assert play.rebalances == [Reason.OVER_CAPACITY]
    calls = [
        play.join(member_id, instance=name if static else None, protocols=("range",))
        for name, member_id in ids.items()
    ]
    if play.state is State.PREPARING_REBALANCE:
        play.after(REBALANCE_MS)  # where the last refusal has not ended it
    assert errors(calls) == came
    kept = {name for name, error in zip(ids, came, strict=True) if error is IN}
    assert play.member_ids == {ids[name] for name in kept}
    assert set(play.group.static_ids) == (kept if static else set())
    assert {call.answer.generation for call in calls if call.error is IN} == {2}


@case("testJoinGroupShouldReceiveErrorIfGroupOverMaxSize")
def test_join_group_should_receive_error_if_group_over_max_size():
    """A full group refuses who has no id yet, in every state but Empty."""
    play = Playbook(max_size=MAX)
    calls = [play.join(client="c", version=3) for _ in range(MAX)]
    assert play.join(client="c", version=3).answer == FULL
    play.after(2 * INITIAL_DELAY_MS)
    assert errors(calls) == [IN] * MAX
    assert play.join(client="c", version=3).answer == FULL
    assert play.join(client="c").answer == FULL
    play.sync_everyone()
    assert play.join(client="c").answer == FULL
    assert len(play.member_ids) == MAX
