"""The coordinator comes, goes and dies; what it writes of its groups."""

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
    in_state,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_coordinator

pytestmark = EVERY_RELEASE
GONE = Error.NOT_COORDINATOR


@case(
    "testRequestHandlingWhileLoadingInProgress",
    sync_error={"2.4": Error.REBALANCE_IN_PROGRESS, "java": Error.COORDINATOR_LOAD_IN_PROGRESS},
)
def test_requests_while_the_group_loads(play, sync_error):
    """A heartbeat is answered NONE; every other request is refused."""
    play.start_loading()
    loading = Error.COORDINATOR_LOAD_IN_PROGRESS
    assert play.join(client="c").error is loading
    assert play.join("m", instance="I1").error is loading
    assert play.sync("m").answer == SyncResponse(sync_error)
    assert play.commit("m") is loading
    assert play.heartbeat("m") is Error.NONE
    assert play.leave(("m", None)) == LeaveResponse(loading)
    assert play.transitions == []
    play.load(None)
    assert play.describe().error is Error.NONE


@case("testOnLoadedSchedulesClassicGroupMemberHeartbeats")
def test_every_session_begins_anew_at_the_load(play):
    play.statics("L", "F")
    play.after(SESSION_MS - 1)
    play.crash()
    assert (play.state, play.generation, play.leader) == (State.STABLE, 1, "L-1")
    assert play.armed(TimerKind.SESSION, "F-1") == SESSION_MS
    play.after(SESSION_MS - 1)
    assert play.member_ids == {"L-1", "F-1"}
    play.after(1)
    assert play.rebalances[-1] is Reason.SESSION_EXPIRED


@case("testOnLoadedExceedGroupMaxSizeTriggersRebalance")
def test_a_group_grown_too_large_elsewhere_rebalances_at_the_load():
    play = Playbook(max_size=1)
    play.start_loading()
    play.load(in_state(State.STABLE).records[-1])
    assert (play.state, play.rebalances) == (State.PREPARING_REBALANCE, [Reason.OVER_CAPACITY])
    assert play.armed(TimerKind.JOIN) == REBALANCE_MS
    assert len(play.member_ids) == 2


@case("testloadGroupWithStaticMember")
def test_a_loaded_group_is_as_it_was_stored(play):
    """Ids, instances, protocol and assignments, of static and dynamic members."""
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
    "testClassicGroupOnUnloadedCompletingRebalance",
    error={"2.4": GONE, "3.7-java": None},
)
def test_pending_requests_of_an_unloaded_group(play, error):
    """They are answered NOT_COORDINATOR; Java's first release did not answer them."""
    joins = [play.join(client="c", version=3) for _ in range(2)]
    play.unload()
    expected = [None if error is None else JoinResponse(error, f"c-{n}") for n in (1, 2)]
    assert [call.response for call in joins] == expected
    assert play.timers == {}
    play = Playbook()
    play.completing("L", "F", "G")
    syncs = [play.sync("F-1"), play.sync("G-1")]
    play.unload()
    expected = [None if error is None else SyncResponse(error)] * 2
    assert [call.response for call in syncs] == expected


@by_coordinator("keeps_id", scala=True, java=False)
def test_requests_to_a_broker_that_gave_the_group_up(play, keeps_id):
    """NOT_COORDINATOR for everything.

    Seen live on 3.9.1: Scala repeats the member id in JoinGroup's answer, Java does not.
    """
    play.statics("I1")
    play.unload()
    refused = JoinResponse(GONE, "I1-1" if keeps_id else "")
    assert play.join("I1-1", instance="I1").answer == refused
    assert play.sync("I1-1").error is GONE
    assert play.heartbeat("I1-1") is GONE
    assert play.commit("I1-1") is GONE


def test_unload_fails_what_is_being_stored(play):
    """The writes under way fail before the group goes: a return is taken back, and of a lost
    assignment the broker logs one more rebalance.

    Seen live on 3.9.1: Java's runtime fails them itself, in Scala the replica manager does.
    """
    play.statics("L", "F")
    play.hold_writes = True
    back = play.join(instance="F")
    play.unload()
    assert back.answer == JoinResponse(GONE, "", 1, "consumer", "range", "L-1")
    play = Playbook()
    play.completing("L", "F")
    play.hold_writes = True
    waiting, leading = play.sync("F-1"), play.sync("L-1")
    play.unload()
    assert (waiting.answer, leading.answer) == (SyncResponse(GONE), SyncResponse(GONE))
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.ASSIGNMENT_ERROR]


def test_known_follower_with_two_protocols_rebalances_after_a_load(play):
    """The record keeps the selected protocol alone, so two look like a change."""
    play.statics("L", "F")
    assert play.rejoin("F-1")[0].error is Error.NONE
    play.crash()
    assert play.rejoin("F-1")[0].pending
    assert play.rebalances[-1] is Reason.MEMBER_METADATA


def test_generation_is_used_again_after_a_crash_before_the_assignment_was_stored(play):
    """Seen live: what was not stored never was, its generation number included."""
    play.statics("L", "F")
    play.rejoin("L-1", "F-1")
    assert (play.state, play.generation) == (State.COMPLETING_REBALANCE, 2)
    play.crash()
    assert (play.state, play.generation) == (State.STABLE, 1)
    for name in "LF":
        play.join(f"{name}-1", instance=name, protocols=("range",))
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
def test_first_join_makes_the_group(play, records, first):
    """Whatever became of it; Java stores the group then, once, in generation 0.

    `classicGroupJoinToClassicGroup` with `isNewGroup`. Only a member without an id can be the
    first. Seen live on 3.9.1: the next coordinator loads an Empty group, or none at all.
    """
    play.join("m", instance="I1")
    assert (play.group.exists, play.records) == (False, [])
    play.join(**first)
    assert play.group.exists
    play.join(instance="I2")
    assert play.records == records
    play.crash()
    assert (play.state, play.generation, play.member_ids) == (State.EMPTY, 0, set())
    error = Error.UNKNOWN_MEMBER_ID if records else Error.ILLEGAL_GENERATION
    assert play.commit("I2-1", generation=0, version=8) is error
