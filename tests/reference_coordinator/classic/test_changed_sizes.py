"""`group.max.size`, where a release changed what is held to it."""

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason
from reference_coordinator.classic.events import TimerKind
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    SESSION_MS,
    Playbook,
    statics,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, UNDER_ALL, by_rule

pytestmark = EVERY_RELEASE

FULL = JoinResponse(Error.GROUP_MAX_SIZE_REACHED, member_id="")


def overloaded() -> tuple[Playbook, dict[str, str]]:
    """Load a group of four, stored where there was room for them, where there is for two."""
    before, play = Playbook(), Playbook(max_size=2)
    names = ("a", "b", "c", "d")
    ids = statics(before, *names)
    play.start_loading()
    play.load(before.records[-1])
    return play, dict(zip(names, ids, strict=True))


@by_rule(
    "last_to_rejoin_are_refused",
    "refused",
    {True: ["c", "d"], False: ["a", "b"]},
)
def test_last_to_rejoin_are_shed(refused):
    """KAFKA-9885: of a group that grew too large for its new broker, who has to go."""
    play, ids = overloaded()
    assert play.rebalances == [Reason.OVER_CAPACITY]
    calls = {
        name: play.join(member_id, instance=name, protocols=("range",))
        for name, member_id in ids.items()
    }
    assert [name for name, call in calls.items() if call.response == FULL] == refused
    assert set(play.group.static_ids) == ids.keys() - set(refused)


@by_rule("last_to_rejoin_are_refused", "accepted", {True: 2, False: 3})
def test_pending_members_and_the_size(accepted):
    """Before 2.6 ids were given out while there was room, and who had one got in."""
    play = Playbook(max_size=2)
    ids = [play.join(client="c").answer.member_id for _ in range(3)]
    calls = [play.join(member_id, client="c") for member_id in ids]
    assert [call.pending for call in calls] == [True] * accepted + [False] * (3 - accepted)
    play.after(2 * INITIAL_DELAY_MS)
    assert len(play.member_ids) == accepted
    assert play.join(client="c").answer == FULL


@UNDER_ALL
def test_members_stay_in_a_group_of_just_the_size():
    """A known member of a full group may join again in every state."""
    play = Playbook(max_size=2)
    leader, follower = statics(play, "L", "F")
    assert play.join(follower, instance="F").error is Error.NONE
    waiting = play.join(leader, instance="L")
    assert play.join(leader, instance="L").pending
    play.join(follower, instance="F")
    assert play.state is State.COMPLETING_REBALANCE
    assert waiting.pending  # the client took its JoinGroup back
    assert play.join(instance="N").answer == FULL


@by_rule(
    "refused_instance_is_forgotten",
    "known",
    {True: False, False: True},
    among=lambda profile: not profile.instance_keeps_its_place,
)
def test_refused_instance_is_forgotten(known):
    """A static member that is refused its own place loses its name as well, up to 2.7.

    Nobody can fence or remove it by its instance; it lives on by its member id.
    """
    play = Playbook(max_size=2)
    _, follower = statics(play, "L", "F")
    assert play.join(instance="F").answer == FULL
    assert ("F" in play.group.static_ids) == known
    assert follower in play.member_ids
    assert play.heartbeat(follower, instance="F") is Error.NONE
    gone = Error.NONE if known else Error.UNKNOWN_MEMBER_ID
    assert play.leave(("", "F")).members == (("", "F", gone),)


@by_rule(
    "refused_instance_is_forgotten",
    "members",
    {True: {"L-1", "F-1"}, False: {"L-1"}},
    among=lambda profile: not profile.instance_keeps_its_place,
)
def test_instance_that_was_forgotten_joins_as_another(members):
    """With the room that somebody leaves: two members then have one instance id."""
    play = Playbook(max_size=3)
    statics(play, "L", "F", "G")
    assert play.join(instance="F").answer == FULL
    play.leave(("", "G"))
    back = play.join(instance="F")
    assert back.pending
    assert play.member_ids - {"F-2"} == members
    if "F-1" in members:
        play.heartbeat("L-1")
        play.after(SESSION_MS - 1)
        play.heartbeat("L-1")
        play.after(1)
        assert "F" not in play.group.static_ids  # with the old one the new one's mapping goes
        assert "F-2" in play.member_ids


@by_rule(
    "refused_instance_is_forgotten",
    "outlasts",
    {True: True, False: False},
    among=lambda profile: not profile.instance_keeps_its_place,
)
def test_instance_outlasts_its_refused_member(outlasts):
    """Up to 2.7, where the JoinGroup that is refused is of a version without instance ids.

    A static rejoin or a removal of the instance fails with UNKNOWN_SERVER_ERROR. The member's own
    requests are answered UNKNOWN_MEMBER_ID, those of any other member id FENCED_INSTANCE_ID.
    """
    play, ids = overloaded()
    calls = {
        name: play.join(member_id, protocols=("range",), version=4)
        for name, member_id in ids.items()
    }
    instance, *_ = [name for name, call in calls.items() if call.response == FULL]
    stays, *_ = [name for name, call in calls.items() if call.response != FULL]
    play.leave(("", stays))  # makes room
    gone = ids[instance]
    assert gone not in play.member_ids
    assert play.group.static_ids.get(instance) == (gone if outlasts else None)
    other = Error.FENCED_INSTANCE_ID if outlasts else Error.UNKNOWN_MEMBER_ID
    assert play.heartbeat("unknown", instance=instance) is other
    assert play.heartbeat(gone, instance=instance) is Error.UNKNOWN_MEMBER_ID
    assert play.join(gone, instance=instance).error is Error.UNKNOWN_MEMBER_ID
    for member_id in ("", gone):
        left = play.leave((member_id, instance))
        assert left.error is (Error.UNKNOWN_SERVER_ERROR if outlasts else Error.NONE)
    back = play.join(instance=instance, protocols=("range",), version=5)
    if outlasts:
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
    """Up to 2.8 the group still waits for the refused pending member, until its timer expires."""
    play = Playbook(max_size=2)
    (first,) = statics(play, "I1")
    refused = play.join(client="c").answer.member_id
    second = play.join(instance="I2")
    play.join(first, instance="I1")
    assert play.join(refused, client="c").answer == FULL
    assert (refused in play.group.pending_joins) == pending
    play.join(first, instance="I1")
    assert second.pending == pending
    if pending:
        assert play.armed(TimerKind.SESSION, refused) == SESSION_MS
        play.after(SESSION_MS)
        assert second.answer.generation == 2
