"""The coordinator comes, goes and dies: cases 42 and 43; what it writes."""

import pytest

from reference_coordinator.effects import JoinAnswer, LeaveAnswer, Reason, SyncAnswer
from reference_coordinator.errors import Error
from reference_coordinator.events import TimerKind
from reference_coordinator.state import State
from tests.reference_coordinator.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    statics,
)


def test_request_handling_while_loading_in_progress():
    """Case 42, in Java: a heartbeat is waved through, everything else has to come again."""
    play = Playbook()
    play.start_loading()
    assert play.join(instance="I1").answer == JoinAnswer(Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert play.sync("m").answer == SyncAnswer(Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert play.heartbeat("m") is Error.NONE
    assert play.commit("m") is Error.COORDINATOR_LOAD_IN_PROGRESS
    assert play.leave(("m", None)) == LeaveAnswer(Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert play.transitions == []


def test_request_handling_of_the_wrong_coordinator():
    """NOT_COORDINATOR for everything, on a broker that gave the group up."""
    play = Playbook()
    (member,) = statics(play, "I1")
    play.unload()
    assert play.join(member, instance="I1").answer == JoinAnswer(Error.NOT_COORDINATOR)
    assert play.sync(member).error is Error.NOT_COORDINATOR
    assert play.heartbeat(member) is Error.NOT_COORDINATOR
    assert play.commit(member) is Error.NOT_COORDINATOR


def test_on_loaded_schedules_classic_group_member_heartbeats():
    """Every session begins anew at the load."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.after(SESSION_MS - 1)
    play.crash()
    assert (play.state, play.generation, play.leader) == (State.STABLE, 1, leader)
    play.after(SESSION_MS - 1)
    assert play.member_ids == {leader, follower}
    play.after(1)
    assert play.rebalances[-1] is Reason.SESSION_EXPIRED


def test_on_loaded_exceed_group_max_size_triggers_rebalance():
    """A group grown too large elsewhere rebalances at the load."""
    before = Playbook()
    statics(before, "a", "b", "c")
    play = Playbook(max_size=2)
    play.start_loading()
    play.load(before.records[-1])
    assert (play.state, play.rebalances) == (State.PREPARING_REBALANCE, [Reason.OVER_CAPACITY])
    assert play.armed(TimerKind.JOIN) == REBALANCE_MS
    assert len(play.member_ids) == 3


def test_load_group_with_static_member():
    """Ids, instances, protocol and assignments are as stored."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.crash()
    assert dict(play.group.static_ids) == {"L": leader, "F": follower}
    synced = play.sync(follower, instance="F").answer
    assert synced == SyncAnswer(Error.NONE, "consumer", "range", f"work of {follower}")
    assert play.heartbeat(leader, instance="L") is Error.NONE
    assert play.join(instance="F").answer.member_id == "F-2"
    assert play.rebalances == [Reason.NEW_MEMBER]


def test_classic_group_on_unloaded_empty_and_preparing_rebalance():
    """A parked JoinGroup is sent on."""
    play = Playbook()
    play.unload()
    play = Playbook()
    waiting = play.join(instance="I1")
    play.unload()
    assert waiting.answer == JoinAnswer(Error.NOT_COORDINATOR, "I1-1")


def test_classic_group_on_unloaded_completing_rebalance():
    """A parked SyncGroup is sent on."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    waiting = play.sync("F-1")
    play.unload()
    assert waiting.answer == SyncAnswer(Error.NOT_COORDINATOR)


def test_unload_fails_a_member_s_return_that_is_being_stored():
    """Java's runtime fails the writes under way before it unloads: the return is taken back."""
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    play.hold_writes = True
    back = play.join(instance="F")
    play.unload()
    assert back.answer == JoinAnswer(
        Error.NOT_COORDINATOR,
        member_id="",
        generation=1,
        protocol_type="consumer",
        protocol="range",
        leader=leader,
    )


def test_unload_fails_an_assignment_that_is_being_stored():
    """As above: the broker logs one more rebalance before it lets the group go."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    play.hold_writes = True
    waiting, leading = play.sync("F-1"), play.sync("L-1")
    play.unload()
    gone = SyncAnswer(Error.NOT_COORDINATOR)
    assert (waiting.answer, leading.answer) == (gone, gone)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.ASSIGNMENT_ERROR]


def test_known_follower_with_two_protocols_rebalances_after_a_load():
    """Facts 5.4: the record keeps the selected protocol alone, so two look like a change."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    assert play.join(follower, instance="F").error is Error.NONE
    play.crash()
    assert play.join(follower, instance="F").parked
    assert play.rebalances[-1] is Reason.MEMBER_METADATA


def test_generation_is_used_again_after_a_crash_before_the_assignment_was_stored():
    """Facts 1.7, seen live: what was not stored never was, its generation number included."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.join(leader, instance="L")
    play.join(follower, instance="F")
    assert (play.state, play.generation) == (State.COMPLETING_REBALANCE, 2)
    play.crash()
    assert (play.state, play.generation) == (State.STABLE, 1)
    play.join(leader, instance="L", protocols=("range",))
    play.join(follower, instance="F", protocols=("range",))
    assert play.generation == 2


@pytest.mark.parametrize(
    "first",
    [
        {"instance": "I1"},
        {"client": "c"},
        {"client": "c", "version": 3},
        {"instance": "I1", "protocols": ()},
    ],
    ids=["static", "dynamic", "dynamic in one step", "refused"],
)
def test_first_join_of_a_new_group_writes_an_empty_record(first):
    """Facts 1.8: Java stores a group when the first JoinGroup makes it, in generation 0.

    `classicGroupJoinToClassicGroup` with `isNewGroup`; once, whatever became of the join.
    """
    play = Playbook()
    play.join(**first)
    play.join(instance="I2")
    assert len(play.records) == 1
    record = play.records[0]
    assert (record.generation, record.protocol, record.leader) == (0, None, None)
    assert record.members == ()


def test_a_refused_first_join_still_makes_the_group():
    """Java creates the group before it looks at the protocols, so a commit finds it there."""
    play = Playbook()
    assert play.join(instance="I1", protocols=()).error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert play.commit("m", generation=0, version=9) is Error.UNKNOWN_MEMBER_ID


def test_a_join_with_an_id_does_not_make_the_group():
    """Only a member without an id can be the first."""
    play = Playbook()
    play.join("m", instance="I1")
    assert play.records == []
    assert play.commit("m", generation=0, version=9) is Error.GROUP_ID_NOT_FOUND


def test_group_that_waits_for_its_first_members_survives_a_crash_as_an_empty_one():
    """The record of the first join is what the next coordinator loads."""
    play = Playbook()
    play.join(instance="I1")
    play.crash()
    assert (play.state, play.generation, play.member_ids) == (State.EMPTY, 0, set())
    assert play.commit("I1-1", generation=0, version=9) is Error.UNKNOWN_MEMBER_ID
