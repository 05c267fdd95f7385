"""`group.max.size`, what is held to it, and what a release changed of that."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.events import TimerKind
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Call,
    Playbook,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, UNDER_ALL, by_rule

pytestmark = EVERY_RELEASE

MAX = 4
FULL = JoinResponse(Error.GROUP_MAX_SIZE_REACHED, member_id="")
IN, OUT = Error.NONE, Error.GROUP_MAX_SIZE_REACHED


def errors(calls: list[Call[JoinResponse]]) -> list[Error]:
    """Return what came of joins."""
    return [call.error for call in calls]


@pytest.mark.parametrize("static", [False, True])
@case(
    "testStaticMembersJoinGroupWithMaxSize",
    "testDynamicMembersJoinGroupWithMaxSize",
    "testDynamicMembersJoinGroupWithMaxSizeAndNotRequiredKnownMember",
    "testJoinGroupShouldReceiveErrorIfGroupOverMaxSize",
)
def test_a_full_group_refuses_who_has_no_id_yet(static):
    """In every state; current members may rejoin. (Dynamic ones: up to JoinGroup v3.)"""
    play = Playbook(max_size=MAX)
    who = [{"instance": f"I{n}"} if static else {"client": "c", "version": 3} for n in range(5)]
    calls = [play.join(**each) for each in who]
    assert calls[MAX].answer == FULL
    play.after(2 * INITIAL_DELAY_MS)
    assert errors(calls) == [IN] * MAX + [OUT]
    again = [
        play.join(call.answer.member_id, **each) for each, call in zip(who, calls, strict=True)
    ]
    assert errors(again) == errors(calls)
    assert (play.state, len(play.member_ids)) == (State.COMPLETING_REBALANCE, MAX)
    assert play.join(client="c").answer == FULL
    play.sync_everyone()
    assert play.join(client="c").answer == play.join(instance="N").answer == FULL
    assert len(play.member_ids) == MAX


@case(
    "testDynamicMembersJoinGroupWithMaxSizeAndRequiredKnownMember",
    "testDynamicMembersCanReJoinGroupWithMaxSizeWhileRebalancing",
    first={"2.4": [IN] * (MAX + 1), "2.6.0": [IN] * MAX + [OUT]},
    second={"2.4": [OUT] + [IN] * MAX, "2.6.0": [IN] * MAX + [OUT]},
)
def test_ids_are_given_out_freely_and_counted_where_they_are_used(first, second):
    """Before 2.6.0 they were admitted all the same, and the first to rejoin was refused.

    A member whose JoinGroup is pending has its place, and may repeat the JoinGroup.
    """
    for repeats in (False, True):
        play = Playbook(max_size=MAX)
        ids = [play.join(client="c").answer.member_id for _ in range(MAX + 1)]
        for _ in range(1 + repeats):
            calls = [play.join(member_id, client="c") for member_id in ids]
        assert play.state is State.PREPARING_REBALANCE
        play.after(2 * INITIAL_DELAY_MS)
        assert errors(calls) == first
        again = [play.join(member_id, client="c") for member_id in ids]
        assert errors(again) == second
        assert len(play.member_ids) == MAX


def overloaded(play: Playbook, *, static: bool) -> dict[str, str]:
    """Load a group that is too large for `play`'s broker; return its ids by their names."""
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


def test_member_that_waits_already_is_not_shed():
    """A JoinGroup sent again takes the place of the one that waits."""
    play = Playbook(max_size=2)
    (a, first), (b, second), *_ = overloaded(play, static=True).items()
    play.join(first, instance=a, protocols=("range",))
    play.join(second, instance=b, protocols=("range",))
    assert play.join(first, instance=a, protocols=("range",)).pending
    assert play.state is State.PREPARING_REBALANCE


@UNDER_ALL
def test_members_stay_in_a_group_of_just_the_size():
    """A known member of a full group may join again in every state."""
    play = Playbook(max_size=2)
    play.statics("L", "F")
    assert play.rejoin("F-1")[0].error is Error.NONE
    first, again, _ = play.rejoin("L-1", "L-1", "F-1")
    assert (first.pending, again.pending) == (True, False)  # the client took its first back
    assert play.state is State.COMPLETING_REBALANCE


FORGETS = by_rule(
    "refused_instance_is_forgotten",
    "forgets",
    {True: True, False: False},
    among=lambda profile: not profile.instance_keeps_its_place,
)


@FORGETS
def test_refused_instance_is_forgotten(forgets):
    """A static member that is refused its own place loses its name as well, up to 2.7.

    Nobody can fence or remove it by its instance; it lives on by its member id.
    """
    play = Playbook(max_size=2)
    play.statics("L", "F")
    assert play.join(instance="F").answer == FULL
    assert ("F" in play.group.static_ids) is not forgets
    assert "F-1" in play.member_ids
    assert play.heartbeat("F-1", instance="F") is Error.NONE
    gone = Error.UNKNOWN_MEMBER_ID if forgets else Error.NONE
    assert play.leave(("", "F")).members == (("", "F", gone),)


@FORGETS
def test_instance_that_was_forgotten_joins_as_another(forgets):
    """With the room that somebody leaves: two members then have one instance id."""
    play = Playbook(max_size=3)
    play.statics("L", "F", "G")
    assert play.join(instance="F").answer == FULL
    play.leave(("", "G"))
    assert play.join(instance="F").pending
    assert play.member_ids == ({"L-1", "F-1", "F-2"} if forgets else {"L-1", "F-2"})
    if forgets:
        play.after(SESSION_MS, alive=["L-1"])
        assert "F" not in play.group.static_ids  # with the old one the new one's mapping goes
        assert "F-2" in play.member_ids


@FORGETS
def test_instance_outlasts_its_refused_member(forgets):
    """Up to 2.7, where the JoinGroup that is refused is of a version without instance ids.

    A static rejoin or a removal of the instance fails with UNKNOWN_SERVER_ERROR. The member's own
    requests are answered UNKNOWN_MEMBER_ID, those of any other member id FENCED_INSTANCE_ID.
    """
    play = Playbook(max_size=2)
    ids = overloaded(play, static=True)
    calls = {
        name: play.join(member_id, protocols=("range",), version=4)
        for name, member_id in ids.items()
    }
    instance, *_ = [name for name, call in calls.items() if call.response == FULL]
    stays, *_ = [name for name, call in calls.items() if call.response != FULL]
    play.leave(("", stays))  # makes room
    gone = ids[instance]
    assert gone not in play.member_ids
    assert play.group.static_ids.get(instance) == (gone if forgets else None)
    other = Error.FENCED_INSTANCE_ID if forgets else Error.UNKNOWN_MEMBER_ID
    assert play.heartbeat("unknown", instance=instance) is other
    assert play.heartbeat(gone, instance=instance) is Error.UNKNOWN_MEMBER_ID
    assert play.join(gone, instance=instance).error is Error.UNKNOWN_MEMBER_ID
    for member_id in ("", gone):
        left = play.leave((member_id, instance))
        assert left.error is (Error.UNKNOWN_SERVER_ERROR if forgets else Error.NONE)
    back = play.join(instance=instance, protocols=("range",), version=5)
    if forgets:
        assert back.error is Error.UNKNOWN_SERVER_ERROR
    else:
        assert play.id_of(instance) in play.member_ids


@by_rule(
    "refused_pending_stays",
    "pending",
    {True: True, False: False},
    among=lambda profile: profile.last_to_rejoin_are_refused,
)
def test_refused_pending_stays(pending):
    """Up to 2.8 the group still waits for the refused pending member, until its timer expires.

    Later Scala sees at once that it need not, Java with the next join that is accepted, or at the
    rebalance timeout (seen live on 3.9.1).
    """
    play = Playbook(max_size=2)
    (first,) = play.statics("I1")
    refused = play.join(client="c").answer.member_id
    second = play.join(instance="I2")
    play.join(first, instance="I1")
    assert play.join(refused, client="c").answer == FULL
    assert (refused in play.group.pending_joins) == pending
    at_once = not pending and play.profile.refused_join_may_end_join_phase
    assert second.pending is not at_once
    play.join(first, instance="I1")
    assert second.pending == pending
    if pending:
        assert play.armed(TimerKind.SESSION, refused) == SESSION_MS
        play.after(SESSION_MS)
    assert second.answer.generation == 2
