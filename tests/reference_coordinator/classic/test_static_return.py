"""Static members return to a Stable group without the id they had; that is stored, or is not."""

import pytest

from kafka_protocol.errors import Error
from reference_coordinator.classic.effects import JoinResponse, Reason, SyncResponse
from reference_coordinator.classic.events import Choices, TimerKind
from reference_coordinator.classic.state import State
from tests.reference_coordinator.classic.checklist import case
from tests.reference_coordinator.classic.playbook import (
    BOTH,
    REBALANCE_MS,
    SESSION_MS,
    Playbook,
    accepted,
    listed,
)
from tests.reference_coordinator.classic.releases import EVERY_RELEASE, by_coordinator, by_rule

pytestmark = EVERY_RELEASE
LONG_MS = 100_000
OLD_TIMEOUTS, NEW_TIMEOUTS = (SESSION_MS, REBALANCE_MS), (2 * SESSION_MS, 2 * REBALANCE_MS)
FAILED = Error.COORDINATOR_NOT_AVAILABLE
WRITE_ERRORS = (Error.UNKNOWN_SERVER_ERROR, FAILED, Error.NOT_COORDINATOR)
"""What Kafka makes of MESSAGE_TOO_LARGE, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER."""


def timeouts_of(play: Playbook, instance: str) -> tuple[int, int]:
    """Return the session and the rebalance timeout of a member."""
    member = play.member(instance)
    return member.session_timeout_ms, member.rebalance_timeout_ms


def offers_of(play: Playbook, instance: str) -> tuple[str, ...]:
    """Return the protocols a member offered last, in its order."""
    return tuple(name for name, _ in play.member(instance).protocols)


@case(
    "staticMemberRejoinAsFollowerWithUnknownMemberId",
    "staticMemberRejoinWithLeaderIdAndUnknownMemberId",
    "staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchanged",
    "testCannotAddStaticMemberIfAlreadyPresent",
    versions={"2.4": (5, 6), "3.2": (5, 6, 7, 8, 9)},
)
def test_return_without_a_rebalance(versions):
    """To the old assignment, if it still offers the selected protocol; the old id is fenced.

    A leader's response names its old id as the leader, so it does not act as the leader; from
    JoinGroup v9 on it makes it the leader, with skipAssignment (KIP-814).
    """
    for instance, version in [(instance, version) for instance in "LF" for version in versions]:
        play = Playbook()
        play.statics("L", "F")
        old, new = f"{instance}-1", f"{instance}-2"
        offers = BOTH if version == 5 else ("range",)
        back = play.join(instance=instance, version=version, protocols=offers)
        leads = instance == "L" and version == 9
        leader, *members = (new, "L-2", "F-1") if leads else ("L-1",)
        assert back.answer == accepted(new, 1, leader, *members, skips=leads)
        assert (play.state, play.rebalances) == (State.STABLE, [Reason.NEW_MEMBER])
        assert play.leader == ("L-2" if instance == "L" else "L-1")
        assert dict(play.group.static_ids) == {"L": "L-1", "F": "F-1"} | {instance: new}
        synced = play.sync(new, instance=instance).answer
        assert synced == SyncResponse(Error.NONE, "consumer", "range", f"work of {old}")
        assert play.heartbeat(new, instance=instance) is Error.NONE
        # fenced wherever it names its instance, unknown where it does not
        for named, error in ((instance, Error.FENCED_INSTANCE_ID), (None, Error.UNKNOWN_MEMBER_ID)):
            assert play.join(old, instance=named).error is error
            assert play.sync(old, instance=named).error is error
            assert play.heartbeat(old, instance=named) is error


@case("shouldGetDifferentStaticMemberIdAfterEachRejoin")
def test_each_return_has_an_id_of_its_own(play):
    """Two processes of one instance fence each other without end, and without a rebalance."""
    play.statics("L", "F")
    old = play.id_of("F")
    for n in range(2, 6):
        new = play.join(instance="F").answer.member_id
        assert new == play.id_of("F") == f"F-{n}"
        assert play.heartbeat(old, instance="F") is Error.FENCED_INSTANCE_ID
        old = new
    assert (play.rebalances, play.generation) == ([Reason.NEW_MEMBER], 1)


@pytest.mark.parametrize("offered", ["", "F-1", "unknown-7"])
def test_a_new_member_id_is_bound_only_to_what_kafka_could_have_drawn(play, offered):
    """An id is `<instance>-<random>` and in nobody's use; any other offer is refused."""
    play.statics("L", "F")
    back = play.join(instance="F", drawn=offered)
    assert play.bound[-1].refused == offered
    assert back.answer.member_id not in {offered, "F-1"}


@case("staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocol")
def test_return_without_the_selected_protocol_up_to_2_6_0(play):
    """Nobody asks whether the group's protocol still is one of its own."""
    play.statics("L", "F")
    back = play.join(instance="F", protocols=("roundrobin",), version=5)
    assert back.answer == accepted("F-2", 1, "L-1")
    assert (play.rebalances, play.state) == ([Reason.NEW_MEMBER], State.STABLE)
    assert play.sync("F-1", instance="F").error is Error.FENCED_INSTANCE_ID
    assert play.sync("F-2", instance="F").answer.assignment == "work of F-1"


@pytest.mark.parametrize(("instance", "other"), [("L", "F"), ("F", "L")])
@case(
    "staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWithSelectedProtocolChanged",
    "testReplaceStaticMemberInStableStateWithUpdatedProtocolTriggersRebalance",
)
def test_return_without_the_selected_protocol_rebalances(play, instance, other):
    """The group selects another; the other member, silent, stays. Alone, it is in at once."""
    play.statics("L", "F", session_ms=LONG_MS)
    back = play.join(instance=instance, protocols=("roundrobin",), session_ms=LONG_MS)
    assert (back.pending, play.rebalances[1:]) == (True, [Reason.PROTOCOL_CHANGE])
    play.after(REBALANCE_MS)
    new = f"{instance}-2"
    assert back.answer == accepted(new, 2, new, new, f"{other}-1", protocol="roundrobin")
    alone = Playbook()
    alone.statics("I1")
    back = alone.join(instance="I1", protocols=("roundrobin",))
    assert (back.answer.generation, back.answer.skip_assignment) == (2, False)
    assert (alone.state, alone.member_ids) == (State.COMPLETING_REBALANCE, {"I1-2"})


@pytest.mark.parametrize(
    ("picked", "rebalances"), [("range", []), ("roundrobin", [Reason.PROTOCOL_CHANGE])]
)
def test_return_that_makes_a_tie_of_the_votes(play, picked, rebalances):
    """A tie is broken by hash order, so what was observed decides."""
    play.statics("L", "F")
    play.choices = Choices(protocol=picked)
    back = play.join(instance="F", protocols=("roundrobin", "range"))
    assert play.rebalances[1:] == rebalances
    play.rejoin("L-1")
    assert back.answer.protocol == picked


def test_rolling_change_of_the_protocol_order_rebalances_once(play):
    """Each member that returns moves one vote; only the vote that decides rebalances."""
    names = ("a", "b", "c")
    play.statics(*names)
    for name in names:
        back = play.join(instance=name, protocols=("roundrobin", "range"))
        if back.pending:
            for other in set(names) - {name}:
                play.join(play.id_of(other), instance=other, protocols=offers_of(play, other))
            play.sync_everyone()
        assert back.error is Error.NONE
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.PROTOCOL_CHANGE]
    assert play.group.protocol == "roundrobin"


@case(
    "staticMemberRejoinWithUpdatedSessionAndRebalanceTimeoutsAndPersistChange",
    "testUpdateMember",
    timeouts={"2.4": OLD_TIMEOUTS, "3.3.2": NEW_TIMEOUTS},
)
def test_return_and_rejoin_update_the_timeouts(play, timeouts):
    """Before 3.3.2 those of the first join stayed. A rejoin brings its protocols as well."""
    session_ms, rebalance_ms = NEW_TIMEOUTS
    play.statics("L", "F", "G")
    for instance in ("L", "F"):
        back = play.join(
            instance=instance, session_ms=session_ms, rebalance_ms=rebalance_ms, version=5
        )
        assert (back.error, back.answer.generation) == (Error.NONE, 1)
        assert play.heartbeat(back.answer.member_id, instance=instance) is Error.NONE
        assert timeouts_of(play, instance) == timeouts
    play.leave(("", "G"))
    play.join("F-2", instance="F", protocols=("range",))
    play.join(instance="L", protocols=("range",), session_ms=session_ms, rebalance_ms=rebalance_ms)
    play.sync_everyone()
    assert (timeouts_of(play, "L"), timeouts_of(play, "F")) == (timeouts, OLD_TIMEOUTS)
    assert (offers_of(play, "F"), play.group.rebalance_timeout_ms) == (("range",), timeouts[1])
    play.after(SESSION_MS)
    assert play.member_ids == ({"L-3"} if timeouts == NEW_TIMEOUTS else set())
    play.after(SESSION_MS)
    assert play.state is State.EMPTY


def test_return_starts_with_the_old_session(play):
    """The first session still runs with the old timeout."""
    play.statics("L", "F")
    play.join(instance="F", session_ms=3 * SESSION_MS)
    play.after(SESSION_MS - 1)
    play.heartbeat("L-1")
    assert play.rebalances == [Reason.NEW_MEMBER]
    play.after(1)
    assert play.rebalances == [Reason.NEW_MEMBER, Reason.SESSION_EXPIRED]
    assert play.member_ids == {"L-1"}


@case(
    "testReplaceStaticMemberInStableStateNoError",
    "testReplaceStaticMemberInStableStateSucceeds",
    timeouts={"2.4": OLD_TIMEOUTS, "3.3.2": NEW_TIMEOUTS},
    versions={"2.4": (5,), "3.2": (5, 9)},
)
def test_return_is_answered_once_it_is_stored(timeouts, versions):
    """The record has the new id with the old assignment, and the member what it returned with."""
    session_ms, rebalance_ms = NEW_TIMEOUTS
    for version, offers in [(v, offers) for v in versions for offers in (("range",), BOTH)]:
        play = Playbook()
        play.statics("I1", protocols=("range",))
        play.hold_writes = True
        back = play.join(
            instance="I1", protocols=offers, session_ms=session_ms, rebalance_ms=rebalance_ms,
            version=version,
        )  # fmt: skip
        record = play.records[-1]
        assert (back.pending, record.generation, record.leader) == (True, 1, "I1-2")
        assert {m.member_id: m.assignment for m in record.members} == {"I1-2": "work of I1-1"}
        play.written(back)
        skips = version == 9
        leader, *members = ("I1-2", "I1-2") if skips else ("I1-1",)
        assert back.answer == accepted("I1-2", 1, leader, *members, skips=skips)
        assert (play.state, play.rebalances) == (State.STABLE, [Reason.NEW_MEMBER])
        assert (timeouts_of(play, "I1"), offers_of(play, "I1")) == (timeouts, offers)


@by_rule("return_is_stored", "answer", {True: Error.NONE, False: Error.FENCED_INSTANCE_ID})
def test_return_is_stored(play, answer):
    """KAFKA-10284: the live member was fenced by a failover, for good."""
    play.statics("L", "F")
    stored = len(play.records)
    play.hold_writes = True
    back = play.join(instance="F", version=6)
    assert back.pending == (answer is Error.NONE)
    if back.pending:
        play.written(back)
    assert back.answer == accepted("F-2", 1, "L-1")
    assert len(play.records) - stored == (answer is Error.NONE)
    play.crash()
    assert play.heartbeat("F-2", instance="F") is answer


@pytest.mark.parametrize("error", WRITE_ERRORS)
@case(
    "staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchanged"
    "PersistenceFailure",
    "staticMemberRejoinWithUpdatedSessionAndRebalanceTimeoutsButCannotPersistChange",
    "testReplaceStaticMemberInStableStateErrors",
    restored={"2.6.1": ("range",), "java": BOTH},
)
def test_return_that_cannot_be_stored_has_not_happened(play, restored, error):
    """The old id goes on, with its old timeouts, and its session begins anew.

    Java gives it its old protocols back, too. Scala leaves it with what its return offered (seen
    live on 3.9.1), so its next join, with what it always offered, rebalances the group.
    """
    session_ms, rebalance_ms = NEW_TIMEOUTS
    play.statics("L", "F")
    play.hold_writes = True
    back = play.join(
        instance="F", protocols=("range",), version=7, session_ms=session_ms,
        rebalance_ms=rebalance_ms,
    )  # fmt: skip
    assert {m.member_id for m in play.records[-1].members} == {"L-1", "F-2"}
    play.after(SESSION_MS / 2)
    play.heartbeat("L-1")
    play.written(back, error)
    assert back.answer == JoinResponse(error, "", 1, "consumer", "range", "L-1")
    assert (timeouts_of(play, "F"), offers_of(play, "F")) == (OLD_TIMEOUTS, restored)
    assert (play.rebalances, play.state) == ([Reason.NEW_MEMBER], State.STABLE)
    play.after(SESSION_MS - 1, alive=["L-1"])
    assert play.armed(TimerKind.SESSION, "F-1") == 1
    assert play.sync("F-1", instance="F").answer.assignment == "work of F-1"
    assert play.heartbeat("F-2", instance="F") is Error.FENCED_INSTANCE_ID
    play.hold_writes = False
    assert play.join("F-1", instance="F").pending == (restored == ("range",))


def test_return_whose_failed_write_is_overtaken_by_another_return(play):
    """There is nothing to take back: the next return's own write decides."""
    play.statics("L", "F")
    play.hold_writes = True
    first, second = play.join(instance="F"), play.join(instance="F")
    play.written(first, FAILED)
    assert (second.pending, play.id_of("F")) == (True, "F-3")
    play.written(second, FAILED)
    assert (second.error, second.answer.member_id, play.id_of("F")) == (FAILED, "", "F-2")


@by_coordinator("answered_id, alive", scala=("F-2", False), java=("F-3", True))
@pytest.mark.parametrize("version", [8, 9])
def test_store_answers_latest_return(play, answered_id, alive, version):
    """Seen live on 3.9.1: each return fences the one before; only the last is answered NONE.

    In Scala the first one's write does that, with the first one's id: fenced as soon as it is used.
    """
    play.statics("L", "F")
    play.hold_writes = True
    first, second = (play.join(instance="F", version=version) for _ in range(2))
    assert first.answer == JoinResponse(Error.FENCED_INSTANCE_ID, "F-2")
    play.written(first)
    assert second.pending == alive
    play.written(second)
    assert (second.error, second.answer.member_id) == (Error.NONE, answered_id)
    assert (play.rebalances, play.id_of("F")) == ([Reason.NEW_MEMBER], "F-3")
    expected = Error.NONE if alive else Error.FENCED_INSTANCE_ID
    assert play.heartbeat(answered_id, instance="F") is expected


def test_store_of_a_return_does_not_answer_a_new_member_of_its_instance(play):
    """A member that left and joined again is another member, even in Scala."""
    play.statics("L", "F")
    play.hold_writes = True
    back = play.join(instance="F")
    play.leave(("F-2", "F"))
    assert back.answer == JoinResponse(Error.UNKNOWN_MEMBER_ID)
    anew = play.join(instance="F")
    play.written(back)
    assert (anew.pending, play.member_ids) == (True, {"L-1", "F-3"})


def returning(play: Playbook, instance: str, leaves: str, *others: str, version: int = 9):
    """Let one member leave, so that the group rebalances, while another's return is stored."""
    play.statics("L", "F", *others)
    play.hold_writes = True
    back = play.join(instance=instance, version=version)
    play.leave(("", leaves))
    return back


def test_failed_return_after_a_rebalance_began_waits_no_longer(play):
    """The join it was answered for no longer counts; the member of old has yet to come."""
    back = returning(play, "F", "G", "G")
    play.written(back, FAILED)
    assert back.error is FAILED
    (leading,) = play.rejoin("L-1")
    assert leading.pending
    play.rejoin("F-1")
    assert leading.answer.members == listed("L-1", "F-1")


def test_failed_return_of_a_candidate_leader(play):
    """The member selected as leader stays the leader under its old id."""
    play.written(returning(play, "F", "L", "G"), FAILED)
    assert play.group.open_leaders == {"F-1", "G-1"}


def test_failed_return_after_its_join_was_answered(play):
    """The old id is restored all the same, and the member with the new one is fenced."""
    back = returning(play, "F", "L")
    assert (back.error, back.answer.leader) == (Error.NONE, "F-2")
    play.written(back, FAILED)
    assert (play.leader, play.id_of("F")) == ("F-1", "F-1")
    assert play.sync("F-2", instance="F").error is Error.FENCED_INSTANCE_ID


def test_rebalance_before_a_return_is_stored(play):
    """A write that comes out well answers a follower's join with the current generation.

    A leader's response would list the members from v9 on, and Kafka refuses that in
    PreparingRebalance: `ClassicGroup.currentClassicGroupMembers` (Scala:
    `GroupMetadata.currentMemberMetadata`) throws inside the write's callback, so the join stays
    pending and counts for the rebalance under way.
    """
    back = returning(play, "F", "G", "G")
    assert play.state is State.PREPARING_REBALANCE
    play.written(back)
    assert (back.error, back.answer.generation) == (Error.NONE, 1)
    other = Playbook()
    back = returning(other, "L", "G", "G")
    other.written(back)
    assert back.pending
    other.rejoin("F-1")
    assert (back.error, back.answer.generation) == (Error.NONE, 2)
    assert not back.answer.skip_assignment
