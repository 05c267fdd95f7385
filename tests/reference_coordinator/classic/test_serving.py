"""The coordinator comes, goes and dies; what it writes, and tells of its groups."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, LeaveResponse, Reason, SyncResponse
from reference_coordinator.classic.events import TimerKind
from reference_coordinator.classic.records import GroupRecord
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    statics,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_coordinator

pytestmark = EVERY_RELEASE


@case(
    "testRequestHandlingWhileLoadingInProgress",
    sync_error={"2.4": Error.REBALANCE_IN_PROGRESS, "java": Error.COORDINATOR_LOAD_IN_PROGRESS},
)
def test_request_handling_while_loading_in_progress(sync_error):
    """A heartbeat is answered NONE; every other request is refused while the group loads."""
    play = Playbook()
    play.start_loading()
    loading = Error.COORDINATOR_LOAD_IN_PROGRESS
    assert play.join(client="c").error is loading
    assert play.join("m", instance="I1").error is loading
    assert play.sync("m").answer == SyncResponse(sync_error)
    assert play.commit("m") is loading
    assert play.heartbeat("m") is Error.NONE
    assert play.leave(("m", None)) == LeaveResponse(loading)
    assert play.describe().error is loading
    assert play.delete() is loading
    assert play.transitions == []
    play.load(None)
    assert play.describe().error is Error.NONE


@case("testOnLoadedSchedulesClassicGroupMemberHeartbeats")
def test_on_loaded_schedules_classic_group_member_heartbeats():
    """Every session begins anew at the load."""
    play = Playbook()
    leader, follower = statics(play, "L", "F")
    play.after(SESSION_MS - 1)
    play.crash()
    assert (play.state, play.generation, play.leader) == (State.STABLE, 1, leader)
    assert play.armed(TimerKind.SESSION, follower) == SESSION_MS
    play.after(SESSION_MS - 1)
    assert play.member_ids == {leader, follower}
    play.after(1)
    assert play.rebalances[-1] is Reason.SESSION_EXPIRED


@case("testOnLoadedExceedGroupMaxSizeTriggersRebalance")
def test_on_loaded_exceed_group_max_size_triggers_rebalance():
    """A group grown too large elsewhere rebalances at the load."""
    before = Playbook()
    statics(before, "a", "b")
    play = Playbook(max_size=1)
    play.start_loading()
    play.load(before.records[-1])
    assert (play.state, play.rebalances) == (State.PREPARING_REBALANCE, [Reason.OVER_CAPACITY])
    assert play.armed(TimerKind.JOIN) == REBALANCE_MS
    assert len(play.member_ids) == 2


@case("testloadGroupWithStaticMember")
def test_load_group_with_static_member():
    """Ids, instances, protocol and assignments are as stored, of static and dynamic members."""
    play = Playbook()
    static, dynamic = play.join(instance="S"), play.join_dynamic("d")
    play.after(2 * INITIAL_DELAY_MS)
    play.sync_everyone()
    play.crash()
    ids = {static.answer.member_id, dynamic.answer.member_id}
    assert play.member_ids == ids
    assert dict(play.group.static_ids) == {"S": "S-1"}
    assert (play.group.protocol_type, play.group.protocol) == ("consumer", "range")
    synced = play.sync("S-1", instance="S").answer
    assert synced == SyncResponse(Error.NONE, "consumer", "range", "work of S-1")
    assert {play.heartbeat(member_id) for member_id in ids} == {Error.NONE}
    assert play.join(instance="S", version=5).answer.member_id == "S-2"
    assert play.rebalances == [Reason.NEW_MEMBER]


@case(
    "testClassicGroupOnUnloadedEmptyAndPreparingRebalance",
    error={"2.4": Error.NOT_COORDINATOR, "3.7-java": None},
)
def test_classic_group_on_unloaded_empty_and_preparing_rebalance(error):
    """A pending JoinGroup is answered NOT_COORDINATOR; Java's first release did not answer it."""
    empty = Playbook()
    (member,) = statics(empty, "I1")
    empty.leave((member, "I1"))
    empty.unload()
    assert empty.heartbeat(member) is Error.NOT_COORDINATOR
    play = Playbook()
    waiting = [play.join(client="c", version=3) for _ in range(2)]
    ids = [f"c-{n}" for n in (1, 2)]
    assert play.member_ids == set(ids)
    play.unload()
    answers = [None if error is None else JoinResponse(error, member_id) for member_id in ids]
    assert [call.response for call in waiting] == answers
    assert play.timers == {}


@case(
    "testClassicGroupOnUnloadedCompletingRebalance",
    error={"2.4": Error.NOT_COORDINATOR, "3.7-java": None},
)
def test_classic_group_on_unloaded_completing_rebalance(error):
    """A pending SyncGroup is answered NOT_COORDINATOR; Java's first release did not answer it."""
    play = Playbook()
    for instance in ("L", "F", "G"):
        play.join(instance=instance)
    play.after(2 * INITIAL_DELAY_MS)
    assert play.leader is not None
    followers = sorted(play.member_ids - {play.leader})
    waiting = [play.sync(follower) for follower in followers]
    assert [call.pending for call in waiting] == [True, True]
    play.unload()
    assert [call.response for call in waiting] == [
        None if error is None else SyncResponse(error)
    ] * 2


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
