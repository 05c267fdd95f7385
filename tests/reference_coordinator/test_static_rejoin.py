"""Static members return to a Stable group with a new id: cases 7 and 11 to 16.

In all of these the member lost its id (it restarted). Members that come back with the id they
have: `test_known_member_rejoin`.
"""

import pytest

from reference_coordinator.effects import JoinAnswer, Reason
from reference_coordinator.errors import Error
from reference_coordinator.events import Choices
from reference_coordinator.state import State
from tests.reference_coordinator.playbook import REBALANCE_MS, SESSION_MS, Playbook, statics

EVERY_VERSION = pytest.mark.parametrize("version", [5, 6, 7, 8, 9])
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


@EVERY_VERSION
def test_static_member_rejoin_with_leader_id_and_unknown_member_id(version):
    """The leader returns without a rebalance; only v9 tells it that it leads (KIP-814)."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    back = play.join(instance="L", version=version)
    everyone = frozenset({("L-2", "L", "range:orders"), (follower, "F", "range:orders")})
    assert back.answer == JoinAnswer(
        Error.NONE,
        member_id="L-2",
        generation=1,
        protocol_type="consumer",
        protocol="range",
        leader="L-2" if version == 9 else leader,
        skip_assignment=version == 9,
        members=everyone if version == 9 else frozenset(),
    )
    assert (play.state, play.leader) == (State.STABLE, "L-2")
    assert play.rebalances == [Reason.NEW_MEMBER]
    assert play.sync("L-2", instance="L").answer.assignment == f"work of {leader}"
    assert_replaced(play, "L", leader, "L-2")


@EVERY_VERSION
def test_static_member_rejoin_as_follower_with_unknown_member_id(version):
    """The follower returns without a rebalance, to its old assignment."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    back = play.join(instance="F", version=version)
    assert back.answer == JoinAnswer(
        Error.NONE,
        member_id="F-2",
        generation=1,
        protocol_type="consumer",
        protocol="range",
        leader=leader,
    )
    assert play.rebalances == [Reason.NEW_MEMBER]
    synced = play.sync("F-2", instance="F").answer
    assert (synced.error, synced.assignment) == (Error.NONE, f"work of {follower}")
    assert (synced.protocol_type, synced.protocol) == ("consumer", "range")
    assert_replaced(play, "F", follower, "F-2")


def test_replaced_member_is_stored():
    """KAFKA-10284 (2.6.1): the new id is in the record, so that it survives the coordinator."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    before = len(play.records)
    play.hold_writes = True
    back = play.join(instance="L")
    assert back.parked
    record = play.records[-1]
    assert len(play.records) == before + 1
    assert (record.generation, record.leader, record.protocol) == (1, "L-2", "range")
    assert {m.member_id: m.assignment for m in record.members} == {
        "L-2": f"work of {leader}",
        follower: f"work of {follower}",
    }
    play.written(back)
    assert back.error is Error.NONE
    play.hold_writes = False
    play.crash()
    assert play.heartbeat("L-2", instance="L") is Error.NONE


@pytest.mark.parametrize("instance", ["L", "F"])
def test_static_member_rejoin_with_unknown_member_id_and_selected_protocol_changed(instance):
    """Without `range` the group would select another protocol, so it rebalances."""
    play = Playbook()
    statics(play, "L", "F")
    back = play.join(instance=instance, protocols=("roundrobin",))
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.PROTOCOL_CHANGE]
    assert back.parked
    other = "F" if instance == "L" else "L"
    play.join(play.id_of(other), instance=other)
    answer = back.answer
    assert (answer.error, answer.generation, answer.protocol) == (Error.NONE, 2, "roundrobin")
    assert answer.member_id == play.id_of(instance) == f"{instance}-2"
    assert not answer.skip_assignment
    assert play.leader == ("L-2" if instance == "L" else "L-1")


def test_static_member_rejoin_with_unknown_member_id_while_select_protocol_unchanged():
    """Fewer protocols, but still the selected one: no rebalance."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    back = play.join(instance="F", protocols=("range",))
    assert (back.error, back.answer.generation) == (Error.NONE, 1)
    assert (play.rebalances, play.state) == ([Reason.NEW_MEMBER], State.STABLE)
    assert play.sync("F-2", instance="F").answer.assignment == f"work of {follower}"
    assert_replaced(play, "F", follower, "F-2")


@pytest.mark.parametrize(
    ("picked", "rebalances"),
    [("range", []), ("roundrobin", [Reason.PROTOCOL_CHANGE])],
)
def test_static_member_whose_return_makes_a_tie_of_the_votes(picked, rebalances):
    """Cases 11 and 12 meet: a tie is broken by hash order, so what was observed decides."""
    play = Playbook()
    statics(play, "L", "F")
    play.choices = Choices(protocol=picked)
    back = play.join(instance="F", protocols=("roundrobin", "range"))
    assert play.rebalances[1:] == rebalances
    play.join("L-1", instance="L")
    assert back.answer.protocol == picked


@WRITE_ERRORS
@pytest.mark.parametrize("instance", ["L", "F"])
@pytest.mark.parametrize("version", [8, 9])
def test_static_member_rejoin_while_select_protocol_unchanged_persistence_failure(
    error, instance, version
):
    """What could not be stored has not happened; the old id goes on."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    old = {"L": leader, "F": follower}[instance]
    play.hold_writes = True
    back = play.join(instance=instance, protocols=("range",), version=version)
    play.written(back, error)
    assert back.answer == JoinAnswer(
        error,
        member_id="",
        generation=1,
        protocol_type="consumer",
        protocol="range",
        leader=leader,
    )
    assert play.rebalances == [Reason.NEW_MEMBER]
    assert (play.state, play.leader) == (State.STABLE, leader)
    assert [name for name, _ in play.member(instance).protocols] == ["range", "roundrobin"]
    assert play.heartbeat(old, instance=instance) is Error.NONE
    assert play.sync(old, instance=instance).answer.assignment == f"work of {old}"
    assert play.heartbeat(f"{instance}-2", instance=instance) is Error.FENCED_INSTANCE_ID
    assert play.heartbeat(f"{instance}-2") is Error.UNKNOWN_MEMBER_ID


@EVERY_VERSION
@pytest.mark.parametrize("instance", ["L", "F"])
def test_replace_static_member_in_stable_state_with_updated_timeouts_and_persist_change(
    version, instance
):
    """Case 14 (KAFKA-14009): the new timeouts hold, the session's from the first heartbeat on."""
    play = Playbook()
    statics(play, "L", "F")
    play.join(
        instance=instance,
        version=version,
        session_ms=3 * SESSION_MS,
        rebalance_ms=2 * REBALANCE_MS,
    )
    other = "F-1" if instance == "L" else "L-1"
    member = play.member(instance)
    assert member.session_timeout_ms == 3 * SESSION_MS
    assert member.rebalance_timeout_ms == 2 * REBALANCE_MS
    play.heartbeat(member.member_id)
    play.after(3 * SESSION_MS - 1, alive=[other])
    assert play.rebalances == [Reason.NEW_MEMBER]
    play.after(1)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.SESSION_EXPIRED]


def test_replace_static_member_in_stable_state_starts_with_the_old_session():
    """The first session still runs with the old timeout."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    play.join(instance="F", session_ms=3 * SESSION_MS)
    play.sync("F-2", instance="F")  # the Java coordinator does not restart the session here (5.3)
    play.after(SESSION_MS - 1)
    play.heartbeat(leader)
    assert play.rebalances == [Reason.NEW_MEMBER]
    play.after(1)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.SESSION_EXPIRED]
    assert play.member_ids == {leader}


@WRITE_ERRORS
def test_replace_static_member_in_stable_state_with_updated_timeouts_but_cannot_persist_change(
    error,
):
    """With the old id its old timeouts come back."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.hold_writes = True
    back = play.join(instance="F", session_ms=3 * SESSION_MS, rebalance_ms=2 * REBALANCE_MS)
    play.written(back, error)
    assert back.error is error
    assert play.member("F").session_timeout_ms == SESSION_MS
    assert play.member("F").rebalance_timeout_ms == REBALANCE_MS
    play.after(SESSION_MS - 1)
    play.heartbeat(leader)
    assert play.member_ids == {leader, follower}
    play.after(1)
    assert play.member_ids == {leader}


def test_second_return_while_the_first_is_being_stored():
    """Each return fences the one before, answered or not; only the last is answered NONE."""
    play = Playbook()
    statics(play, "L", "F")
    play.hold_writes = True
    first = play.join(instance="F")
    second = play.join(instance="F")
    assert first.answer == JoinAnswer(Error.FENCED_INSTANCE_ID, "F-2")
    play.written(first)
    assert second.parked
    play.written(second)
    assert (second.error, second.answer.member_id) == (Error.NONE, "F-3")
    assert play.rebalances == [Reason.NEW_MEMBER]


def test_rebalance_before_a_follower_s_return_is_stored():
    """A write that comes out well answers its join, whatever the group does by then (Java).

    The member is told the running generation and has to join again.
    """
    play = Playbook()
    _, _, other = statics(play, "L", "F", "G")
    play.hold_writes = True
    back = play.join(instance="F")
    play.leave((other, "G"))
    assert play.state is State.PREPARING_REBALANCE
    play.written(back)
    assert (back.error, back.answer.generation) == (Error.NONE, 1)


def test_rebalance_before_a_leader_s_return_is_stored():
    """As above, but v9 would list the members, and Java refuses to in PreparingRebalance.

    `ClassicGroup.currentClassicGroupMembers` throws there, inside the write's callback, so the
    join stays parked and counts for the rebalance under way.
    """
    play = Playbook()
    _, follower, other = statics(play, "L", "F", "G")
    play.hold_writes = True
    back = play.join(instance="L", version=9)
    play.leave((other, "G"))
    play.written(back)
    assert back.parked
    play.join(follower, instance="F")
    assert (back.error, back.answer.generation) == (Error.NONE, 2)
    assert not back.answer.skip_assignment
