"""Members join again with the id they have; what then becomes of protocol, leader and ids."""

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
    accepted,
    listed,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE

pytestmark = EVERY_RELEASE
LONG_MS = 100_000


@case("staticMemberRejoinWithLeaderIdAndKnownMemberId")
def test_leader_that_joins_again_starts_a_rebalance():
    """The silent follower's session ends before it."""
    play = Playbook(initial_delay_ms=50)
    play.statics("L", "F", session_ms=250)
    (again,) = play.rejoin("L-1", session_ms=250)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEADER_REJOIN]
    play.after(249)
    assert again.pending
    play.after(1)
    assert again.answer == accepted("L-1", 2, "L-1", "L-1")
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEADER_REJOIN]


@case("testJoinGroupFromUnchangedLeaderShouldRebalance")
def test_dynamic_leader_that_joins_again_starts_a_rebalance(play):
    first = play.join_dynamic("a")
    play.after(INITIAL_DELAY_MS)
    play.sync_everyone()
    again = play.join(first.answer.member_id, client="a")
    assert (again.error, again.answer.generation) == (Error.NONE, 2)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.LEADER_REJOIN]


@pytest.mark.parametrize("state", [State.DEAD, State.EMPTY, None])
@case(
    "staticMemberRejoinWithLeaderIdAndUnexpectedDeadGroup",
    "staticMemberRejoinWithLeaderIdAndUnexpectedEmptyGroup",
)
def test_group_without_members_or_future_takes_no_old_member_back(play, state):
    """Dead, Empty though they are still there, or Empty since they left."""
    play.statics("L", "F")
    if state is None:
        play.leave(("", "L"), ("", "F"))
    else:
        play.force(state)
    (again,) = play.rejoin("L-1")
    dead = state is State.DEAD
    error = Error.COORDINATOR_NOT_AVAILABLE if dead else Error.UNKNOWN_MEMBER_ID
    assert again.answer == JoinResponse(error, "L-1")


@pytest.mark.parametrize("completing", [False, True])
@case(
    "staticMemberRejoinWithFollowerIdAndChangeOfProtocol",
    "staticMemberRejoinWithKnownLeaderIdToTriggerRebalanceAndFollowerWithChangeofProtocol",
)
def test_changed_follower_starts_a_rebalance(play, completing):
    """In Stable and CompletingRebalance. The silent leader is static: it loses the lead, and stays.

    Other metadata under the same protocol names counts as a change, too.
    """
    play.statics("L", "F", session_ms=LONG_MS)
    if completing:
        play.rejoin("L-1", "F-1", session_ms=LONG_MS)
        assert play.state is State.COMPLETING_REBALANCE
    generation = play.generation + 1
    again = play.join("F-1", instance="F", protocols=("roundrobin",), session_ms=LONG_MS)
    assert (play.state, play.rebalances[-1]) == (State.PREPARING_REBALANCE, Reason.MEMBER_METADATA)
    play.after(REBALANCE_MS - 1)
    assert again.pending
    play.after(1)
    in_both = "L-1", "F-1"
    assert again.answer == accepted("F-1", generation, "F-1", *in_both, protocol="roundrobin")
    other = Playbook()
    other.statics("L", "F")
    if completing:
        other.rejoin("L-1", "F-1")
    assert other.join("F-1", instance="F", subscription="orders,payments").pending
    assert other.rebalances[-1] is Reason.MEMBER_METADATA


@pytest.mark.parametrize("picked", ["range", "roundrobin"])
@case("testSelectProtocol")
def test_tied_votes_leave_the_protocol_open(play, picked):
    """Of two protocols with as many votes either may be selected: hash order decides in Kafka."""
    play.choices = Choices(protocol=picked)
    play.join(instance="I1", protocols=("range", "roundrobin"))
    last = play.join(instance="I2", protocols=("roundrobin", "range"))
    play.after(2 * INITIAL_DELAY_MS)
    assert last.answer.protocol == picked
    assert [(b.value, b.refused) for b in play.bound if b.kind == "protocol"] == [(picked, "")]


@pytest.mark.parametrize(
    ("offers", "selected"),
    [
        ([("range", "roundrobin"), ("roundrobin", "range"), ("sticky", "roundrobin", "range")],
         "roundrobin"),
        ([("range", "roundrobin"), ("roundrobin", "blah")], "roundrobin"),
        ([("range", "roundrobin"), ("range", "bar")], "range"),
        ([("range", "roundrobin"), ("foo", "bar")], None),
    ],
    ids=["most votes", "the only common one", "the first's first", "none in common"],
)  # fmt: skip
@case(
    "testSelectProtocol",
    "testSelectProtocolChoosesCompatibleProtocol",
    "testSupportsProtocols",
)
def test_select_protocol(play, offers, selected):
    """Each member votes for its first that all support; who shares none with all is refused."""
    play.choices = Choices(protocol="range")
    *_, last = [play.join(instance=f"I{n}", protocols=each) for n, each in enumerate(offers)]
    if selected is None:
        assert last.error is Error.INCONSISTENT_GROUP_PROTOCOL
        return
    play.after(2 * INITIAL_DELAY_MS)
    assert last.answer.protocol == selected
    assert [b.kind for b in play.bound if b.kind == "protocol"] == []


@case("testSelectProtocolRaisesIfNoMembers", "testInitNextGenerationEmptyGroup")
def test_generation_without_members(play):
    """It has a number, and neither protocol nor leader."""
    play.join(instance="I1")
    assert (play.generation, play.group.protocol) == (0, None)
    play.leave(("", "I1"))
    play.after(INITIAL_DELAY_MS)
    assert (play.state, play.generation) == (State.EMPTY, 1)
    assert (play.group.protocol, play.leader, play.records[-1].protocol) == (None, None, None)
    assert [b.kind for b in play.bound] == ["member_id"]


@pytest.mark.parametrize("offered", ["L-1", "G-1", "F-1"])
@case("testElectNewJoinedLeader")
def test_lead_of_a_silent_leader_passes_to_who_waits(play, offered):
    """However many are silent beside it."""
    play.statics("L", "F", "G", session_ms=LONG_MS)
    again = play.join("F-1", instance="F", subscription="payments", session_ms=LONG_MS)
    play.choices = Choices(leader=offered)
    play.after(REBALANCE_MS)
    assert again.answer.leader == play.leader == "F-1"
    assert play.member_ids == {"L-1", "F-1", "G-1"}


@pytest.mark.parametrize("picked", ["F-1", "N-1", "L-1"])
@case("testStaticMemberLeaderFailToRejoinBeforeRebalanceTimeout")
def test_either_of_those_who_came_may_lead(play, picked):
    """The silent leader stays a member, and cannot be picked."""
    play.statics("L", "F", session_ms=LONG_MS)
    newcomer = play.join(instance="N", session_ms=LONG_MS)
    (again,) = play.rejoin("F-1", session_ms=LONG_MS)
    play.choices = Choices(leader=picked)
    play.after(REBALANCE_MS)
    refused = picked if picked == "L-1" else ""
    assert [b.refused for b in play.bound if b.kind == "leader"] == [refused]
    assert play.leader in ({"F-1", "N-1"} if refused else {picked})
    leading = newcomer if play.leader == "N-1" else again
    assert newcomer.answer.leader == again.answer.leader == play.leader
    assert newcomer.answer.generation == again.answer.generation == 2
    assert leading.answer.members == listed("L-1", "F-1", "N-1")
    assert play.member_ids == {"L-1", "F-1", "N-1"}


@case(
    "testStaticMemberFollowerFailToRejoinBeforeRebalanceTimeout",
    "testMaybeElectNewJoinedLeaderChooseExisting",
    "testNotInvokeJoinCallback",
)
def test_leader_that_joined_again_stays_the_leader(play):
    """At the rebalance timeout the silent follower is still one of three, and hears nothing."""
    play.statics("L", "F", session_ms=LONG_MS)
    newcomer = play.join(instance="N", session_ms=LONG_MS)
    (again,) = play.rejoin("L-1", session_ms=LONG_MS)
    play.choices = Choices(leader="N-1")
    asked = len(play.calls)
    play.after(REBALANCE_MS - 1)
    assert (again.pending, newcomer.pending) == (True, True)
    play.after(1)
    assert again.answer.members == listed("L-1", "F-1", "N-1")
    assert newcomer.answer == accepted("N-1", 2, "L-1")
    assert play.transitions[-1].members == play.transitions[-1].static_members == 3
    assert (play.member("F").join, len(play.calls)) == (None, asked)


@case(
    "testCannotAddPendingMemberIfStable",
    "testRemovalFromPendingAfterMemberIsStable",
    "testRemovalFromPendingWhenMemberIsRemoved",
)
def test_pending_members(play):
    """An id is pending until it is used, its member leaves, or it does not join in time.

    Nobody is a member and pending: who joins again with its id is not asked to do so twice.
    """
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


@case(
    "testCanAddAndRemovePendingSyncMember",
    "testNewGenerationClearsPendingSyncMembers",
    "testRemovalFromPendingSyncWhenMemberIsRemoved",
)
def test_pending_sync_members(play):
    """All members of a generation are waited for, each until it sends its SyncGroup or leaves.

    A rebalance clears the pending syncs of the last one; the next generation has its own.
    """
    play.completing("L", "F")
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
    play.rejoin("L-1")
    play.sync("L-1")
    assert play.group.pending_syncs == frozenset()
    play.after(2 * REBALANCE_MS, alive=["L-1"])
    assert play.rebalances[-1] is Reason.LEAVE


@case("testInvokeSyncCallback", "testNotInvokeSyncCallback", "testCompleteAllSyncFutures")
def test_leaders_assignment_answers_who_waits_for_it(play):
    """And nobody else; a new rebalance sends everyone back who waits, without an assignment.

    A member that the leader leaves out gets an empty assignment.
    """
    play.completing("L", "F", "G", "H")
    left_out, waiting = play.sync("F-1"), play.sync("H-1")
    assert (left_out.pending, waiting.pending) == (True, True)
    play.sync("L-1", **{"L-1": "a", "G-1": "c", "H-1": "d", "unknown": "more"})
    assert left_out.answer == SyncResponse(Error.NONE, "consumer", "range", "")
    assert waiting.answer == SyncResponse(Error.NONE, "consumer", "range", "d")
    assert [m.sync for m in play.group.members.values()] == [None] * 4
    assert play.sync("G-1").answer.assignment == "c"
    stored = {m.member_id: m.assignment for m in play.records[-1].members}
    assert stored == {"L-1": "a", "F-1": "", "G-1": "c", "H-1": "d"}
    assert (play.assignments[-1].leader, play.assignments[-1].static_members) == ("L-1", 4)
    play.rejoin("L-1", "F-1", "G-1", "H-1")
    play.hold_writes = True
    all_of_them = [play.sync(f"{name}-1") for name in ("F", "G", "H", "L")]
    assert [call.pending for call in all_of_them] == [True] * 4
    play.join(instance="N")
    assert [call.answer for call in all_of_them] == [SyncResponse(Error.REBALANCE_IN_PROGRESS)] * 4
    assert [m.sync for m in play.group.members.values()] == [None] * 5
