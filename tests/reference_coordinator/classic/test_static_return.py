"""Static members return to a Stable group without the id they had."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason, SyncResponse
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import REBALANCE_MS, SESSION_MS, Playbook, statics

LONG_MS = 100_000
WRITE_ERRORS = pytest.mark.parametrize(
    "error", [Error.UNKNOWN_SERVER_ERROR, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR]
)
"""What Kafka makes of MESSAGE_TOO_LARGE, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER."""


def assert_replaced(play: Playbook, instance: str, old: str, new: str) -> None:
    """The old id is fenced wherever it names its instance, unknown where it does not."""
    assert play.id_of(instance) == new
    assert play.join(old, instance=instance).error is Error.FENCED_INSTANCE_ID
    assert play.sync(old, instance=instance).error is Error.FENCED_INSTANCE_ID
    assert play.heartbeat(old, instance=instance) is Error.FENCED_INSTANCE_ID
    assert play.join(old).error is Error.UNKNOWN_MEMBER_ID
    assert play.sync(old).error is Error.UNKNOWN_MEMBER_ID
    assert play.heartbeat(old) is Error.UNKNOWN_MEMBER_ID
    assert play.heartbeat(new, instance=instance) is Error.NONE


VERSIONS = {"2.4": (5, 6), "3.2": (5, 6, 7, 8, 9)}
"""Of JoinGroup, in which a static member may return."""


@case("staticMemberRejoinWithLeaderIdAndUnknownMemberId", versions=VERSIONS)
def test_static_member_rejoin_with_leader_id_and_unknown_member_id(versions):
    """Its response names its old id as the leader, so it does not act as the leader.

    From JoinGroup v9 on its response makes it the leader, with skipAssignment (KIP-814).
    """
    for version in versions:
        play = Playbook()
        leader, follower = statics(play, "L", "F")
        back = play.join(instance="L", version=version)
        tells = version == 9
        everyone = frozenset({("L-2", "L", "range:orders"), (follower, "F", "range:orders")})
        assert back.answer == JoinResponse(
            Error.NONE, "L-2", 1, "consumer", "range", "L-2" if tells else leader, tells,
            everyone if tells else frozenset(),
        )  # fmt: skip
        assert (play.state, play.leader) == (State.STABLE, "L-2")
        assert play.rebalances == [Reason.NEW_MEMBER]
        assert play.sync("L-2", instance="L").answer.assignment == f"work of {leader}"
        assert_replaced(play, "L", leader, "L-2")


@case("staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocol")
def test_static_member_rejoin_with_unknown_member_id_and_change_of_protocol():
    """Up to 2.6.0 nobody asks whether the group's protocol still is one of its own."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    back = play.join(instance="F", protocols=("roundrobin",), version=5)
    assert back.answer == JoinResponse(
        Error.NONE,
        member_id="F-2",
        generation=1,
        protocol_type="consumer",
        protocol="range",
        leader=leader,
    )
    assert (play.rebalances, play.state) == ([Reason.NEW_MEMBER], State.STABLE)
    old = play.join(follower, instance="F", protocols=("roundrobin",))
    assert old.error is Error.FENCED_INSTANCE_ID
    assert play.sync(follower, instance="F").error is Error.FENCED_INSTANCE_ID
    assert play.sync("F-2", instance="F").answer.assignment == f"work of {follower}"


@pytest.mark.parametrize(("instance", "other"), [("L", "F"), ("F", "L")])
@case("staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWithSelectedProtocolChanged")
def test_static_member_rejoin_with_unknown_member_id_and_change_of_protocol_with_selected_protocol_changed(  # noqa: E501
    instance, other
):
    """Without `range` the group selects another protocol; the other one, silent, stays a member."""
    play = Playbook()
    statics(play, "L", "F", session_ms=LONG_MS)
    back = play.join(instance=instance, protocols=("roundrobin",), session_ms=LONG_MS)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.PROTOCOL_CHANGE]
    assert back.pending
    play.after(REBALANCE_MS)
    new = f"{instance}-2"
    assert back.answer == JoinResponse(
        Error.NONE,
        member_id=new,
        generation=2,
        protocol_type="consumer",
        protocol="roundrobin",
        leader=new,
        members=frozenset(
            {(new, instance, "roundrobin:orders"), (f"{other}-1", other, "roundrobin:orders")}
        ),
    )
    assert play.state is State.COMPLETING_REBALANCE


@case("testReplaceStaticMemberInStableStateWithUpdatedProtocolTriggersRebalance")
def test_replace_static_member_in_stable_state_with_updated_protocol_triggers_rebalance():
    """Alone in its group, it is in the next generation at once."""
    play = Playbook()
    statics(play, "I1")
    back = play.join(instance="I1", protocols=("roundrobin",))
    assert (back.error, back.answer.generation) == (Error.NONE, 2)
    assert (back.answer.protocol, back.answer.skip_assignment) == ("roundrobin", False)
    assert (play.state, play.member_ids) == (State.COMPLETING_REBALANCE, {"I1-2"})


@case("staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchanged")
def test_static_member_rejoin_with_unknown_member_id_and_change_of_protocol_while_select_protocol_unchanged():  # noqa: E501
    """Fewer protocols, but still the selected one: no rebalance."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    back = play.join(instance="F", protocols=("range",))
    assert (back.error, back.answer.generation) == (Error.NONE, 1)
    assert (back.answer.leader, back.answer.members) == (leader, frozenset())
    assert (play.rebalances, play.state) == ([Reason.NEW_MEMBER], State.STABLE)
    assert play.sync("F-2", instance="F").answer.assignment == f"work of {follower}"
    assert_replaced(play, "F", follower, "F-2")


@WRITE_ERRORS
@case(
    "staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchanged"
    "PersistenceFailure",
    generation={"2.6.1": 1, "java": 2},
)
def test_static_member_rejoin_with_unknown_member_id_and_change_of_protocol_while_select_protocol_unchanged_persistence_failure(  # noqa: E501
    generation, error
):
    """What could not be stored has not happened; the old id goes on.

    Java gives it its old protocols back, so what it offered in vain is a change the next time;
    Scala leaves it with them.
    """
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.hold_writes = True
    back = play.join(instance="F", protocols=("range",), version=7)
    assert back.pending
    play.written(back, error)
    assert back.answer == JoinResponse(
        error, member_id="", generation=1, protocol_type="consumer", protocol="range", leader=leader
    )
    assert (play.rebalances, play.state) == ([Reason.NEW_MEMBER], State.STABLE)
    assert play.sync(follower, instance="F").answer.assignment == f"work of {follower}"
    play.hold_writes = False
    again = play.join(follower, instance="F", protocols=("range",))
    assert again.pending == (generation == 2)
    if again.pending:
        play.join(leader, instance="L", protocols=("range",))
    assert (again.error, again.answer.generation) == (Error.NONE, generation)
    assert play.sync(leader, instance="L").error is Error.NONE
    assert play.sync(follower, instance="F").error is Error.NONE
    assert play.heartbeat("F-2", instance="F") is Error.FENCED_INSTANCE_ID
    assert play.state is State.STABLE


@WRITE_ERRORS
@case(
    "testReplaceStaticMemberInStableStateErrors",
    offers={"2.6.1": ("range", "roundrobin"), "java": ("range",)},
)
def test_replace_static_member_in_stable_state_errors(offers, error):
    """With the old id its timeouts come back; its protocols as well, but in Java alone."""
    play = Playbook()
    (old,) = statics(play, "I1", protocols=("range",))
    play.hold_writes = True
    back = play.join(
        instance="I1", session_ms=2 * SESSION_MS, rebalance_ms=2 * REBALANCE_MS, version=7
    )
    assert back.pending
    assert [m.member_id for m in play.records[-1].members] == ["I1-2"]
    play.written(back, error)
    assert back.answer == JoinResponse(error, "", 1, "consumer", "range", leader=old)
    member = play.member("I1")
    assert (member.member_id, member.group_instance_id) == (old, "I1")
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (SESSION_MS, REBALANCE_MS)
    assert tuple(name for name, _ in member.protocols) == offers
    assert (play.state, play.generation, play.leader) == (State.STABLE, 1, old)


NEW_TIMEOUTS = {"2.4": (SESSION_MS, REBALANCE_MS), "3.3.2": (2 * SESSION_MS, 2 * REBALANCE_MS)}


@case(
    "staticMemberRejoinWithUpdatedSessionAndRebalanceTimeoutsAndPersistChange",
    timeouts=NEW_TIMEOUTS,
)
def test_static_member_rejoin_with_updated_session_and_rebalance_timeouts_and_persist_change(
    timeouts,
):
    """A static rejoin updates the timeouts; before 3.3.2 those of the first join stayed."""
    play = Playbook()
    statics(play, "L", "F")
    for instance in ("F", "L"):
        back = play.join(
            instance=instance, session_ms=2 * SESSION_MS, rebalance_ms=2 * REBALANCE_MS, version=5
        )
        assert (back.error, back.answer.generation) == (Error.NONE, 1)
        assert play.heartbeat(back.answer.member_id, instance=instance) is Error.NONE
        member = play.member(instance)
        assert (member.session_timeout_ms, member.rebalance_timeout_ms) == timeouts
    play.after(timeouts[0] - 1)
    assert play.rebalances == [Reason.NEW_MEMBER]
    play.after(1)
    assert play.state is State.EMPTY


@WRITE_ERRORS
@case("staticMemberRejoinWithUpdatedSessionAndRebalanceTimeoutsButCannotPersistChange")
def test_static_member_rejoin_with_updated_session_and_rebalance_timeouts_but_cannot_persist_change(
    error,
):
    """With the old id its old timeouts come back, and its session begins anew."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.hold_writes = True
    back = play.join(instance="F", session_ms=3 * SESSION_MS, rebalance_ms=2 * REBALANCE_MS)
    play.after(SESSION_MS / 2)
    play.heartbeat(leader)
    play.written(back, error)
    assert back.error is error
    assert (play.state, play.generation) == (State.STABLE, 1)
    for member in play.group.members.values():
        assert member.session_timeout_ms == SESSION_MS
        assert member.rebalance_timeout_ms == REBALANCE_MS
    play.after(SESSION_MS - 1)
    play.heartbeat(leader)
    assert play.member_ids == {leader, follower}
    play.after(1)
    assert play.member_ids == {leader}


def returned_alone(version: int, protocols: tuple[str, ...]) -> Playbook:
    """Let the one member of a group return with other protocols and timeouts."""
    play = Playbook()
    (old,) = statics(play, "I1", protocols=("range",))
    play.hold_writes = True
    back = play.join(
        instance="I1",
        protocols=protocols,
        session_ms=2 * SESSION_MS,
        rebalance_ms=2 * REBALANCE_MS,
        version=version,
    )
    assert back.pending
    record = play.records[-1]
    assert (record.generation, record.leader) == (1, "I1-2")
    assert {m.member_id: m.assignment for m in record.members} == {"I1-2": f"work of {old}"}
    play.written(back)
    skips = version == 9
    assert back.answer == JoinResponse(
        Error.NONE,
        member_id="I1-2",
        generation=1,
        protocol_type="consumer",
        protocol="range",
        leader="I1-2" if skips else old,
        skip_assignment=skips,
        members=frozenset({("I1-2", "I1", "range:orders")}) if skips else frozenset(),
    )
    assert (play.state, play.generation) == (State.STABLE, 1)
    assert play.rebalances == [Reason.NEW_MEMBER]
    return play


@case(
    "testReplaceStaticMemberInStableStateNoError",
    "testReplaceStaticMemberInStableStateSucceeds",
    timeouts=NEW_TIMEOUTS,
    versions={"2.4": (5,), "3.2": (5, 9)},
)
def test_replace_static_member_in_stable_state_no_error(timeouts, versions):
    """Once the new id is stored, the member has it, with the protocols it returned with.

    From JoinGroup v9 on the response names the leader's new id.
    """
    for version in versions:
        for protocols in (("range",), ("range", "roundrobin")):
            member = returned_alone(version, protocols).member("I1")
            assert (member.session_timeout_ms, member.rebalance_timeout_ms) == timeouts
            assert tuple(name for name, _ in member.protocols) == protocols


@case("staticMemberRejoinAsFollowerWithUnknownMemberId", versions=VERSIONS)
def test_static_member_rejoin_as_follower_with_unknown_member_id(versions):
    """The follower returns without a rebalance, to its old assignment, with nothing to skip."""
    for version in versions:
        play = Playbook()
        leader, follower = statics(play, "L", "F")
        back = play.join(instance="F", version=version)
        assert back.answer == JoinResponse(Error.NONE, "F-2", 1, "consumer", "range", leader)
        assert play.rebalances == [Reason.NEW_MEMBER]
        synced = play.sync("F-2", instance="F").answer
        assert synced == SyncResponse(Error.NONE, "consumer", "range", f"work of {follower}")
        assert_replaced(play, "F", follower, "F-2")
