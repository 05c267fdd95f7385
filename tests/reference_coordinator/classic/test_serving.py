"""The coordinator comes, goes and dies, beside Kafka's own tests; what it writes."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason, SyncResponse
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.playbook import INITIAL_DELAY_MS, Playbook, statics
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_coordinator

pytestmark = EVERY_RELEASE


@by_coordinator("keeps_id", scala=True, java=False)
def test_request_handling_of_the_wrong_coordinator(keeps_id):
    """NOT_COORDINATOR for everything, on a broker that gave the group up.

    Seen live on 3.9.1: Scala repeats the member id in JoinGroup's answer, Java does not.
    """
    play = Playbook()
    (member,) = statics(play, "I1")
    play.unload()
    refused = JoinResponse(Error.NOT_COORDINATOR, member if keeps_id else "")
    assert play.join(member, instance="I1").answer == refused
    assert play.sync(member).error is Error.NOT_COORDINATOR
    assert play.heartbeat(member) is Error.NOT_COORDINATOR
    assert play.commit(member) is Error.NOT_COORDINATOR


def test_unload_fails_a_member_s_return_that_is_being_stored():
    """The writes under way fail before the group goes, so the return is taken back.

    Seen live on 3.9.1: Java's runtime fails them itself, in Scala the replica manager does.
    """
    play = Playbook()
    leader, _ = statics(play, "L", "F")
    play.hold_writes = True
    back = play.join(instance="F")
    play.unload()
    assert back.answer == JoinResponse(
        Error.NOT_COORDINATOR,
        member_id="",
        generation=1,
        protocol_type="consumer",
        protocol="range",
        leader=leader,
    )


def test_unload_fails_an_assignment_that_is_being_stored():
    """The broker logs one more rebalance before it unloads the group."""
    play = Playbook()
    play.join(instance="L")
    play.join(instance="F")
    play.after(2 * INITIAL_DELAY_MS)
    play.hold_writes = True
    waiting, leading = play.sync("F-1"), play.sync("L-1")
    play.unload()
    gone = SyncResponse(Error.NOT_COORDINATOR)
    assert (waiting.answer, leading.answer) == (gone, gone)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.ASSIGNMENT_ERROR]


def test_known_follower_with_two_protocols_rebalances_after_a_load():
    """The record keeps the selected protocol alone, so two look like a change."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    assert play.join(follower, instance="F").error is Error.NONE
    play.crash()
    assert play.join(follower, instance="F").pending
    assert play.rebalances[-1] is Reason.MEMBER_METADATA


def test_generation_is_used_again_after_a_crash_before_the_assignment_was_stored():
    """Seen live: what was not stored never was, its generation number included."""
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
@by_coordinator("records", scala=[], java=[GroupRecord(0, None, None, None, ())])
def test_stores_new_group(records, first):
    """Java stores a group when the first JoinGroup makes it, in generation 0.

    `classicGroupJoinToClassicGroup` with `isNewGroup`; once, whatever became of the join.
    """
    play = Playbook()
    play.join(**first)
    play.join(instance="I2")
    assert play.records == records


def test_a_refused_first_join_still_makes_the_group():
    """The group is created before its protocols are looked at, so a commit finds it there."""
    play = Playbook()
    assert play.join(instance="I1", protocols=()).error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert play.commit("m", generation=0, version=9) is Error.UNKNOWN_MEMBER_ID


def test_a_join_with_an_id_does_not_make_the_group():
    """Only a member without an id can be the first."""
    play = Playbook()
    play.join("m", instance="I1")
    assert play.records == []
    assert play.commit("m", generation=0, version=8) is Error.ILLEGAL_GENERATION


@by_coordinator("error", scala=Error.ILLEGAL_GENERATION, java=Error.UNKNOWN_MEMBER_ID)
def test_group_that_waits_for_its_first_members_survives_a_crash_if_stored(error):
    """Seen live on 3.9.1: what the next coordinator loads, an Empty group or none at all."""
    play = Playbook()
    play.join(instance="I1")
    play.crash()
    assert (play.state, play.generation, play.member_ids) == (State.EMPTY, 0, set())
    assert play.commit("I1-1", generation=0, version=9) is error
