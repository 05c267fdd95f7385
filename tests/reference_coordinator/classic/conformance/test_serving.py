"""The coordinator comes and goes, and tells of its groups."""

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, LeaveResponse, Reason, SyncResponse
from reference_coordinator.classic.events import TimerKind
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.conformance.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    statics,
)


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
