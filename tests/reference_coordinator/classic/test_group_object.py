"""What a group does with its members, its protocol and its leader."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason, SyncResponse
from reference_coordinator.classic.events import Choices
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import (
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    statics,
)

LONG_MS = 100_000


@pytest.mark.parametrize("picked", ["range", "roundrobin"])
@case("testSelectProtocol")
def test_select_protocol_tied(picked):
    """Of two protocols with as many votes either may be selected: hash order decides in Kafka."""
    play = Playbook()
    play.choices = Choices(protocol=picked)
    play.join(instance="I1", protocols=("range", "roundrobin"))
    last = play.join(instance="I2", protocols=("roundrobin", "range"))
    play.after(2 * INITIAL_DELAY_MS)
    assert last.answer.protocol == picked
    assert [(b.value, b.refused) for b in play.bound if b.kind == "protocol"] == [(picked, "")]


@case("testSelectProtocol", "testSelectProtocolChoosesCompatibleProtocol")
def test_select_protocol():
    """Each member votes for its first that all support; most votes are no choice."""
    play = Playbook()
    play.choices = Choices(protocol="range")
    play.join(instance="I1", protocols=("range", "roundrobin"))
    play.join(instance="I2", protocols=("roundrobin", "range"))
    last = play.join(instance="I3", protocols=("sticky", "roundrobin", "range"))
    play.after(2 * INITIAL_DELAY_MS)
    assert last.answer.protocol == "roundrobin"
    assert [b.kind for b in play.bound if b.kind == "protocol"] == []
    play = Playbook()
    play.join(instance="I1", protocols=("range", "roundrobin"))
    last = play.join(instance="I2", protocols=("roundrobin", "blah"))
    play.after(2 * INITIAL_DELAY_MS)
    assert last.answer.protocol == "roundrobin"


@case("testSelectProtocolRaisesIfNoMembers", "testInitNextGenerationEmptyGroup")
def test_init_next_generation_empty_group():
    """A generation without members has a number, and neither protocol nor leader."""
    play = Playbook()
    play.join(instance="I1")
    assert (play.generation, play.group.protocol) == (0, None)
    play.leave(("", "I1"))
    play.after(INITIAL_DELAY_MS)
    assert (play.state, play.generation) == (State.EMPTY, 1)
    assert (play.group.protocol, play.leader) == (None, None)
    assert play.records[-1].protocol is None
    assert [b.kind for b in play.bound] == ["member_id"]


@pytest.mark.parametrize(
    ("protocols", "supported"),
    [(("roundrobin", "foo"), True), (("range", "bar"), True), (("foo", "bar"), False)],
)
@case("testSupportsProtocols")
def test_supports_protocols(protocols, supported):
    """An Empty group takes anything; who joins later shares a protocol with all who are there."""
    play = Playbook()
    assert play.join(instance="I1").pending
    newcomer = play.join(instance="I2", protocols=protocols)
    assert newcomer.pending == supported
    if not supported:
        assert newcomer.error is Error.INCONSISTENT_GROUP_PROTOCOL


@case("testInitNextGeneration")
def test_init_next_generation():
    """The join phase's end settles the protocol and counts one on."""
    play = Playbook()
    play.join(instance="I1", protocols=("roundrobin",))
    assert (play.generation, play.group.protocol) == (0, None)
    play.after(INITIAL_DELAY_MS)
    assert (play.generation, play.group.protocol) == (1, "roundrobin")
    assert play.state is State.COMPLETING_REBALANCE


@case(
    "testUpdateMember",
    timeouts={"2.4": (SESSION_MS, REBALANCE_MS), "3.3.2": (2 * SESSION_MS, 2 * REBALANCE_MS)},
)
def test_update_member(timeouts):
    """A rejoin updates the member; before 3.3.2 it did not update the timeouts."""
    play = Playbook()
    _, follower = statics(play, "L", "F")
    play.join(
        follower,
        instance="F",
        protocols=("roundrobin", "range"),
        session_ms=2 * SESSION_MS,
        rebalance_ms=2 * REBALANCE_MS,
    )
    member = play.member("F")
    assert tuple(name for name, _ in member.protocols) == ("roundrobin", "range")
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == timeouts
    assert play.group.rebalance_timeout_ms == timeouts[1]


@case("testReplaceGroupInstance")
def test_replace_group_instance():
    """Lead and instance pass to the new id; JoinGroup and SyncGroup of the old one are fenced."""
    play = Playbook()
    first = play.join(instance="I1")
    second = play.join(instance="I1")
    assert first.answer == JoinResponse(Error.FENCED_INSTANCE_ID, "I1-1")
    play.after(INITIAL_DELAY_MS)
    assert (second.answer.leader, play.id_of("I1")) == ("I1-2", "I1-2")
    play.hold_writes = True
    syncing = play.sync("I1-2", instance="I1")
    assert syncing.pending
    play.join(instance="I1")
    assert syncing.answer == SyncResponse(Error.FENCED_INSTANCE_ID)
    assert (play.leader, play.id_of("I1")) == ("I1-3", "I1-3")
    assert play.member("I1").sync is None
    assert play.member_ids == {"I1-3"}


@pytest.mark.parametrize("offered", ["L-1", "G-1", "F-1"])
@case("testElectNewJoinedLeader")
def test_elect_new_joined_leader(offered):
    """The lead of a silent leader passes to who waits, however many are silent beside it."""
    play = Playbook()
    statics(play, "L", "F", "G", session_ms=LONG_MS)
    rejoin = play.join("F-1", instance="F", subscription="payments", session_ms=LONG_MS)
    play.choices = Choices(leader=offered)
    play.after(REBALANCE_MS)
    assert rejoin.answer.leader == play.leader == "F-1"
    assert play.member_ids == {"L-1", "F-1", "G-1"}


@case("testMaybeElectNewJoinedLeaderChooseExisting")
def test_maybe_elect_new_joined_leader_choose_existing():
    """A leader that joined again stays the leader."""
    play = Playbook()
    statics(play, "L", "F", session_ms=LONG_MS)
    play.join("L-1", instance="L", session_ms=LONG_MS)
    newcomer = play.join(instance="N", session_ms=LONG_MS)
    play.choices = Choices(leader="N-1")
    play.after(REBALANCE_MS)
    assert newcomer.answer.leader == play.leader == "L-1"


@pytest.mark.parametrize(
    "state", [State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE, State.STABLE]
)
@case("testCannotAddStaticMemberIfAlreadyPresent")
def test_cannot_add_static_member_if_already_present(state):
    """In no state does an instance make a second member: a static rejoin replaces the first."""
    play = Playbook()
    play.join(instance="I1")
    if state is not State.PREPARING_REBALANCE:
        play.after(INITIAL_DELAY_MS)
    if state is State.STABLE:
        play.sync_everyone()
    assert play.state is state
    play.join(instance="I1")
    assert play.member_ids == {"I1-2"}
    assert dict(play.group.static_ids) == {"I1": "I1-2"}


@case(
    "testCannotAddPendingMemberIfStable",
    "testRemovalFromPendingAfterMemberIsStable",
    "testRemovalFromPendingWhenMemberIsRemoved",
)
def test_pending_members():
    """An id is pending until it is used, its member leaves, or it does not join in time.

    Nobody is a member and pending: who joins again with its id is not asked to do so twice.
    """
    play = Playbook()
    for leaves in (False, True):
        pending = play.join(client="c").answer.member_id
        assert (play.group.pending_joins, play.member_ids) == ({pending}, set())
        if leaves:
            play.leave((pending, None))
        else:
            play.after(SESSION_MS)
        assert (play.group.pending_joins, play.member_ids) == (frozenset(), set())
    play = Playbook()
    joined = play.join_dynamic("c")
    assert (play.group.pending_joins, len(play.member_ids)) == (frozenset(), 1)
    play.after(INITIAL_DELAY_MS)
    play.sync_everyone()
    member_id = joined.answer.member_id
    assert play.join(member_id, client="c").error is Error.NONE
    assert play.group.pending_joins == frozenset()
    pending = play.join(client="c", drawn=member_id).answer.member_id
    assert play.group.pending_joins == {pending}
    assert pending != member_id


def completing(*names: str) -> Playbook:
    """Bring static members to CompletingRebalance."""
    play = Playbook()
    for name in names:
        play.join(instance=name)
    play.after(2 * INITIAL_DELAY_MS)
    assert play.state is State.COMPLETING_REBALANCE
    return play


@case(
    "testCanAddAndRemovePendingSyncMember",
    "testNewGenerationClearsPendingSyncMembers",
    "testRemovalFromPendingSyncWhenMemberIsRemoved",
)
def test_pending_sync_members():
    """All members of a generation are waited for, each until it sends its SyncGroup or leaves.

    A rebalance clears the pending syncs of the last one; the next generation has its own.
    """
    play = completing("L", "F")
    assert play.sync("F-1", protocol="sticky").error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert play.group.pending_syncs == {"L-1", "F-1"}
    play.sync("F-1")
    assert play.group.pending_syncs == {"L-1"}
    play.join("F-1", instance="F", subscription="payments")
    assert (play.state, play.group.pending_syncs) == (State.PREPARING_REBALANCE, frozenset())
    play.join("L-1", instance="L", subscription="payments")
    assert (play.generation, play.group.pending_syncs) == (2, {"L-1", "F-1"})
    play.leave(("F-1", "F"))
    assert "F-1" not in play.group.pending_syncs
    play.join("L-1", instance="L")
    play.sync("L-1")
    assert play.group.pending_syncs == frozenset()
    play.after(2 * REBALANCE_MS, alive=["L-1"])
    assert play.rebalances[-1] is Reason.LEAVE


@case("testInvokeJoinCallback", "testNotInvokeJoinCallback")
def test_invoke_join_callback():
    """The join phase's end answers who waits in JoinGroup; of an absent member it has nothing."""
    play = Playbook()
    waiting = play.join(instance="I1")
    assert play.group.awaiting == 1
    play.after(INITIAL_DELAY_MS)
    assert (waiting.error, waiting.answer.member_id) == (Error.NONE, "I1-1")
    assert (play.group.awaiting, play.member("I1").join) == (0, None)
    play = Playbook()
    statics(play, "L", "F", session_ms=LONG_MS)
    before = len(play.calls)
    rejoin = play.join("L-1", instance="L", session_ms=LONG_MS)
    play.after(REBALANCE_MS)
    assert (rejoin.error, play.member_ids) == (Error.NONE, {"L-1", "F-1"})
    assert (play.member("F").join, len(play.calls)) == (None, before + 1)


@case("testInvokeSyncCallback", "testNotInvokeSyncCallback")
def test_invoke_sync_callback():
    """The leader's assignment answers who waits for it, and nobody else."""
    play = completing("L", "F", "G")
    waiting = play.sync("F-1")
    assert waiting.pending
    play.sync("L-1", **{"L-1": "a", "F-1": "b", "G-1": "c"})
    assert waiting.answer == SyncResponse(Error.NONE, "consumer", "range", "b")
    assert [m.sync for m in play.group.members.values()] == [None] * 3
    assert play.sync("G-1").answer.assignment == "c"


@case("testCompleteAllSyncFutures")
def test_complete_all_sync_futures():
    """A new rebalance sends everyone who waits in SyncGroup back, without an assignment."""
    play = completing("L", "F", "G")
    play.hold_writes = True
    waiting = [play.sync(f"{name}-1") for name in ("F", "G", "L")]
    assert [call.pending for call in waiting] == [True] * 3
    play.join(instance="N")
    assert [call.answer for call in waiting] == [SyncResponse(Error.REBALANCE_IN_PROGRESS)] * 3
    assert [m.sync for m in play.group.members.values()] == [None] * 4


@case(
    "testValidateOffsetCommit",
    strange_instance={"2.4": Error.REBALANCE_IN_PROGRESS, "3.0": Error.UNKNOWN_MEMBER_ID},
)
def test_validate_offset_commit(strange_instance):
    """Ids, then the generation, then the state; before 3.0 a strange instance did not count."""
    play = Playbook()
    assert play.commit(generation=-1) is Error.NONE
    play.join(instance="I1")
    play.after(INITIAL_DELAY_MS)
    assert play.commit(generation=-1) is Error.UNKNOWN_MEMBER_ID
    assert play.commit(generation=-1, version=2, transactional=True) is Error.NONE
    assert play.commit("unknown", instance="unknown") is Error.UNKNOWN_MEMBER_ID
    assert play.commit("I1-1", instance="unknown") is strange_instance
    assert play.commit("I1-1", instance="I1", generation=0) is Error.ILLEGAL_GENERATION
    assert play.commit("I1-1", instance="I1") is Error.REBALANCE_IN_PROGRESS
    play.sync_everyone()
    assert play.commit("I1-1", instance="I1") is Error.NONE
    play.join(instance="I1")
    assert play.commit("I1-1", instance="I1") is Error.FENCED_INSTANCE_ID
    play.force(State.DEAD)
    assert play.commit("I1-2", instance="I1") is Error.COORDINATOR_NOT_AVAILABLE


@case("testValidateDeleteGroup")
def test_validate_delete_group():
    """Only an Empty group may go, and a Dead one is gone."""
    play = Playbook()
    play.join(instance="I1")
    assert (play.state, play.delete()) == (State.PREPARING_REBALANCE, Error.NON_EMPTY_GROUP)
    play.after(INITIAL_DELAY_MS)
    assert (play.state, play.delete()) == (State.COMPLETING_REBALANCE, Error.NON_EMPTY_GROUP)
    play.sync_everyone()
    assert (play.state, play.delete()) == (State.STABLE, Error.NON_EMPTY_GROUP)
    play.leave(("", "I1"))
    assert (play.state, play.delete()) == (State.EMPTY, Error.NONE)
    assert play.delete() is Error.GROUP_ID_NOT_FOUND
    dead = Playbook()
    statics(dead, "I1")
    dead.force(State.DEAD)
    assert dead.delete() is Error.GROUP_ID_NOT_FOUND
